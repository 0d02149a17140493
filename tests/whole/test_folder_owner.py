"""Whose a watched folder is, by the commands: two stores, a restored one, a copied one."""

import contextlib
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.main import resumes
from importer.loop import Importer
from importer.notices import Notices
from importer.options import Options
from resumes.store import open_store
from tests.support.engines import Engine
from tests.support.inbox.builders import Moment, die, killing_at
from tests.support.programs import command, files_in, run, wait_until
from tests.support.resumes import a_document


class Service:
    """A home, its store and its inbox."""

    def __init__(self, home: Path, database: str) -> None:
        self.home = home
        self.database = database
        self.inbox = home / "inbox"

    def run(self, *words: str) -> Result:
        """`resumes` run to its end on this home and store."""
        line = ["--home", str(self.home), "--database", self.database, *words]
        return CliRunner().invoke(resumes, line, prog_name="resumes")

    def succeeds(self, *words: str) -> str:
        """What `resumes` said, having ended with 0, on both streams."""
        done = self.run(*words)
        assert done.exit_code == 0, done.output
        return done.output

    def fails(self, code: int, *words: str) -> str:
        """The one line of error that `resumes` ended with."""
        done = self.run(*words)
        assert done.exit_code == code, done.output
        return done.stderr.splitlines()[-1]

    def is_not_started(self) -> str:
        """What `resumes up` said, which did not start."""
        done = run(self.home, "--database", self.database, "up", "--port", "0", timeout_s=60)
        assert done.returncode == 2, done.stderr
        return done.stderr.splitlines()[-1]

    def has_account(self, name: str = "ana", resumes: int = 1) -> None:
        """There is an account, and no account has room for more than so many resumes."""
        self.succeeds("accounts", "create", name)
        self.succeeds("plans", "set", "free", "--max-resumes", str(resumes))
        (self.inbox / name).mkdir(parents=True, exist_ok=True)

    def drop(self, name: str, account: str = "ana") -> Path:
        """A resume of somebody of this name lies in the account's folder."""
        path = self.inbox / account / f"{name}.json"
        path.write_bytes(a_document(name))
        return path

    def backs_up(self, to: Path) -> str:
        """The path of a new backup."""
        return str(json.loads(self.run("--json", "db", "backup", str(to)).stdout)["path"])

    def restores(self, backup: str, place: "Service") -> "Service":
        """A file is restored over itself, a server's database into that of another one."""
        url = self.database if self.database.startswith("sqlite") else place.database
        restored = Service(self.home, url)
        restored.succeeds("db", "restore", backup)
        return restored

    def leaves_a_held_file_and_one_under_way(self) -> None:
        """One file is imported, one held, and one read by an importer that was killed then."""
        for name in ("Done", "Held"):
            self.drop(name)
            self.succeeds("watch", str(self.inbox), "--once")
        self.drop("Claimed")
        self.dies_at(Moment.READ)

    def dies_at(self, moment: Moment) -> None:
        """An importer is killed when it has a file so far."""
        with open_store(self.database) as store:
            importer = Importer(
                store,
                self.inbox,
                Options(settle_s=0),
                on_file=lambda _: None,
                notices=Notices(lambda _: None),
                observe=killing_at(moment),
            )
            die(importer)
        assert any(path.stat().st_size for path in self.inbox.glob(".importer/*.files"))

    def imports_all_three(self, *words: str) -> bool:
        """Whether with room for all it has what was imported, held and under way."""
        self.succeeds("plans", "set", "free", "--max-resumes", "5")
        self.succeeds("watch", *words, "--once")
        return self.titles() == ["Claimed Resume", "Done Resume", "Held Resume"]

    def titles(self, account: str = "ana") -> list[str]:
        """Whose resumes the account has."""
        listed = json.loads(self.run("--json", "list", "--account", account).stdout)["resumes"]
        return sorted(one["title"] for one in listed)


def waiting_in(root: Path) -> list[str]:
    """The files that are held, or lie in the inbox."""
    paths = [*files_in(root / "_held"), *files_in(root / "ana")]
    return sorted(str(path.relative_to(root)) for path in paths if path.is_file())


