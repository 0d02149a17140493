"""What is printed: tables that fit, harmless text, logs of a line each, how far something long is."""

import io
import json
import logging
import os
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.logs import JsonFormatter
from cli.output import Column, cut, put_fields, put_json, put_json_line, put_table, safe_text, width
from resumes.analyzer import DEFAULT_FORMAT, parse
from resumes.errors import Conflict, InvalidArgument
from resumes.export import SUFFIXES, Exported, Exporter, ExportFormat
from resumes.output_files import OutputFile, check_free, place, reserved
from resumes.store import accounts, api_keys
from resumes.store.entry import Entry
from resumes.store.stored_resumes import StoredResume
from resumes.text import shell_line
from tests.support import programs
from tests.support.inbox.builders import a_full_disk, drop, filed
from tests.support.resumes import a_document
from tests.support.stores import open_home
from tests.support.waiting import wait_until

COLUMNS = (
    Column("id", itemgetter(0)),
    Column("title", itemgetter(1), is_flexible=True),
    Column("n", itemgetter(2), is_number=True),
)


@pytest.mark.parametrize("word", ["/a b", "a'b", "$(x)", "/h\udce9", "x\ny'z", "r\\\u202e"])
def test_a_command_that_is_shown_can_be_pasted(word: str) -> None:
    shown = safe_text(shell_line("printf", "%s", word))
    assert subprocess.check_output(["bash", "-c", shown]) == os.fsencode(word)


def test_a_table_lines_up_is_harmless_and_fits_a_terminal_but_not_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put_table(COLUMNS, [["a", "日本", "7"], ["bb", "\x1b[2J\n", "1,000"]])
    put_fields([("name", "\u202e")])
    assert capsys.readouterr().out == (
        "id  title          n\n"
        "a   日本           7\n"
        "bb  \\x1b[2J\\n  1,000\n"
        "name  \\u202e\n"
    )  # fmt: skip
    put_table(COLUMNS, [["a", "x" * 300, "7"]])
    assert "x" * 300 in capsys.readouterr().out

    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    put_table(COLUMNS, [["a" * 24, "x" * 300, "7"]])

    lines = capsys.readouterr().out.splitlines()
    assert [len(line) for line in lines] == [40 + 1, 40 + 1]  # the least that a column keeps
    assert lines[1].endswith("x…  7")


def test_json_keeps_scripts_readable_and_controls_escaped(
    capsys: pytest.CaptureFixture[str],
) -> None:
    put_json({"name": "李\x9b\x7f\u202e\ud800"})
    put_json_line({"b": 1, "a": [1.0]})

    first, second = capsys.readouterr().out.rsplit("\n", 2)[:2]
    assert first == '{\n  "name": "李\\u009b\\u007f\\u202e\\ud800"\n}'
    assert second == '{"b":1,"a":[1.0]}'
    assert json.loads(first) == {"name": "李\x9b\x7f\u202e\ud800"}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("put_value", [put_json, put_json_line])
