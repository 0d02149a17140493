"""The flags before the command, and what comes from them."""

from pathlib import Path

import pytest

from cli.session import Session, choose_account, make_home
from resumes.errors import InvalidArgument, NotFound, StoreUnavailable
from resumes.store import accounts


def test_flags_win_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESUMES_HOME", str(tmp_path / "a"))
    monkeypatch.setenv("RESUMES_PORT", "81")

    assert Session().settings().home == tmp_path / "a"
    assert Session(home=tmp_path / "b").settings(port=82).home == tmp_path / "b"
    assert Session().settings(port=None).port == 81
    assert Session().settings(port=82).port == 82


def test_a_store_is_made_only_by_who_makes(tmp_path: Path) -> None:
    session = Session(home=tmp_path / "home")

    with pytest.raises(StoreUnavailable, match="No store yet"):
        session.store()
    make_home(tmp_path / "home")
    with pytest.raises(StoreUnavailable, match="Database not found"):
        session.store()
    session.store(makes=True).close()
    session.store().close()


def test_health_is_looked_at_where_the_flags_lead(tmp_path: Path) -> None:
    session = Session(home=tmp_path)
    session.store(makes=True).close()

    installation = session.installation()

    assert installation.settings().home == tmp_path
    assert installation.start_line().endswith(f" --home {tmp_path} up")
    with installation.store() as store:
        assert accounts.list_accounts(store) == []


def test_a_home_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="ascii")

    with pytest.raises(StoreUnavailable, match="Name another with --home"):
        make_home(tmp_path / "file" / "home")


def test_the_next_command_carries_the_flags_on() -> None:
    assert Session().command_line("list") == "resumes list"
    session = Session(home=Path("/my home"), database="sqlite:////x.db")
    assert session.command_line("list") == (
        "resumes --home '/my home' --database sqlite:////x.db list"
    )


@pytest.mark.parametrize(
    ("database", "flags"),
    [
        ("postgresql://u:secret@h/db", " --database postgresql://u@h/db"),
        ("postgresql://u@h/db?sslpassword=secret", " --database postgresql://u@h/db"),
        ("u:secret@h", ""),
    ],
)
def test_the_next_command_holds_no_password(database: str, flags: str) -> None:
    assert Session(database=database).command_line("list") == f"resumes{flags} list"


def test_the_next_command_begins_as_this_one_did_when_the_shell_would_not_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    script = tmp_path / ".venv" / "bin" / "resumes"
    script.touch(mode=0o755)
    monkeypatch.setattr("sys.argv", [str(script)])
    monkeypatch.setenv("PATH", "/nowhere")
    assert Session().command_line("list") == f"{script} list"
    monkeypatch.chdir(tmp_path)
    assert Session().command_line("list") == ".venv/bin/resumes list"
    monkeypatch.setenv("PATH", str(script.parent))
    assert Session().command_line("list") == "resumes list"


def test_the_account_is_the_named_or_the_only_one(tmp_path: Path) -> None:
    with Session(home=tmp_path).store(makes=True) as store:
        with pytest.raises(NotFound, match="There is no account yet"):
            choose_account(store, None)
        accounts.create_account(store, "a0")
        assert choose_account(store, None).name == "a0"
        for number in range(1, 12):
            accounts.create_account(store, f"a{number}")
        with pytest.raises(InvalidArgument, match="and 2 more"):
            choose_account(store, None)
        assert choose_account(store, "a7").name == "a7"
