"""`resumes forget`: a person is erased everywhere, nobody else is, and the person does not come back."""

import gzip
import io
import json
import random
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from importer import personal_files
from resumes import analyzer, output_files
from resumes.store import Store, accounts, creation, schema, search_index, stored_resumes
from resumes.store.creation import IdempotencyKey, NewResume
from tests.command.conftest import CommandLine
from tests.support import postgres
from tests.support.inbox.packing import zipped
from tests.support.stores import make_store_file, open_home

NAME, EMAIL = "Xyzzy Plughsson", "Xyzzy@Plugh.example"
NEEDLES = ("xyzzy", "plughsson", "plugh.example")
OTHERS = tuple(f"Other {number}" for number in range(12))


def of(name: str, email: str, **fields: Any) -> bytes:
    sections = {"summaries": {"column": 0, "items": [{"text": f"This is {name} <{email}>."}]}}
    document = {"header": {"name": name, "email": email}, "sections": sections, **fields}
    return json.dumps(document).encode()


def theirs(number: int = 0, **fields: Any) -> bytes:
    return of(NAME, EMAIL, number=number, filler="x" * 5_000, **fields)


def other(number: int) -> bytes:
    name = OTHERS[number]
    return of(name, f"{name.replace(' ', '.').lower()}@example.com")


def iter_contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The names and bytes of all files, also of those inside archives."""
    for path in folder.rglob("*"):
        if path.is_file():
            body = path.read_bytes()
            yield str(path.relative_to(folder)), body
            if path.suffix == ".gz":
                yield f"{path.name}!", gzip.decompress(body)
            if path.suffix == ".zip":
                with zipfile.ZipFile(io.BytesIO(body)) as archive:
                    for member in archive.namelist():
                        yield f"{path.name}!{member}", archive.read(member)


def mentions(folder: Path) -> list[str]:
    return [
        f"{name}: {needle}"
        for name, body in iter_contents(folder)
        for needle in NEEDLES
        if needle in name.lower() or needle.encode() in body.lower()
    ]


def fill(acme: CommandLine) -> None:
    """Bring the person in by every way, with others in the same files."""
    acme.succeeds("accounts", "set-plan", "acme", "business")
    with open_home(acme.home) as store:
        owner = accounts.get_account(store, "acme")
        new = NewResume(
            analyzer.parse(theirs(1)), idempotency=IdempotencyKey("xyzzy-plughsson", b"x" * 32)
        )
        creation.create(store, owner.id, [new, *(NewResume(analyzer.parse(other(0))),)])
        # Corrected, replaced, deleted.
        (made, gone) = creation.create(
            store, owner.id, [NewResume(analyzer.parse(theirs(n))) for n in (2, 3)]
        )
        assert isinstance(made, creation.Created)
        assert isinstance(gone, creation.Created)
        stored_resumes.update_resume(store, owner.id, made.id, analyzer.parse(theirs(4)))
        search_index.catch_up(store, owner.id, timeout_s=60)
        stored_resumes.delete_resume(store, owner.id, gone.id)
    files = {
        "xyzzy-plughsson.json": theirs(5),
        "copy of xyzzy.json": theirs(5),
        "class.ndjson": b"\n".join([other(1), theirs(6), other(2)]),
        "array.json": b"[" + b", ".join([theirs(7), other(3)]) + b"]",
        "packed.json.gz": gzip.compress(b"[" + b",".join([other(4), theirs(8)]) + b"]"),
        "class.zip": zipped(
            {
                "a/xyzzy.json": theirs(9),
                "b.json": other(5),
                "c.ndjson": theirs(10) + b"\n" + other(6),
            }
        ),
        "bad.json": theirs(11).replace(b'"sections"', b'"sektions"'),
        "cut.json": theirs(12)[:-3],
        "bad.ndjson": other(7) + b"\n" + theirs(13).replace(b'"sections"', b'"sektions"'),
        "only.ndjson": theirs(14) + b"\n" + theirs(15),
    }
    bodies_in(acme, **files)
    acme.succeeds("plans", "set", "business", "--max-resumes", "0")
    bodies_in(acme, held_json=theirs(16), held_ndjson=theirs(17) + b"\n" + other(8))


def bodies_in(acme: CommandLine, **files: bytes) -> None:
    """Import files, given by their names with `_` for dots."""
    for name, body in files.items():
        (acme.home / "inbox/acme" / name.replace("_", ".")).write_bytes(body)
    acme("watch", "--once", "--settle", "0")


def excerpts(acme: CommandLine) -> list[str]:
    """The names of the files of which the ledger has an excerpt."""
    with open_home(acme.home) as store:
        rows = store.fetch(select(*schema.imported_files.c["name", "source"]))
    return [row.name for row in rows if row.source is not None]


def correct_addresses(acme: CommandLine) -> None:
    """Give the resumes of the person in `acme` the person's address."""
    with open_home(acme.home) as store:
        account = accounts.get_account(store, "acme").id
        for entry in stored_resumes.list_page(store, account).entries:
            if entry.name == NAME:
                new = analyzer.parse(of(NAME, EMAIL))
                stored_resumes.update_resume(store, account, entry.id, new)