@pytest.fixture
def stores(engine: Engine, tmp_path: Path) -> Iterator[list[Service]]:
    """Services of three stores of one engine, which are not made yet."""
    with contextlib.ExitStack() as places:
        services = []
        for name in ("first", "second", "third"):
            home = tmp_path / name
            home.mkdir(mode=0o700)
            services.append(Service(home, places.enter_context(engine.a_place(home))))
        yield services


def test_s23_the_importer_of_another_store_refuses_the_folder_unless_it_is_to_take_it_over(
    stores: list[Service],
) -> None:
    mine, other, _ = stores
    mine.has_account()
    other.has_account("bo")
    mine.leaves_a_held_file_and_one_under_way()
    waiting = waiting_in(mine.inbox)
    assert len(waiting) == 2

    refused = other.fails(2, "watch", str(mine.inbox), "--once")
    assert refused.startswith(f"Error: {mine.inbox} belongs to another store, known as ")
    assert other.fails(2, "watch", str(mine.inbox), "--dry-run") == refused

    assert waiting_in(mine.inbox) == waiting
    assert mine.imports_all_three()

    mine.drop("Ada")
    other.has_account()
    named = re.search("`([^`]+)`", refused)
    assert named is not None
    words = shlex.split(named[1])[1:]
    assert words[:2] == ["--home", str(other.home)]
    assert words[-4:] == ["watch", str(mine.inbox), "--adopt", "--once"]
    other.succeeds(*words[-4:])
    assert other.titles() == ["Ada Resume"]
    assert f"{mine.inbox} belongs to another store" in mine.fails(2, "watch", "--once")


def test_an_inbox_of_another_store_keeps_up_from_starting_and_is_a_finding_of_doctor(
    stores: list[Service],
) -> None:
    mine, other, _ = stores
    mine.has_account()
    mine.succeeds("watch", "--once")
    other.has_account()
    mine.inbox.rename(other.inbox.with_name("other"))
    other.inbox.rename(mine.inbox)
    other.inbox.with_name("other").rename(other.inbox)

    assert "belongs to another store" in other.is_not_started()
    told = other.run("doctor")

    assert told.exit_code == 1
    assert f"fail  inbox     {other.inbox} belongs to another store, known as " in told.stdout
    assert "--adopt --once`" in told.stdout
    other.succeeds("watch", "--adopt", "--once")
    assert "belongs to another" not in other.run("doctor").stdout


def test_s23_what_waits_for_an_account_that_a_backup_is_older_than_waits_on_and_doctor_names_it(
    stores: list[Service], tmp_path: Path
) -> None:
    mine, place, newer = stores
    mine.has_account("bo")
    old = mine.backs_up(tmp_path / "old.db")
    mine.has_account("ana")
    mine.leaves_a_held_file_and_one_under_way()
    new = mine.backs_up(tmp_path / "new.db")
    waiting = waiting_in(mine.inbox)
    restored = mine.restores(old, place)

    said = restored.succeeds("watch", "--once")
    told = restored.run("doctor").stdout

    assert waiting_in(mine.inbox) == waiting
    assert files_in(mine.inbox / "_failed") == []
    assert "1 file in _held/ana" in said
    assert f"1 file in {mine.inbox}/_held/ana" in told
    for text in (said, told):
        assert "is waiting for an account that this store does not have" in text
        assert (
            "Restore a backup that has the account, or move the files into another account's folder"
            in text
        )

    again = mine.restores(new, newer)
    assert again.imports_all_three()
    assert "this store does not have" not in again.run("doctor").stdout


def test_s23_doctor_names_what_waits_in_every_folder_that_the_home_has_watched(
    stores: list[Service], tmp_path: Path
) -> None:
    mine, place, _ = stores
    root = tmp_path / "else\nwhere"
    (root / "late").mkdir(parents=True)
    mine.succeeds("accounts", "create", "early")
    old = mine.backs_up(tmp_path / "old.db")
    mine.succeeds("accounts", "create", "late")
    mine.succeeds("plans", "set", "free", "--max-resumes", "1")
    for name in ("Ada", "Bo", "Cleo"):
        (root / "late" / f"{name}.json").write_bytes(a_document(name))
    mine.succeeds("watch", str(root), "--once", "--settle", "0")
    assert len(waiting_in(root)) == 2
    restored = mine.restores(old, place)

    for _ in range(2):
        told = restored.run("doctor")
        assert told.exit_code == 1
        assert (
            f"2 files in {tmp_path}/else\\nwhere/_held/late are waiting for accounts" in told.stdout
        )
        assert told.stdout.count("this store does not have") == 1
        restored.succeeds("watch", str(root), "--once", "--settle", "0")

    restored.succeeds("accounts", "create", "late")  # is another account
    restored.succeeds("watch", str(root), "--once", "--settle", "0")
    assert len(waiting_in(root)) == 2


