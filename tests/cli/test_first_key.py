"""An account's first key is made once, and again while nobody has seen it."""

import stat
from pathlib import Path

from cli.first_key import make_first_key, write_key
from cli.session import Session
from resumes.store import accounts, keys


def test_a_first_key_that_nobody_saw_is_replaced(tmp_path: Path) -> None:
    with Session(home=tmp_path).store(makes=True) as store:
        accounts.create_account(store, "a")

        unseen = make_first_key(store, "a")
        second = make_first_key(store, "a")

        assert unseen is not None
        assert second is not None
        assert keys.get_key(store, unseen.id).state == "revoked"
        keys.mark_shown(store, second.id)
        assert make_first_key(store, "a") is None
        assert keys.get_key(store, second.id).state == "active"


def test_an_account_with_a_key_of_its_own_gets_none(tmp_path: Path) -> None:
    with Session(home=tmp_path).store(makes=True) as store:
        accounts.create_account(store, "a")
        key = keys.create_key(store, "a", name="mine")
        keys.revoke_key(store, key.id)

        assert make_first_key(store, "a") is None


def test_the_file_is_its_owner_s_alone_and_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "first-key"
    path.write_text("old", encoding="ascii")
    path.chmod(0o644)

    write_key(path, "enh_live_x")

    assert path.read_text(encoding="ascii") == "enh_live_x\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["first-key"]