def names_in(acme: CommandLine) -> set[str]:
    resumes = acme.answers("list", "--limit", "100", "--json")["resumes"]
    return {resume["title"] for resume in resumes}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = CommandLine(tmp_path_factory.mktemp("filled") / "home")
    make_store_file(run.home / "resumes.db")
    run.succeeds("accounts", "create", "acme")
    fill(run)
    assert len(mentions(run.home)) > 20
    return run.home


@pytest.fixture
def full(home: Path, filled: Path) -> CommandLine:
    """A home with the person in every place."""
    shutil.copytree(filled, home, copy_function=shutil.copy2)
    return CommandLine(home)


def test_no_byte_of_a_forgotten_person_is_left_and_all_of_the_others_is(full: CommandLine) -> None:
    before = names_in(full)
    dry = full.answers("forget", EMAIL, "--dry-run", "--json")
    assert (dry["erased"], len(dry["resumes"])) == (False, 10)
    assert names_in(full) == before
    said = full("forget", EMAIL.upper(), "--yes")
    assert said.exit_code == 0, said.output
    assert mentions(full.home) == []
    assert names_in(full) == {name for name in before if NAME not in name}
    everything = b"".join(body for _, body in iter_contents(full.home / "inbox"))
    for number in range(1, 9):
        assert other(number) in everything, number


def state(run: CommandLine) -> tuple[Any, ...]:
    """All that another command could see, without times."""
    files = {
        name: body
        for name, body in iter_contents(run.home / "inbox")
        if not name.endswith(".report.json")
    }
    with open_home(run.home) as store, store.read() as connection:
        tables = {
            table.name: sorted(map(str, connection.execute(select(table)).all()))
            for table in schema.metadata.sorted_tables
            if table.name not in ("forgotten", "store_facts", "importers", "search_progress")
        }
    return files, tables


class Killed(BaseException):
    """Ends a command as a signal would, at the point where it is raised."""