@pytest.mark.parametrize("moment", [Moment.READ, Moment.COMMITTED, Moment.MOVED])
@pytest.mark.parametrize("is_older", [True, False], ids=["restored", "copied into a moved home"])
def test_what_was_under_way_is_imported_once_by_the_next_store(
    stores: list[Service], tmp_path: Path, moment: Moment, is_older: bool
) -> None:
    mine, other, _ = stores
    mine.has_account(resumes=9)
    mine.succeeds("watch", "--once")
    backup = mine.backs_up(tmp_path / "backup.db")
    mine.drop("Ada")
    mine.dies_at(moment)
    if is_older:
        for file in mine.home.glob("resumes.db*"):
            file.unlink()
        later = mine.restores(backup, other)
    else:
        moved = mine.home.rename(tmp_path / "moved")
        mine = Service(moved, mine.database.replace("/first/", "/moved/"))
        mine.succeeds("db", "copy", mine.database, other.database)
        later = Service(moved, other.database)

    later.succeeds("watch", "--once")

    # What an older store cannot know is in the folder: a file that was moved is there, once.
    done = [path for path in files_in(later.inbox / "_done") if path.is_file()]
    assert [path.read_bytes() for path in done] == [a_document("Ada")]
    is_forgotten = is_older and moment is Moment.MOVED
    assert later.titles() == ([] if is_forgotten else ["Ada Resume"])
    assert waiting_in(later.inbox) == []


def test_s23_a_folder_from_before_becomes_that_of_the_first_store_and_is_safe_from_a_wrong_one(
    stores: list[Service],
) -> None:
    mine, other, _ = stores
    mine.has_account()
    other.has_account("bo")
    mine.leaves_a_held_file_and_one_under_way()
    waiting = waiting_in(mine.inbox)
    shutil.rmtree(mine.inbox / ".importer", ignore_errors=True)

    said = other.succeeds("watch", str(mine.inbox), "--once")

    assert "is waiting for an account that this store does not have" in said
    assert f"1 file in {mine.inbox}/_held/" in other.run("doctor").stdout
    assert "this store does not have" not in mine.run("doctor").stdout
    assert waiting_in(mine.inbox) == waiting
    assert "belongs to another store" in mine.fails(2, "watch", "--once")
    assert mine.imports_all_three("--adopt")


@pytest.mark.parametrize("is_returned", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_running_importer_leaves_a_folder_that_another_store_took_over(
    stores: list[Service], tmp_path: Path, is_returned: bool
) -> None:
    mine, other, _ = stores
    mine.has_account()
    other.has_account()
    log = tmp_path / "log"
    words = command(mine.home, "--database", mine.database, "watch", str(mine.inbox))
    with log.open("wb") as file, subprocess.Popen(words, stderr=file) as watching:
        try:
            wait_until(lambda: (mine.inbox / ".importer" / "store").exists())
            other.succeeds("watch", str(mine.inbox), "--adopt", "--once")
            wait_until(
                lambda: "No new files will be imported until this is resolved" in log.read_text()
            )
            mine.drop("Ada")
            assert "fail  importer" in mine.run("doctor").stdout
            other.succeeds("watch", str(mine.inbox), "--once")
            assert other.titles() == ["Ada Resume"]
            if is_returned:
                mine.succeeds("watch", str(mine.inbox), "--adopt", "--once")
                wait_until(lambda: "Importing resumed" in log.read_text())
                mine.drop("Bo")
                wait_until(lambda: mine.titles() == ["Bo Resume"])
        finally:
            watching.terminate()