def test_json_is_json_in_a_locale_of_another_encoding(
    encoding: str, put_value: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    value = {"name": "é李🚢\x9b\ud800"}
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding=encoding, errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", stream)

    put_value(value)

    assert json.loads(written.getvalue()) == value


@given(st.text(), st.integers(1, 30))
def test_cut_never_takes_more_cells_than_there_are(text: str, cells: int) -> None:
    assert width(cut(safe_text(text), cells)) <= cells


def test_a_record_is_one_line_of_json() -> None:
    try:
        raise ValueError("the cause\x1b")
    except ValueError:
        failure = sys.exc_info()
    message = 'a\x1b\n"%s\udcff\u202e'
    record = logging.LogRecord("resumes.server", logging.ERROR, "", 0, message, ("b",), failure)
    record.created = 0.0

    shown = JsonFormatter().format(record)

    assert shown.isascii()
    assert len(shown.splitlines()) == 1
    line = json.loads(shown)
    assert line.pop("exception").endswith("ValueError: the cause\x1b")
    assert line == {
        "at": "1970-01-01T00:00:00.000Z",
        "level": "ERROR",
        "logger": "resumes.server",
        "message": 'a\x1b\n"b\\udcff\u202e',
    }


# Standard streams that are closed or stuck, as some supervisors have them


CLOSED = "Error: Standard output is closed. Redirect it to /dev/null if it is not needed\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "how", "code", "said"),
    [
        ("accounts list", ">&-", 1, CLOSED),
        ("keys create ana", ">&-", 1, CLOSED),  # before anything is done
        ("keys create ana", "<&- >&- 2>&-", 1, ""),
        ("validate -", "<&-", 1, "0 valid, 1 failed."),
        ("accounts delete ana", "<&-", 2, "Error: Cannot ask for confirmation without a terminal"),
    ],
)
def test_closed_streams_harm_nothing(
    tmp_path: Path, words: str, how: str, code: int, said: str
) -> None:
    with open_home(tmp_path) as store:
        accounts.create_account(store, "ana")
    line = f"{shlex.join(programs.command(tmp_path, *words.split()))} {how}"

    done = subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stderr[: len(said)]) == (code, said)
    with open_home(tmp_path) as store:
        assert api_keys.list_keys(store) == []
        assert [one.name for one in accounts.list_accounts(store)] == ["ana"]


@pytest.mark.slow
@pytest.mark.parametrize("open_log", [programs.closed_pipe, programs.full_pipe])
def test_a_log_that_cannot_be_written_keeps_no_service_from_its_work_and_end(
    tmp_path: Path, open_log: Callable[[], int]
) -> None:
    with open_home(tmp_path) as store:
        accounts.create_account(store, "ana")
    inbox = tmp_path / "inbox"
    drop(inbox, "ana/1.json", a_document())
    errors = open_log()

    with (
        programs.serving(tmp_path, "--log-format", "json", stderr=errors) as url,
        programs.running(tmp_path, "watch", stderr=errors),
    ):
        for _ in range(200):
            assert programs.call(f"{url}/api/v1/resumes", None)[0] == 401
        wait_until(lambda: len(filed(inbox, "_done")) == 1)
    os.close(errors)


# Files that commands write


AT = "2027-01-15T08:00:00.000Z"


def a_stored_resume(
    filename: str = "AdaResume.pdf", resume_id: str = "0" * 24, **top_level: object
) -> StoredResume:
    entry = Entry(resume_id, None, "Ada", filename, AT, AT)
    return StoredResume(entry, parse(a_document("Ada", **top_level)).document.decode())


def export(resume: StoredResume, kind: ExportFormat = ExportFormat.ANALYZER) -> Exported:
    with Exporter(kind, DEFAULT_FORMAT, home=Path("/nowhere")) as exporter:
        return exporter.export(resume)


def write(folder: Path, exported: Exported) -> bool:
    with Exporter(ExportFormat.ANALYZER, DEFAULT_FORMAT, home=Path("/nowhere")) as exporter:
        return exporter.write(folder, exported)


EXPORTED = export(a_stored_resume())


