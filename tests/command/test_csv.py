"""`resumes export --format csv`: one table for a spreadsheet program."""

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest

from resumes.analyzer import parse
from resumes.output_files import reserved
from resumes.spreadsheet import MAX_CELL_CHARS, csv_row
from resumes.store.entry import Entry
from resumes.store.stored_resumes import StoredResume
from tests.command.conftest import CommandLine, a_resume, on_terminal, store_resumes

COLUMNS = "id,name,title,email,phone,location,label,skills,position,employer,school,degree,created,updated"
FORMULAS = [
    "=1+1",
    "+44 1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\uff1d1+1",
    "a;=1+1",
    "  =1",
    "; -1",
]


def cells(body: bytes) -> list[dict[str, str]]:
    """The rows of a file, by column, as a spreadsheet program reads them."""
    assert body.startswith(b"\xef\xbb\xbf" + COLUMNS.encode() + b"\r\n")
    return [*csv.DictReader(io.StringIO(body.decode("utf-8-sig"), newline=""), strict=True)]


def row_of(sections: dict[str, Any] | None = None, **header: str) -> dict[str, str]:
    """The row of a resume with this content."""
    sections = {name: {"column": 0, "items": items} for name, items in (sections or {}).items()}
    body = a_resume(header={"name": "Ada", **header}, sections=sections)
    entry = Entry("0" * 24, None, "Ada", "AdaResume.pdf", "2027-01-15", "2027-01-16", "b, c")
    row = csv_row(StoredResume(entry, parse(body).document.decode()))
    return cells(b"\xef\xbb\xbf" + COLUMNS.encode() + b"\r\n" + row)[0]


def test_a_resume_is_a_row_with_what_a_list_of_people_needs() -> None:
    sections = {
        "skills": [
            {"title": "Tools", "tags": ["Python", "C#"]},
            {"title": "Chess"},
            {"tags": [" "]},
        ],
        "additionalTechnologies": [{"tags": ["Python", "SQL"]}],
        "experiences": [
            {"position": "Analyst", "workplace": 'The "Engine", Ltd'},
            {"position": "x"},
        ],
        "educations": [{"degree": "BA", "institution": "Home\nLondon"}],
    }
    header = {"title": "数学者", "email": "a@b.c", "phone": "020 1", "location": "Lo;ndon"}
    assert row_of(sections, **header) == {
        "id": "0" * 24,
        "name": "Ada",
        **header,
        "label": "b, c",
        "skills": "Python, C#, Chess, SQL",
        "position": "Analyst",
        "employer": 'The "Engine", Ltd',
        "school": "Home London",
        "degree": "BA",
        "created": "2027-01-15",
        "updated": "2027-01-16",
    }
    assert [name for name, cell in row_of().items() if cell] == [
        "id", "name", "label", "created", "updated",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("others", "latest"),
    [
        ([{}], {"fromYear": 1999}),
        ([{"fromYear": 2010, "toYear": 2019}], {"fromYear": 2001, "toYear": 2020}),
        ([{"toYear": 2020, "toMonth": 2}], {"toYear": 2020, "toMonth": 3}),
        ([{"fromYear": 2020, "toYear": 2022}], {"fromYear": 2021, "toYear": 2022}),
        ([{"fromYear": 2010, "toYear": 2022}], {"fromYear": 2011, "isOngoing": True}),
        ([{"fromYear": 2010, "isOngoing": True}], {"fromYear": 2011, "isOngoing": True}),
        # A month 12 says that months count from 1, so that 1 is January.
        ([{"fromYear": 2019, "toYear": 2019, "toMonth": 11}], {"toYear": 2019, "toMonth": 12}),
    ],
)
def test_the_latest_position_and_school_are_shown(
    others: list[dict[str, Any]], latest: dict[str, Any]
) -> None:
    for spans in ([*others, latest], [latest, *others]):
        jobs = [{"workplace": str(span), "dateRange": span} for span in spans]
        schools = [{"institution": str(span), "dateRange": span} for span in spans]
        row = row_of({"experiences": jobs, "educations": schools})
        assert (row["employer"], row["school"]) == (str(latest), str(latest))


@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_becomes_a_formula(text: str) -> None:
    row = row_of({"experiences": [{"position": text}]}, name=text, location=text)
    for column in ("name", "location", "position"):
        cell = row[column]
        assert cell == re.sub(r"(^|;\s*)([^;\w\s])", r"\1'\2", " ".join(text.split()))
        assert cell.replace("'", "") == " ".join(text.split())


@pytest.mark.parametrize("text", ['a;"=1+1', 'a; "-1;b', 'a;" =1', 'a;"" ""=1;b'])
def test_no_text_becomes_a_formula_where_semicolons_separate_cells(text: str) -> None:
    body = a_resume(header={"name": text})
    entry = Entry("0" * 24, None, "Ada", "AdaResume.pdf", "2027-01-15", "2027-01-16", text)
    row = csv_row(StoredResume(entry, parse(body).document.decode())).decode()
    [found] = csv.reader(io.StringIO(row, newline=""), delimiter=";")
    assert len(found) > 1
    assert not any(re.match(r"\s*[=+\-@]", cell) for cell in found)


