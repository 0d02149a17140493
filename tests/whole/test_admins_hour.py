"""An hour of an admin at the keys: what the terminal UI shows of the service, and does to it."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from resumes.store import api_keys
from tests.support.programs import call, command, files_in, running
from tests.support.terminal.console import Console, console

pytestmark = pytest.mark.slow

SIZE = (120, 36)
GOOD = {
    "header": {"name": "Ada Lovelace", "title": "Analyst", "email": "ada@example.org"},
    "sections": {},
}
BROKEN = b'{\n  "header": {"name": "Grace Example"},\n  "sections": {]\n}\n'
FIXED = BROKEN.replace(b"{]", b"{}")
ENTER, ESCAPE, ERASE = b"\r", b"\x1b", b"\x15"


class Admin(NamedTuple):
    """Somebody at a terminal, and where the service is."""

    screen: Console
    home: Path
    url: str

    def types(self, keys: bytes, *texts: str) -> str:
        """The keys are typed, and then all these texts are seen; everything that is seen."""
        self.screen.types(keys)
        return self.screen.shows(*texts)

    def lists(self, key: str) -> int:
        """The status that the API answers somebody with who has the key."""
        return call(f"{self.url}/api/v1/resumes", key)[0]


@contextmanager
def an_admin(home: Path) -> Iterator[Admin]:
    """The service is up, and its terminal UI open beside it."""
    with running(home, "up", "--json", "--port", "0") as up:
        assert up.stdout is not None
        url: str = json.loads(up.stdout.readline())["url"]
        with console(command(home, "tui"), size=SIZE) as screen:
            screen.shows("1 Resumes", "default · no resumes")
            yield Admin(screen, home, url)


def test_an_admins_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESUMES_SETTLE_S", "0.1")
    with an_admin(tmp_path / "home") as admin:
        make_an_account(admin)
        secret = make_a_key(admin)
        watch_an_import(admin)
        fix_what_failed(admin)
        assert listed_names(admin, secret) == ["Ada Lovelace", "Grace Example"]
        new = rotate(admin, secret)
        revoke(admin, new)
        admin.types(b"6", "Health · ", "watches", "1 running")
        admin.screen.types(b"q")

        assert admin.screen.ends() == 0


def make_an_account(admin: Admin) -> None:
    admin.types(b"3", "1 account", "business")
    admin.types(b"n", "New account", "Use 1 to 63")
    admin.types(b"ana" + ENTER + ENTER, "2 accounts", "Created ana (plan:")
    # What stands beside the list is the account at the cursor.
    admin.types(b"g", "│ ana")
    admin.types(b"p", "Choose plan", "current")
    admin.types(b"G" + ENTER, "Moved ana to plan business.")


def make_a_key(admin: Admin) -> str:
    admin.types(b"K", "No keys yet.")
    admin.types(b"n", "Expires")
    secret = secret_on(admin.types(b"laptop" + ENTER + ENTER, "Copy it now", "enh_live_"))
    assert admin.lists(secret) == 200
    admin.types(b"s", "✓ active", "laptop")
    admin.screen.shows_no(secret)
    return secret


def watch_an_import(admin: Admin) -> None:
    admin.types(b"2", "● watching", "✓ 0 done")
    inbox = admin.home / "inbox" / "ana"
    (inbox / "ada.json").write_text(json.dumps(GOOD), encoding="utf-8")
    (inbox / "grace.json").write_bytes(BROKEN)
    admin.screen.shows("✗ 1 failed", "✓ 1 done", "ana/ada.json", "ana/grace.json")


def fix_what_failed(admin: Admin) -> None:
    admin.types(b"g", "failed: invalid JSON", "Invalid JSON")
    admin.types(ENTER, "esc Back", '3 ▶   "sections": {]', "^ line 3, column 16")
    (file,) = files_in(admin.home / "inbox/_failed")
    file.write_bytes(FIXED)
    admin.types(b"t", "✓ done", "Resume     ")
    admin.types(ESCAPE, "✗ 0 failed", "✓ 2 done")


def rotate(admin: Admin, old: str) -> str:
    """Once with a grace, in which both keys count, and once without."""
    admin.types(b"5", "laptop", "✓ active")
    new = replace(admin, "24h", "The old key expires")
    assert admin.lists(old) == 200
    assert admin.lists(new) == 200
    admin.types(b"s", "2 keys", "✓ active", "~ rotated, ends")
    newest = replace(admin, "0", "The old key stops working immediately.")
    assert admin.lists(old) == 200
    assert admin.lists(new) == 401
    admin.types(b"s", "3 keys", "✓ active", "✗ ")
    return newest


def replace(admin: Admin, grace: str, understood: str) -> str:
    """The key that takes the place of the last one."""
    admin.types(b"GR", "Rotate this key?", "✓ active", "24h")
    admin.types(ERASE + grace.encode(), understood)
    return secret_on(admin.types(ENTER, "Copy it now", "The old key"))


def revoke(admin: Admin, secret: str) -> None:
    admin.types(b"GD", "Revoke this key?", 'Type "laptop" to confirm')
    admin.types(b"lap" + ENTER, 'Type "laptop" exactly to confirm.')
    assert admin.lists(secret) == 200
    admin.types(b"top" + ENTER, "✗ revoked")
    assert admin.lists(secret) == 401


def secret_on(seen: str) -> str:
    found = re.search(r"enh_live_[A-Za-z0-9]{64}", seen)
    assert found is not None, seen
    assert api_keys.FORM.fullmatch(found[0])
    return found[0]


def listed_names(admin: Admin, secret: str) -> list[Any]:
    status, page = call(f"{admin.url}/api/v1/resumes", secret)
    assert status == 200
    ids = [entry["id"] for entry in page["resumes"]]
    answers = [call(f"{admin.url}/api/v1/resumes/{resume_id}", secret) for resume_id in ids]
    return [answer["header"]["name"] for _, answer in answers]
