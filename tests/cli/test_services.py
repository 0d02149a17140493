"""What `up` and `demo` both set up."""

from pathlib import Path

from cli.services import find_or_make_account, serve_arguments, watch_arguments
from cli.session import Session
from resumes.store import accounts


def test_an_account_is_made_once_with_its_inbox(tmp_path: Path) -> None:
    with Session(home=tmp_path).store(makes=True) as store:
        made = find_or_make_account(store, tmp_path / "inbox", "default")
        accounts.set_plan(store, "default", "pro")
        (tmp_path / "inbox" / "default").rmdir()

        found = find_or_make_account(store, tmp_path / "inbox", "default")

    assert (made.plan, found.plan, found.id) == ("business", "pro", made.id)
    assert (tmp_path / "inbox" / "default").is_dir()


def test_the_children_get_home_and_store(tmp_path: Path) -> None:
    home = str(tmp_path)
    settings = Session(home=tmp_path).settings(port=81)
    text = ["--log-format", "text"]
    assert serve_arguments(settings) == ["--home", home, "serve", "--port", "81", *text]
    assert watch_arguments(settings) == ["--home", home, "watch", f"{home}/inbox", *text]
    elsewhere = Session(home=tmp_path, database="sqlite:////x.db").settings()
    assert serve_arguments(elsewhere)[:4] == ["--home", home, "--database", "sqlite:////x.db"]


def test_the_children_log_as_their_parent_was_told(tmp_path: Path) -> None:
    chosen = Session(home=tmp_path).settings(log_format="json", access_log=False)
    assert serve_arguments(chosen)[-3:] == ["--log-format", "json", "--no-access-log"]
    assert watch_arguments(chosen)[-2:] == ["--log-format", "json"]
    assert serve_arguments(Session(home=tmp_path).settings(access_log=True))[-1] == "--access-log"