def test_a_phone_number_keeps_its_leading_zero() -> None:
    for phone, cell in {
        "07700900123": "'07700900123",
        "00442079460418": "'00442079460418",
        "2079460418": "2079460418",
        "020 7946 0418": "020 7946 0418",
        "0": "0",
    }.items():
        row = row_of(phone=phone)
        assert (row["phone"], row["id"]) == (cell, "0" * 24)


def test_a_text_that_is_too_long_for_a_cell_is_cut_and_one_with_controls_cleaned() -> None:
    row = row_of({"skills": [{"tags": ["x" * 150] * 2}, *[{"title": f"{n:0150}"} for n in range(400)]]},
                 name="A\x01d\x1ba")  # fmt: skip
    assert (len(row["skills"]), row["name"]) == (MAX_CELL_CHARS, "Ada")


def test_all_or_some_resumes_of_an_account_are_one_table(acme: CommandLine, tmp_path: Path) -> None:
    header = {"name": "Bo", "location": "Porto"}
    [ada, bo] = store_resumes(acme.home, a_resume("Ada"), a_resume(header=header))
    acme.succeeds("accounts", "create", "empty")
    mine = ("--account", "acme", "--format", "csv")

    exported = acme("export", "--all", *mine)

    assert [(row["id"], row["name"]) for row in cells(exported.stdout_bytes)] == [
        (ada, "Ada"), (bo, "Bo"),
    ]  # fmt: skip
    assert exported.stderr == "Exported 2 resumes.\n"
    listed = acme.answers("--json", "list", *mine[:2])["resumes"]
    for row, entry in zip(cells(exported.stdout_bytes), listed, strict=True):
        assert (row["created"], row["updated"]) == (entry["createdAt"], entry["updatedAt"])
    found = acme("export", "--filter", "place:porto", *mine)
    assert [row["name"] for row in cells(found.stdout_bytes)] == ["Bo"]
    acme.succeeds("label", bo, "=class", "--account", "acme")
    labelled = acme("export", "--label", "=class", *mine)
    assert [(row["name"], row["label"]) for row in cells(labelled.stdout_bytes)] == [
        ("Bo", "'=class")
    ]
    one = acme("export", ada, *mine)
    assert [row["name"] for row in cells(one.stdout_bytes)] == ["Ada"]
    assert cells(acme("export", "--all", "--account", "empty", *mine[2:]).stdout_bytes) == []


def test_the_table_is_a_file_that_replaces_only_an_earlier_table(
    acme: CommandLine, tmp_path: Path
) -> None:
    store_resumes(acme.home, a_resume("Ada"))
    path = tmp_path / "people.csv"
    words = ("export", "--all", "--format", "csv", "--to")

    written = acme(*words, str(path))

    assert (written.exit_code, written.stderr) == (0, f"Exported 1 resume to {path}.\n")
    assert [row["name"] for row in cells(path.read_bytes())] == ["Ada"]
    assert "already exists: choose another file, or replace" in acme.fails(1, *words, str(path))
    acme.succeeds(*words, str(path), "--overwrite")
    acme.succeeds(*words, str(tmp_path))  # a folder
    assert (tmp_path / "resumes.csv").read_bytes() == path.read_bytes()
    mine = tmp_path / "mine.csv"
    mine.write_text("mine")
    for taken in (mine, acme.home / "resumes.db"):
        before = taken.read_bytes()
        refused = acme.fails(1, *words, str(taken), "--overwrite")
        assert "already exists: --overwrite replaces only CSV exports" in refused
        assert taken.read_bytes() == before
    with reserved(tmp_path / "new.csv"):  # another export has begun
        refused = acme.fails(1, *words, str(tmp_path / "new.csv"), "--overwrite")
        assert refused == f"{tmp_path / 'new.csv'} is being written: choose another file"
    nowhere = tmp_path / "nowhere" / "x.csv"
    assert (
        acme.fails(2, *words, str(nowhere)) == f"Cannot write {nowhere}: No such file or directory"
    )
    assert "is a file" in acme.fails(2, "export", "--all", "--to", str(mine))
    assert "are for --format pdf" in acme.fails(2, *words, str(path), "--anonymous")
    assert acme("export", "0" * 24, *words[2:], str(tmp_path / "new")).exit_code == 1
    assert {each.name for each in tmp_path.iterdir()} == {
        path.name, mine.name, "resumes.csv", acme.home.name,
    }  # fmt: skip


def test_on_a_terminal_nothing_in_a_table_is_a_control_character(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume("Ada\u202e\x1b[31m"))
    words = ("--home", str(acme.home), "export", "--all", "--format", "csv")
    code, _, written = on_terminal(*words, is_all=True)
    assert code == 0
    assert COLUMNS in written
    assert "Ada\\u202e[31m" in written
