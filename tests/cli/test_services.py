"""What `up` and `demo` both set up."""

import socket
from pathlib import Path

import pytest

from cli.services import (
    check_address,
    find_or_make_account,
    serve_arguments,
    store_environment,
    watch_arguments,
)
from cli.session import Session
from resumes.settings import Settings
from resumes.store import accounts
from server.listener import CannotListen


def test_an_account_is_made_once_with_its_inbox(tmp_path: Path) -> None:
    with Session(home=tmp_path).store(makes=True) as store:
        made = find_or_make_account(store, tmp_path / "inbox", "default")
        accounts.set_plan(store, "default", "pro")
        (tmp_path / "inbox" / "default").rmdir()

        found = find_or_make_account(store, tmp_path / "inbox", "default")

    assert (made.plan, found.plan, found.id) == ("business", "pro", made.id)
    assert (tmp_path / "inbox" / "default").is_dir()


def test_an_account_that_another_machine_makes_meanwhile_is_the_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session(home=tmp_path).store(makes=True) as store:
        theirs = accounts.create_account(store, "default", plan="pro")
        find_account, seen = accounts.find_account, iter([None])
        monkeypatch.setattr(
            accounts,
            "find_account",
            lambda *given, **named: next(seen, find_account(*given, **named)),
        )

        found = find_or_make_account(store, tmp_path / "inbox", "default")

    assert (found.id, found.plan) == (theirs.id, "pro")


def test_the_children_get_the_home(tmp_path: Path) -> None:
    home = str(tmp_path)
    settings = Session(home=tmp_path).settings(port=81)
    text = ["--log-format", "text"]
    assert serve_arguments(settings) == ["--home", home, "serve", "--port", "81", *text]
    assert watch_arguments(settings) == ["--home", home, "watch", f"{home}/inbox", *text]


def test_the_children_get_the_store_where_no_other_user_can_read_it(tmp_path: Path) -> None:
    url = "postgresql://u:secret@h/db"
    elsewhere = Session(home=tmp_path, database=url).settings()

    words = serve_arguments(elsewhere) + watch_arguments(elsewhere)

    assert not [word for word in words if "database" in word or "secret" in word]
    assert store_environment(elsewhere.database) == {"RESUMES_DATABASE": url}
    assert store_environment(None) == {}


def test_the_children_log_as_their_parent_was_told(tmp_path: Path) -> None:
    chosen = Session(home=tmp_path).settings(log_format="json", access_log=False)
    assert serve_arguments(chosen)[-3:] == ["--log-format", "json", "--no-access-log"]
    assert watch_arguments(chosen)[-2:] == ["--log-format", "json"]
    assert serve_arguments(Session(home=tmp_path).settings(access_log=True))[-1] == "--access-log"


def test_an_address_that_is_taken_is_refused_and_a_free_one_stays_free(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        settings = Settings(home=tmp_path, port=other.getsockname()[1])
        with pytest.raises(CannotListen, match="is in use"):
            check_address(settings)

    check_address(settings)
    check_address(settings)
