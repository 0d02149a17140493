"""The password of a database stands in no output, no log, no file and no command line of ours."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.main import resumes
from cli.session import Session
from importer.helper import Setup
from importer.job import unobserved
from importer.options import Options
from resumes.settings import Settings, load_settings
from resumes.store import accounts
from tests.support import postgres, programs
from tests.support.resumes import a_document
from tests.support.terminal.console import console
from tests.support.waiting import children_of, command_of

PASSWORD = "planted-Passw0rd"
ENCODED = PASSWORD.replace("-", "%2D")

COMMANDS = (
    ("accounts", "list"),
    ("accounts", "show", "ana"),
    ("accounts", "show", "nobody"),
    ("keys", "list"),
    ("plans", "list"),
    ("imports", "list"),
    ("imports", "show", "unknown"),
    ("list",),
    ("show", "unknown"),
    ("export",),
    ("doctor",),
    ("db", "upgrade"),
    ("watch", "--once"),
    ("watch", "/nowhere"),
    ("serve", "--host", "999.0.0.1"),
    ("tui", "--open", "unknown"),
    ("demo", "--once"),
    ("nonsense",),
)


@pytest.fixture(scope="module")
def server(shared_postgres: postgres.Server) -> postgres.Server:
    shared_postgres.execute(f"ALTER ROLE resumes PASSWORD '{PASSWORD}'")
    return shared_postgres


@pytest.fixture
def url(server: postgres.Server) -> Iterator[str]:
    """An address with a password in it, of an empty database."""
    name = server.make_database()
    yield server.url(name).replace("resumes@", f"resumes:{ENCODED}@")
    server.drop_database(name)


@pytest.fixture
def home(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home whose store is there, by the environment, with an account."""
    monkeypatch.setenv("RESUMES_DATABASE", url)
    said = said_by("--home", str(tmp_path), "accounts", "create", "ana", "--plan", "business")
    assert is_harmless(said)
    return tmp_path


def is_harmless(said: str) -> bool:
    return not any(secret in said for secret in (PASSWORD, ENCODED, "Passw0rd"))


def said_by(*words: str) -> str:
    """Both streams of `resumes …`, run in this process."""
    return CliRunner().invoke(resumes, words, prog_name="resumes").output


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_command_says_it(home: Path, words: tuple[str, ...]) -> None:
    said = said_by("--home", str(home), *words)

    assert said
    assert is_harmless(said)
    assert is_harmless(said_by("--home", str(home), "--json", *words))


def test_a_flag_s_password_is_in_no_command_that_is_suggested(home: Path, url: str) -> None:
    flags = ["--home", str(home / "new"), "--database", url]

    said = said_by(*flags, "doctor")

    assert "--database postgresql://resumes@127.0.0.1:" in Session(database=url).command_line()
    up = Session(home=home / "new", database=url).command_line("up")
    assert f"Create it with `{up}`" in said
    assert is_harmless(said)


@pytest.mark.slow
@pytest.mark.parametrize(
    "place",
    ["127.0.0.1:1/db", "nowhere.invalid/db", "127.0.0.1:1,127.0.0.1:2/db", "127.0.0.1:x/db",
     "127.0.0.1:1", "a@b/db", "127.0.0.1:1/db?nonsense=1", "127.0.0.1:1/db?sslmode=nonsense"],
)  # fmt: skip
@pytest.mark.parametrize(
    "credentials",
    [f"u:{PASSWORD}", f"u:{PASSWORD}%", f"u:{PASSWORD}#", f"u:{PASSWORD}?x", f"u:{PASSWORD}@",
     f"u:/{PASSWORD}", f"{PASSWORD}:"],
)  # fmt: skip
def test_a_database_that_is_not_to_be_had_is_one_line_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, credentials: str, place: str
) -> None:
    if credentials == f"{PASSWORD}:":
        place = f"{place}{'&' if '?' in place else '?'}password={PASSWORD}"
        credentials = "u"
    monkeypatch.setenv("RESUMES_DATABASE", f"postgresql://{credentials}@{place}")

    done = CliRunner().invoke(resumes, ["--home", str(tmp_path), "accounts", "list"])

    assert done.exit_code in (2, 3)
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 1
    assert is_harmless(done.output)


@pytest.mark.slow
def test_no_process_of_the_service_bears_it_on_its_command_line_and_no_file_holds_it(
    home: Path,
) -> None:
    log = home.parent / f"{home.name}.log"
    words = ("up", "--port", "0", "--json", "--log-format", "json")
    with log.open("w") as stderr, programs.running(home, *words, stderr=stderr) as up:
        assert up.stdout is not None
        told = up.stdout.readline()
        api = json.loads(told)["url"]
        key = Path(json.loads(told)["keyFile"]).read_text("ascii").strip()
        (home / "inbox" / "ana" / "a.json").write_bytes(a_document("Ada"))
        (home / "inbox" / "ana" / "b.json").write_bytes(b"{}")
        body = a_document("Grace")
        programs.call(f"{api}/api/v1/resumes", key, method="POST", body=body)
        programs.wait_until(lambda: not programs.files_in(home / "inbox" / "ana"))
        lines = [command_of(one) for one in all_below(up.pid)]  # its own is that of a fork

    assert len(lines) >= 2
    assert is_harmless("".join(lines))
    assert is_harmless(told + log.read_text())
    held = [path for path in home.rglob("*") if path.is_file()]
    assert [path for path in held if not is_harmless(path.read_bytes().decode("latin-1"))] == []


def all_below(process_id: int) -> list[int]:
    """Its children, and theirs."""
    children = children_of(process_id)
    return children + [below for child in children for below in all_below(child)]


@pytest.mark.slow
def test_no_screen_shows_it(home: Path) -> None:
    words = [sys.executable, "-P", "-m", "cli", "--home", str(home), "tui", "health"]
    with console(words, size=(120, 40), environment=os.environ) as terminal:
        seen = terminal.shows("postgresql://resumes@127.0.0.1", "version 18")
        assert is_harmless(seen)
        assert is_harmless(terminal.wire.decode("utf-8", "replace"))


def test_a_defect_s_report_and_what_is_printed_of_objects_hold_no_password(
    home: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(home=home)
    assert settings.database == url
    setup = Setup(url, home, Options(account=None), unobserved)

    def fail(*given: object, **_: object) -> None:
        raise ValueError(*given, settings, setup)

    monkeypatch.setattr(accounts, "list_accounts", fail)
    done = CliRunner().invoke(resumes, ["--home", str(home), "accounts", "list"])

    (report,) = (home / "logs").glob("error-*.txt")
    assert done.exit_code == 1
    assert "ValueError" in report.read_text()
    assert is_harmless(report.read_text())
    assert is_harmless(repr(Settings(database=url)) + repr(setup))


def test_a_setting_that_cannot_be_used_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(f'database = ["postgresql://u:{PASSWORD}@h/db"]')

    said = said_by("--home", str(tmp_path), "accounts", "list")

    assert said.startswith('Error: Invalid database "…" in ')
    assert is_harmless(said)