@pytest.mark.slow
def test_killed_at_any_step_and_repeated_it_comes_to_the_same_end(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = CommandLine(tmp_path / "whole")
    shutil.copytree(filled, whole.home)
    steps, dies_at = 0, 0

    def step(do: Any) -> Any:
        def run(*values: Any, **named: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == dies_at:
                raise Killed
            return do(*values, **named)

        return run

    monkeypatch.setattr(Store, "write", step(Store.write))
    monkeypatch.setattr(personal_files, "replace", step(output_files.replace))
    monkeypatch.setattr(Path, "unlink", step(Path.unlink))
    assert whole("forget", EMAIL, "--yes").exit_code == 0
    expected, count = state(whole), steps
    assert count > 30
    for number in range(1, count, 2):
        run = CommandLine(tmp_path / f"killed-{number}")
        shutil.copytree(filled, run.home)
        steps, dies_at = 0, number
        with pytest.raises(Killed):
            run("forget", EMAIL, "--yes")
        dies_at = 0
        assert run("forget", EMAIL, "--yes").exit_code == 0
        assert mentions(run.home) == []
        for mine, whole_state in zip(state(run), expected, strict=True):
            assert sorted(mine) == sorted(whole_state)
            for name in mine:
                assert mine[name] == whole_state[name], (number, name)
        shutil.rmtree(run.home)


def test_a_forgotten_person_comes_back_only_when_it_is_lifted(acme: CommandLine) -> None:
    acme("forget", EMAIL, "--yes")
    assert "This person was erased" in acme("import", "-", stdin=theirs()).output
    assert acme.answers("list", "--json")["resumes"] == []
    acme.succeeds("forget", EMAIL, "--lift")
    assert acme("forget", EMAIL, "--lift").exit_code == 1
    acme.succeeds("import", "-", stdin=theirs())
    (resume,) = acme.answers("list", "--json")["resumes"]

    # By the ID: the person alone, not all with the address.
    acme.succeeds("import", "-", stdin=of("Another Person", EMAIL))
    acme("forget", resume["id"], "--yes")
    assert names_in(acme) == {"Another Person Resume"}
    assert "This person was erased" in acme("import", "-", stdin=theirs()).output
    assert "Give the ID" in acme.fails(1, "forget", "0" * 24, "--yes")
    assert "--yes" in acme.fails(2, "forget", EMAIL)


def test_one_account_forgets_and_another_does_not(acme: CommandLine, tmp_path: Path) -> None:
    acme.succeeds("accounts", "create", "bolt")
    for account in ("acme", "bolt"):
        (acme.home / f"inbox/{account}/cv.json").write_bytes(theirs())
        (acme.home / f"inbox/{account}/bad.json").write_bytes(theirs()[:-2])
    acme("watch", "--once", "--settle", "0")
    acme.succeeds("forget", EMAIL, "--account", "acme", "--yes")
    assert acme.answers("list", "--account", "acme", "--json")["resumes"] == []
    assert len(acme.answers("list", "--account", "bolt", "--json")["resumes"]) == 1
    left = [path for path in (acme.home / "inbox").rglob("*.json") if "report" not in path.name]
    assert len(left) == 2


def test_files_in_a_folder_that_another_account_took_over_stay_with_their_account(
    acme: CommandLine,
) -> None:
    def done() -> list[str]:
        return sorted(path.name[:5] for path in (acme.home / "inbox/_done").rglob("*.json"))

    bodies_in(acme, first_json=of(NAME, EMAIL))
    acme.succeeds("accounts", "rename", "acme", "zeta")
    acme.succeeds("accounts", "create", "acme", "--force")
    bodies_in(acme, other_json=of(NAME, EMAIL))
    assert done() == ["first", "other"]
    acme.succeeds("forget", EMAIL, "--account", "acme", "--yes")
    assert done() == ["first"]
    acme.succeeds("forget", EMAIL, "--account", "zeta", "--yes")
    assert done() == []


def test_what_cannot_be_written_again_is_named_and_is_a_failure(acme: CommandLine) -> None:
    folder = acme.home / "inbox/_failed/invalid_archive"
    folder.mkdir(parents=True)
    (folder / "xyzzy plughsson.zip").write_bytes(b"PK\x03\x04 not an archive")
    acme.succeeds("forget", "none@example.com", "--yes")
    bodies_in(acme, cv_json=theirs())
    said = acme("forget", EMAIL, "--yes")
    assert said.exit_code == 1
    assert "xyzzy plughsson.zip may name the person" in said.output


def test_the_export_has_all_that_the_person_may_ask_for(acme: CommandLine, tmp_path: Path) -> None:
    export = tmp_path / "for the person.zip"
    acme.succeeds("import", "-", stdin=theirs())
    acme.succeeds("forget", EMAIL, "--yes", "--export", str(export))
    with zipfile.ZipFile(export) as archive:
        names = sorted(archive.namelist())
        assert [Path(name).suffix for name in names] == [".json", ".pdf", ".json"]
        (history,) = json.loads(archive.read("history.json"))
        assert history["account"] == "acme"
        assert history["createdAt"] <= history["erasedAt"]
        assert json.loads(archive.read(names[0]))["header"]["email"] == EMAIL
        assert archive.read(names[1]).startswith(b"%PDF")
    assert "already exists" in acme.fails(1, "forget", EMAIL, "--yes", "--export", str(export))


def test_what_is_shown_first_tells_people_of_one_address_apart(
    acme: CommandLine, tmp_path: Path
) -> None:
    for name in (NAME, "Xyzzy B. Plughsson"):
        acme.succeeds("import", "-", stdin=of(name, EMAIL))
    mine = next(row for row in acme.answers("list", "--json")["resumes"] if NAME in row["title"])
    target = tmp_path / "person.zip"
    said = acme("forget", mine["id"], "--dry-run", "--export", str(target))
    assert f'resume  {mine["id"]}  "{NAME}", acme, created ' in said.stdout
    assert 'Kept: 1 resume with the same address, "Xyzzy B. Plughsson".' in said.stderr
    assert acme.answers("forget", mine["id"], "--dry-run", "--json")["kept"] == 1
    with zipfile.ZipFile(target) as archive:
        (history,) = json.loads(archive.read("history.json"))
    assert (history["id"], history["erasedAt"]) == (mine["id"], None)
    assert len(names_in(acme)) == 2
    assert "Kept" not in acme("forget", EMAIL, "--dry-run").stderr


@pytest.mark.parametrize(
    "target",
    [f"<{EMAIL}>", f'"Plughsson, Xyzzy" <{EMAIL}>', f"Plughsson, Xyzzy <{EMAIL}>", f" {EMAIL} "],
)
def test_an_address_is_read_as_mail_programs_write_it(acme: CommandLine, target: str) -> None:
    acme.succeeds("import", "-", stdin=theirs())
    acme("forget", target, "--yes")
    assert acme.answers("list", "--json")["resumes"] == []
    acme.succeeds("forget", target, "--lift")


@pytest.mark.parametrize("target", [f"{EMAIL},b@example.org", f"mailto:{EMAIL}", f"{EMAIL} x", "@"])
def test_what_is_no_address_erases_nobody_silently(acme: CommandLine, target: str) -> None:
    assert "Not an email address" in acme.fails(2, "forget", target, "--yes")


def test_who_has_no_name_or_no_drawable_resume_is_erased_and_let_in_again(
    acme: CommandLine, tmp_path: Path
) -> None:
    items = [{"text": "x" * 9_000} for _ in range(30)]
    long = {"header": {"email": EMAIL}, "sections": {"summaries": {"column": 0, "items": items}}}
    acme.succeeds("import", "-", stdin=json.dumps(long).encode())
    (resume,) = acme.answers("list", "--json")["resumes"]
    target = tmp_path / "person.zip"
    said = acme("forget", resume["id"], "--yes", "--export", str(target)).stderr
    assert "Could not generate the PDF of resume" in said
    with zipfile.ZipFile(target) as archive:
        assert len(archive.namelist()) == 2
    acme.succeeds("forget", EMAIL, "--lift")


def test_others_of_a_file_that_was_written_again_can_be_retried(acme: CommandLine) -> None:
    broken = other(1).replace(b'"sections"', b'"sektions"')
    bodies_in(acme, class_ndjson=theirs() + b"\n" + broken + b"\n")
    assert "Erased 1 resume and 0 files, and removed the person from 1 file." in (
        acme("forget", EMAIL, "--yes").stderr
    )
    (file,) = (acme.home / "inbox/_failed").rglob("*.ndjson")
    file.write_bytes(other(1) + b"\n")
    (failed,) = acme.answers("imports", "list", "--outcome", "failed", "--json")["files"]
    acme.succeeds("imports", "retry", failed["id"])
    acme("watch", "--once", "--settle", "0")
    assert names_in(acme) == {f"{OTHERS[1]} Resume"}


def test_an_older_backup_or_account_file_does_not_bring_a_person_back(
    acme: CommandLine, tmp_path: Path
) -> None:
    backup, account = str(tmp_path / "backup.db"), str(tmp_path / "acme.account")
    for body in (theirs(), other(1)):
        acme.succeeds("import", "-", stdin=body)
    acme.succeeds("db", "backup", backup)
    acme.succeeds("accounts", "export", "acme", account)
    acme.succeeds("forget", EMAIL, "--yes")

    restored = acme.answers("db", "restore", backup, "--json")
    assert (restored["resumes"], restored["erased"]) == (1, 1)
    assert len(names_in(acme)) == 1
    assert mentions(acme.home) == []
    assert "This person was erased" in acme("import", "-", stdin=theirs()).output
    said = acme.fails(1, "accounts", "import", account, "--name", "again")
    assert "of a person who was erased from this store. Nothing was stored." in said
    acme.succeeds("db", "check")


def test_people_of_the_same_name_or_address_keep_their_files(acme: CommandLine) -> None:
    theirs_alone = {"cv.json": theirs(), "cut.json": theirs()[:-2]}
    kept = {
        "no address.json": of(NAME, ""),
        "same name.json": of(NAME, "another@example.com"),
        "same name, cut.json": of(NAME, "another@example.com").replace(b"sections", b"sektions"),
        "same address.json": of("Another Person", EMAIL),
        "same address, cut.json": of("Another Person", EMAIL)[:-2],
    }
    bodies_in(acme, **theirs_alone, **kept)
    ids = [each["id"] for each in acme.answers("list", "--json")["resumes"]]
    headers = {each: acme.answers("show", each, "--json")["header"] for each in ids}
    (mine,) = [each for each in ids if {NAME, EMAIL} <= {*headers[each].values()}]
    acme.succeeds("forget", mine, "--yes")
    contents = {body for _, body in iter_contents(acme.home / "inbox")}
    assert set(kept.values()) <= contents
    assert not set(theirs_alone.values()) & contents
    assert len(acme.answers("list", "--json")["resumes"]) == 3


def test_a_store_on_postgresql_forgets_with_its_folder(
    acme: CommandLine, shared_postgres: postgres.Server
) -> None:
    url = shared_postgres.url(shared_postgres.make_database())
    inbox = acme.home / "inbox/acme"
    acme.succeeds("db", "copy", f"sqlite:///{acme.home}/resumes.db", url)
    (inbox / "cv.json").write_bytes(theirs())
    (inbox / "class.ndjson").write_bytes(other(1) + b"\n" + theirs(1))
    on = ("--database", url)
    acme(*on, "watch", "--once", "--settle", "0")
    said = acme(*on, "forget", EMAIL, "--yes")
    assert said.exit_code == 0, said.output
    assert mentions(acme.home / "inbox") == []
    (resume,) = acme.answers(*on, "list", "--json")["resumes"]
    assert resume["title"] == f"{OTHERS[1]} Resume"
    assert "This person was erased" in acme(*on, "import", "-", stdin=theirs()).output


def test_a_picture_beside_the_resume_is_named_since_it_may_be_of_the_person(
    acme: CommandLine,
) -> None:
    bodies_in(acme, cv_zip=zipped({"cv.json": theirs(), "photo.jpg": b"\xff\xd8a face"}))
    said = acme("forget", EMAIL, "--yes")
    assert (said.exit_code, "1 file that may be the person's" in said.output) == (1, True)
    assert mentions(acme.home) == []


def test_members_that_are_not_imported_are_searched_and_folders_named_after_the_person_go(
    acme: CommandLine,
) -> None:
    folder = {f"{NAME}/": b"", f"{NAME}/cv.json": theirs()}
    unread = {
        "cv.json~": theirs(),
        "#recycle/cv.json": theirs(),
        "../cv.json": theirs(),
        "cv.json.gz": gzip.compress(theirs()),
        "cut.json": b"[" + theirs()[:-2],
        ".other.json": other(2),
    }
    bodies_in(acme, dirs_zip=zipped({**folder, "other.json": other(1)}))
    bodies_in(acme, theirs_zip=zipped({"cv.json": theirs(1), **unread, "a.json": other(3)}))
    bodies_in(acme, others_zip=zipped({**unread, "a.json": other(4)}))
    told = acme("forget", EMAIL, "--yes")
    assert told.exit_code == 1
    assert re.findall(r"/(\w+)-\w+\.zip has 5 files that may be", told.stderr) == ["theirs"]
    assert re.findall(r"/(\w+)-\w+\.zip may name the person", told.stderr) == ["others"]
    assert {name[:4] for name in mentions(acme.home / "inbox/_done")} == set()


def test_content_that_is_damaged_or_too_large_is_searched_or_named(acme: CommandLine) -> None:
    limits = "max_file_bytes = 1048576\nmax_body_bytes = 100000\n"
    (acme.home / "config.toml").write_text(limits)
    large = theirs(1, more="x" * 200_000)
    named = {
        "beyond.ndjson": b" " * 1_100_000 + theirs(),
        "inflated.json.gz": gzip.compress(b" " * 1_100_000 + theirs()),
        "inflated.zip": zipped({"a.ndjson": large * 6}),
        "line.ndjson": other(1) + b"\n" + large,
        "member.zip": zipped({"a.ndjson": other(2) + b"\n" + large}),
        "damaged.zip": zipped({"a.json": other(3), "b.json": theirs()}, zipfile.ZIP_STORED).replace(
            b"xxx", b"xyx", 1
        ),
        "nested.zip": zipped({"a.json": theirs(2), "b.zip": zipped({"c.json": theirs(3)})}),
        "picture.zip": zipped({"a.json": other(4), "b.bmp": bytes(1_100_000)}),
    }
    kept = {
        "lines.ndjson": other(1) + b"\n" + b"x" * 200_000,
        "pictures.zip": zipped({"a.json": other(5), "b.bmp": bytes(900_000), ".c": b"x" * 9_000}),
    }
    bodies_in(acme, **named, **kept)
    told = acme("forget", EMAIL, "--yes")
    assert sorted(re.findall(r"/(\w+)-\w+\.\S+ (?:may|has)", told.stderr)) == sorted(
        name.partition(".")[0] for name in named
    )


def test_an_archive_that_cannot_be_read_ends_neither_the_search_nor_the_erasure(
    acme: CommandLine,
) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("cv.json", theirs())
        archive.writestr("notes.bin", bytes(range(256)) * 9, zipfile.ZIP_LZMA)
    damaged = packed.getvalue()
    at = damaged.index(b"notes.bin") + 30
    bodies_in(acme, cv_zip=damaged[:at] + b"\xff" * 40 + damaged[at + 40 :])
    said = acme("forget", EMAIL, "--yes")
    assert (said.exit_code, "A member of it cannot be read" in said.output) == (1, True)
    assert acme.answers("list", "--json")["resumes"] == []


def test_no_excerpt_that_is_compressed_stays_in_the_ledger(acme: CommandLine) -> None:
    bodies_in(acme, a_json_gz=gzip.compress(theirs()))
    bodies_in(acme, b_json_gz=gzip.compress(theirs()))
    acme.succeeds("forget", EMAIL, "--yes")
    assert excerpts(acme) == []


def test_one_word_is_enough_of_a_name_for_a_file_with_a_byte_order_mark(acme: CommandLine) -> None:
    bodies_in(acme, cv_json=b"\xef\xbb\xbf" + of("Xyzzy", EMAIL))
    (resume,) = acme.answers("list", "--json")["resumes"]
    acme.succeeds("forget", resume["id"], "--yes")
    assert mentions(acme.home) == []
    assert "This person was erased" in acme("import", "-", stdin=of("Xyzzy", EMAIL)).output
    acme.succeeds("forget", f"xyzzy <{EMAIL}>", "--lift")
    acme.succeeds("import", "-", stdin=of("Xyzzy", EMAIL))


def test_a_file_in_another_encoding_is_found_too_and_those_of_others_are_kept(
    acme: CommandLine,
) -> None:
    for encoding in ("utf-16", "utf-16-be", "utf-32"):
        bodies_in(acme, **{f"{encoding}_json": theirs().decode().encode(encoding)})
    about = {"header": {"name": "Other", "email": "o@example.com"}, "reference": f"{NAME}, {EMAIL}"}
    bodies_in(acme, other_json=json.dumps(about).encode("utf-16"))
    acme.succeeds("forget", EMAIL, "--yes")
    left = [path.name for path in (acme.home / "inbox/_failed").rglob("*.json")]
    assert [name for name in left if "report" not in name and not name.startswith("other")] == []
    assert len(left) == 2
    assert excerpts(acme) == ["acme/other.json"]


def test_a_damaged_compressed_file_is_named_and_its_excerpt_erased(acme: CommandLine) -> None:
    noise = json.dumps(random.Random(1).randbytes(3_000).hex()).encode()
    cut = gzip.compress(theirs() + b"\n" + noise)[:-2_000]
    bodies_in(acme, cut_ndjson_gz=cut, whole_ndjson_gz=gzip.compress(other(1))[:-4])
    told = acme("forget", EMAIL, "--yes")
    assert told.exit_code == 1
    assert re.findall(r"/(\w+)-\w+\.\S+ may name the person", told.stderr) == ["cut"]
    assert excerpts(acme) == ["acme/whole.ndjson.gz"]


def test_a_file_from_which_a_resume_that_stays_was_made_too_is_kept(acme: CommandLine) -> None:
    typo = of(NAME, "xyzzy@plugh.exmple")
    acme.succeeds("accounts", "create", "bolt")
    (acme.home / "inbox/bolt/one.json").write_bytes(typo)
    bodies_in(acme, one_json=typo, two_json=of(NAME, "plugh@plugh.exmple"))
    correct_addresses(acme)
    acme.succeeds("forget", EMAIL, "--yes")
    left = sorted(path.name[:3] for path in (acme.home / "inbox/_done").rglob("*.json"))
    assert left == ["one", "one"]
    assert len(acme.answers("list", "--account", "bolt", "--json")["resumes"]) == 1


def test_an_address_in_the_name_of_a_file_is_erased_from_the_ledger(acme: CommandLine) -> None:
    bodies_in(acme, **{f"cv-{EMAIL}.json".replace(".", "_"): b"[1, 2"})
    acme("forget", EMAIL, "--yes")
    with open_home(acme.home) as store:
        [row] = store.fetch(select(*schema.imported_files.c["name", "path"]))
        assert (row.name, row.path) == ("acme/forgotten.json", None)


def test_the_files_of_a_resume_are_erased_even_if_its_address_was_corrected(
    acme: CommandLine,
) -> None:
    typo = of(NAME, "xyzzy@plugh.exmple")
    bodies_in(acme, one_json=typo, same_json=typo)
    bodies_in(acme, two_ndjson=of(NAME, "plugh@plugh.exmple") + b"\n" + other(1))
    correct_addresses(acme)
    acme.succeeds("forget", EMAIL, "--yes")
    assert mentions(acme.home) == []
    assert other(1) in b"".join(body for _, body in iter_contents(acme.home / "inbox"))


def test_damaged_files_with_a_longer_address_are_kept(acme: CommandLine) -> None:
    lines = other(1) + b"\n" + of("Ash", f"{EMAIL}.org")[:-3]
    bodies_in(acme, ash_json=of("Ash", f"ash{EMAIL}")[:-3], lines_ndjson=lines)
    bodies_in(acme, own_json=of("Xyzzy", EMAIL)[:-3])
    acme.succeeds("forget", EMAIL, "--yes")
    files = (acme.home / "inbox/_failed").rglob("*.*json")
    left = {path.name[:3]: path.read_bytes() for path in files if "report" not in path.name}
    assert left == {"ash": of("Ash", f"ash{EMAIL}")[:-3], "lin": lines}


def test_failed_files_that_may_also_contain_resumes_of_others_are_kept_and_named(
    acme: CommandLine,
) -> None:
    array = b"[" + theirs() + b"," + other(1) + b"]"
    lines = (other(2) + b"\n" + theirs()).decode()
    bodies = {
        "array.json": array.decode().encode("utf-16"),
        "lines.json": lines.encode("utf-16"),
        "packed.json": gzip.compress(array),
        "damaged.json": theirs()[:-3] + b"\n" + other(3),
    }
    bodies_in(acme, **bodies)
    told = acme("forget", EMAIL, "--yes")
    assert (told.exit_code, told.stderr.count("may name the person")) == (1, 4)
    left = [path.read_bytes() for path in (acme.home / "inbox/_failed").rglob("*.json")]
    assert all(body in left for body in bodies.values())


def test_an_address_in_the_name_of_a_file_is_found_in_reports_and_damaged_archives(
    acme: CommandLine,
) -> None:
    bodies_in(acme, **{f"cv-{EMAIL}.json": b"[1, 2"})
    (report,) = (acme.home / "inbox/_failed").rglob("*.report.json")
    for path in report.parent.iterdir():
        if path.is_file() and path != report:
            path.unlink()
    bodies_in(acme, cut_zip=zipped({f"cv-{EMAIL}.json": other(1)})[:-10])
    told = acme("forget", EMAIL, "--yes")
    assert not report.exists()
    assert re.findall(r"/(\w+)-\w+\.\S+ may name the person", told.stderr) == ["cut"]
    with open_home(acme.home) as store:
        rows = store.fetch(select(schema.imported_files.c.source))
        assert not [row for row in rows if row.source and b"Xyzzy" in row.source]


@pytest.mark.slow
def test_killed_at_any_step_the_same_id_erases_the_rest(
    acme: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme.succeeds("accounts", "create", "bolt")
    for account in ("acme", "bolt"):
        (acme.home / f"inbox/{account}/xyzzy-plughsson.json").write_bytes(theirs())
    acme("watch", "--once", "--settle", "0")
    (resume,) = acme.answers("list", "--account", "acme", "--json")["resumes"]
    write = Store.write
    for dies_at in range(1, 30):
        run, steps = CommandLine(tmp_path / str(dies_at)), [dies_at]
        shutil.copytree(acme.home, run.home)

        def killed(*values: Any, steps: list[int] = steps, **named: Any) -> Any:
            steps[0] -= 1
            if steps[0] == 0:
                raise Killed
            return write(*values, **named)

        monkeypatch.setattr(Store, "write", killed)
        try:
            run("forget", resume["id"], "--yes")
        except Killed:
            monkeypatch.setattr(Store, "write", write)
            run("forget", resume["id"], "--yes")  # perhaps only its traces were left
        assert mentions(run.home) == [], dies_at
        if steps[0] > 0:
            break
    assert 3 < dies_at < 29