@pytest.mark.slow
def test_each_kind_has_a_file_of_its_own_and_again_replaces_it(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    replaced = []
    for _ in range(2):
        for kind in ExportFormat:
            exported = export(a_stored_resume(), kind)
            replaced.append(write(folder, exported))
            assert exported.name == f"AdaResume{SUFFIXES[kind]}"
            assert (folder / exported.name).read_bytes() == exported.body
    assert len(list(folder.iterdir())) == len(ExportFormat)
    assert replaced == [False] * len(ExportFormat) + [True] * len(ExportFormat)

    # What has its name is replaced unopened, by a file that the umask alone closes to others.
    victim, file = tmp_path / "victim", tmp_path / EXPORTED.name
    victim.write_text("mine")
    file.symlink_to(victim)
    umask = os.umask(0o027)
    try:
        assert write(tmp_path, EXPORTED)
    finally:
        os.umask(umask)
    assert victim.read_text() == "mine"
    assert stat.S_IMODE(file.lstat().st_mode) == 0o640
    with a_full_disk(16), pytest.raises(InvalidArgument, match=r"Cannot write to .*too large"):
        write(tmp_path / "out", EXPORTED)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("resume_id", ["0" * 24, "../../x", "/x", ".."])
def test_whatever_the_store_holds_an_export_stays_in_its_folder(
    tmp_path: Path, resume_id: str
) -> None:
    for number, filename in enumerate(
        ["../../escaped/x.pdf", "/etc/x.pdf", "..", "", ".pdf", "a\nb.pdf", "\u202e.pdf", "x" * 300,
         "a/../b"]
    ):  # fmt: skip
        root = tmp_path / str(number)
        folder = root / "one" / "two" / "three"
        exported = export(a_stored_resume(filename, resume_id))
        write(folder, exported)
        path = folder / exported.name
        assert list(folder.iterdir()) == [path]
        made = {path, folder, folder.parent, folder.parent.parent}
        assert set(root.rglob("*")) == made
    for stem in ("AdaResume", "Senior Engineer", "É" * 55 + "Resume", "李Resume"):
        assert export(a_stored_resume(f"{stem}.pdf")).name == f"{stem}.json"


# Names that are somebody else's


def test_a_name_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    new, taken = tmp_path / "new", tmp_path / "taken"
    new.write_text("new")
    taken.write_text("taken")
    with pytest.raises(Conflict, match="already exists"):
        place(new, taken)
    assert taken.read_text() == "taken"
    place(new, tmp_path / "free")
    assert (tmp_path / "free").read_text() == "new"
    assert (tmp_path / "free").stat().st_nlink == 1  # a store with two names is not opened
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(
        Conflict, match="is a symbolic link, which is not followed: choose another file"
    ):
        check_free(tmp_path / "link")
    check_free(tmp_path / "nowhere")


@pytest.mark.parametrize("earlier", [None, "earlier"], ids=["free", "to be replaced"])
@pytest.mark.parametrize("meanwhile", [None, "theirs"], ids=["removed", "changed"])
def test_what_somebody_writes_meanwhile_is_theirs(
    tmp_path: Path, earlier: str | None, meanwhile: str | None
) -> None:
    path, draft = tmp_path / "file", tmp_path / "draft"
    if earlier is not None:
        path.write_text(earlier)
    output = OutputFile(path, remedy="", may_replace=lambda file: file.read() == b"earlier")
    draft.write_text("ours")
    if meanwhile is None:
        path.unlink(missing_ok=True)
        output.put(draft)
    else:
        path.write_text(meanwhile)
        with pytest.raises(Conflict, match="already exists"):
            output.put(draft)
        draft.unlink()
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [
        ("file", meanwhile or "ours")
    ]


@pytest.mark.parametrize("name", ["-wal", ".lock", "other-wal", "base.wal", "base-wal.json", "bas"])
def test_only_a_name_made_of_that_of_a_file_belongs_to_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "base").touch()
    (tmp_path / "other").mkdir()
    check_free(tmp_path / name)
    with pytest.raises(Conflict, match="mistaken for part of the database base: choose another"):
        check_free(tmp_path / "base-wal")


def test_a_name_is_reserved_by_one_until_its_block_or_process_ends(tmp_path: Path) -> None:
    path = tmp_path / "book.pdf"
    with reserved(path):
        (mark,) = tmp_path.iterdir()
        assert mark.name.startswith(".")
        with reserved(tmp_path / "other.pdf"):
            pass
        with pytest.raises(Conflict, match="is being written: choose another"), reserved(path):
            pass
    assert list(tmp_path.iterdir()) == []
    mark.touch()  # left by a process that was killed
    with reserved(path), pytest.raises(Conflict), reserved(path):
        pass
    assert list(tmp_path.iterdir()) == []
