"""`resumes accounts export` and `resumes accounts import`."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection, update

from resumes.store import accounts, schema
from tests.cli.conftest import CommandLine, a_resume, open_home, store_resumes


def test_an_account_goes_through_a_file_to_another_home(acme: CommandLine, tmp_path: Path) -> None:
    ids = store_resumes(acme.home, a_resume(), a_resume("Bo"))
    file = tmp_path / "acme.ndjson"

    exported = acme("accounts", "export", "acme", str(file))

    assert exported.exit_code == 0, exported.output
    assert exported.stdout == ""
    assert f'Exported the account "acme" to {file}.' in exported.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    other = CommandLine(tmp_path / "other")
    other.succeeds("accounts", "create", "someone")
    imported = other("accounts", "import", str(file))
    assert 'Account "acme" is there, on the plan free, with 2 resumes.' in imported.stderr
    listed = other.answers("list", "--account", "acme", "--json")
    assert [one["id"] for one in listed["resumes"]] == ids


def test_without_a_file_the_export_goes_to_standard_output(acme: CommandLine) -> None:
    store_resumes(acme.home, a_resume())
    header, resume, end = acme.succeeds("accounts", "export", "acme").splitlines()
    assert json.loads(header)["account"] == "acme"
    assert json.loads(resume)["document"]["header"]["name"] == "Ada Lovelace"
    assert json.loads(end)["counts"]["resume"] == 1


def test_an_export_takes_the_place_of_an_earlier_one_when_it_is_whole(
    acme: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "acme.ndjson"
    file.write_text("earlier")
    acme.fails(1, "accounts", "export", "nobody", str(file))
    assert file.read_text() == "earlier"
    acme.succeeds("accounts", "export", "acme", str(file))
    assert json.loads(file.read_bytes().splitlines()[0])["format"] == "resumes-account"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["acme.ndjson"]


def test_an_import_can_choose_name_and_plan_and_answer_in_json(
    acme: CommandLine, tmp_path: Path
) -> None:
    store_resumes(acme.home, *[a_resume(f"Ada {number}") for number in range(5)])
    file = tmp_path / "acme.ndjson"
    acme.succeeds("accounts", "export", "acme", str(file))
    acme.succeeds("plans", "set", "tiny", "--max-resumes", "2")

    answer = acme.answers(
        "accounts", "import", str(file), "--name", "again", "--plan", "tiny", "--json"
    )

    assert (answer["name"], answer["plan"], answer["resumes"]) == ("again", "tiny", 5)
    assert answer["rows"] == {"resume": 5, "file": 0, "item": 0, "digest": 0, "key": 0}
    with open_home(acme.home) as store:
        accounts.delete_account(store, "again", with_resumes=True)
    said = acme("accounts", "import", str(file), "--name", "again", "--plan", "tiny").stderr
    assert "It keeps them all, though its plan allows 2." in said


def test_a_file_that_cannot_be_imported_says_why(acme: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "acme.ndjson"
    assert "No such file" in acme.fails(2, "accounts", "import", str(file))
    file.write_text("{}\n")
    assert "no whole export" in acme.fails(1, "accounts", "import", str(file))
    acme.succeeds("accounts", "export", "acme", str(file))
    assert "exists already" in acme.fails(1, "accounts", "import", str(file))


def test_a_file_that_a_stranger_made_is_refused_by_line_field_and_value(
    acme: CommandLine, tmp_path: Path
) -> None:
    store_resumes(acme.home, a_resume())
    file = tmp_path / "acme.ndjson"
    header, row, _ = acme.succeeds("accounts", "export", "acme").splitlines(keepends=True)
    lines = (header + row.replace("AdaLovelaceResume.pdf", "../\\u001b[31mx.pdf")).encode()
    end = {"kind": "end", "counts": {}, "sha256": hashlib.sha256(lines).hexdigest()}
    file.write_bytes(lines + json.dumps(end).encode() + b"\n")

    message = acme.fails(1, "accounts", "import", str(file), "--name", "again")

    assert "\"filename\" is '../\\x1b[31mx.pdf'" in message
    assert "line 2" in message
    assert [one["name"] for one in acme.answers("accounts", "list", "--json")["accounts"]] == [
        "acme"
    ]


def test_a_place_that_cannot_be_written_is_named(acme: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "nowhere" / "acme.ndjson"
    assert f"Cannot write {file}" in acme.fails(2, "accounts", "export", "acme", str(file))


def test_an_import_that_was_cut_off_is_told_as_such(acme: CommandLine, tmp_path: Path) -> None:
    with open_home(acme.home) as store:
        account = accounts.create_account(store, "bo")
        store.write(_leave_arriving, account.id)
    listed = acme("accounts", "list")
    assert 'Account "bo" is being imported, 0 resumes so far.' in listed.stderr
    assert "accounts delete 'bo~import' --with-resumes --yes" in listed.stderr
    assert "bo" not in listed.stdout
    acme.succeeds("accounts", "delete", "bo~import", "--with-resumes", "--yes")
    assert "bo" not in acme("accounts", "list").stderr


def _leave_arriving(connection: Connection, requests: Sequence[str]) -> list[None]:
    """As an import that was killed leaves its account."""
    for account_id in requests:
        connection.execute(
            update(schema.accounts)
            .where(schema.accounts.c.id == account_id)
            .values(name="bo" + accounts.ARRIVING, closed_at="2027-01-15T08:00:00.000Z")
        )
    return [None] * len(requests)
