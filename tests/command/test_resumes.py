"""`resumes list`, `show`, `delete` and `export`."""

import json
import os
import re
from pathlib import Path

import pypdf
import pytest

from resumes import export
from resumes.analyzer import parse, parse_imported
from resumes.analyzer.view import TO
from resumes.store import accounts, stored_resumes
from tests.command.conftest import CommandLine, a_resume, on_terminal, store_resumes
from tests.support.documents import whole_view
from tests.support.pdfs import add_cjk_font, find_cjk_fonts
from tests.support.stores import open_home


def test_list_is_a_table_with_the_cursor_beside_it(acme: CommandLine) -> None:
    empty = acme("list")
    assert (empty.exit_code, empty.stdout) == (0, "")
    assert empty.stderr == 'No resumes yet in account "acme".\n'
    ids = store_resumes(acme.home, a_resume("Ada"), a_resume("Bo", title="Fitter"), a_resume("Cy"))

    listed = acme("list", "--limit", "2")

    assert [line.split()[:3] for line in listed.stdout.splitlines()[1:]] == [
        [ids[0], "Ada", "Ada"],
        [ids[1], "Bo", "Fitter"],
    ]
    assert listed.stderr == f"More: add --cursor {ids[1]}\n"
    assert acme.succeeds("list", "--cursor", ids[1]).splitlines()[1].split()[:2] == [ids[2], "Cy"]
    assert "No more resumes" in acme("list", "--cursor", "f" * 24).stderr
    page = acme.answers("list", "--json")  # as the API has it
    assert page["pagination"] == {"cursor": None, "limit": 20}
    entry, *_ = page["resumes"]
    assert entry["createdAt"] == entry["updatedAt"]
    assert {**entry, "createdAt": "", "updatedAt": ""} == {
        "id": ids[0], "title": "Ada Resume", "filename": "AdaResume.pdf",
        "createdAt": "", "updatedAt": "",
    }  # fmt: skip


def test_a_list_is_sorted_on_request(acme: CommandLine) -> None:
    ada, cy, bo = store_resumes(acme.home, a_resume("Ada"), a_resume("Cy"), a_resume("bo"))

    newest = acme("list", "--sort", "newest", "--limit", "2")

    assert [line.split()[0] for line in newest.stdout.splitlines()[1:]] == [bo, cy]
    assert newest.stderr == f"More: add --cursor {cy}\n"
    rest = acme.answers("list", "--sort", "newest", "--cursor", cy, "--json")
    assert [one["id"] for one in rest["resumes"]] == [ada]
    by_name = acme.answers("list", "--sort", "name", "--json")
    assert [one["id"] for one in by_name["resumes"]] == [ada, bo, cy]
    by_family_name = acme.answers("list", "--sort", "family-name", "--json")
    assert by_family_name == by_name
    found = acme.answers("list", "--sort", "newest", "--filter", "-cy", "--json")
    assert [one["id"] for one in found["resumes"]] == [bo, ada]
    assert "oldest or newest" in acme.fails(2, "list", "--sort", "name", "--filter", "ada")


def test_a_default_account_can_be_set(acme: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    acme.succeeds("accounts", "create", "beta")
    [ada] = store_resumes(acme.home, a_resume("Ada"))
    message = acme.fails(2, "list")
    assert message == "Several accounts exist. Choose one with --account: acme, beta"

    (acme.home / "config.toml").write_text('account = "acme"', encoding="ascii")

    assert ada in acme.succeeds("list")
    assert acme.succeeds("list", "--account", "beta") == ""
    monkeypatch.setenv("RESUMES_ACCOUNT", "gone")
    assert 'Account not found: "gone"' in acme.fails(1, "list")


def test_a_filter_lists_what_matches_though_no_service_fills_the_index(acme: CommandLine) -> None:
    people = [a_resume(name) for name in ("Ada Lovelace", "Bo Émile", "Cy Adair")]
    skills = {"skills": {"column": 0, "items": [{"title": "C++"}]}}
    ids = store_resumes(acme.home, *people, a_resume("Di", sections=skills))

    first = acme("list", "--filter", "AD a", "--limit", "1")
    page = acme.answers("list", "--filter", "ad a", "--cursor", ids[0], "--json")

    assert first.stdout.splitlines()[1].split()[0] == ids[0]
    assert first.stderr == f"More: add --cursor {ids[0]}\n"
    assert [one["id"] for one in page["resumes"]] == [ids[2]]
    assert page["pagination"] == {"cursor": None, "limit": 20}
    assert ("unsearched" in page, page["unindexed"]) == (False, 0)
    assert ids[1] in acme.succeeds("list", "--filter", "EMILE")
    assert ids[3] in acme.succeeds("list", "--filter", "skill:c++ -name:ada")
    nothing = acme("list", "--filter", "x\x1b[2J")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert nothing.stderr == 'No resumes in account "acme" match "x\\x1b[2J".\n'
    assert "Nothing to search for" in acme.fails(2, "list", "--filter", " ")


def test_only_the_newest_resume_of_each_person_is_listed_on_request(acme: CommandLine) -> None:
    def a_version(name: str) -> bytes:
        return a_resume(header={"name": name, "email": f"{name}@example.com"})

    ada, bo, again = store_resumes(acme.home, *map(a_version, ("Ada", "Bo", "Ada")))

    def ids(*options: str) -> list[str]:
        return [one["id"] for one in acme.answers("list", "--json", *options)["resumes"]]

    assert ids() == [ada, bo, again]
    assert ids("--latest") == [bo, again]
    assert ids("--latest", "--sort", "newest", "--limit", "1") == [again]
    assert ids("--latest", "--sort", "name") == [again, bo]
    assert ids("--latest", "--filter", "ada") == [again]
    shown = acme.succeeds("show", ada).splitlines()
    assert shown[2] == "2 versions of this person's resume, newest first:"
    assert shown[3].startswith(f"  {again}, created ")
    assert shown[4].startswith(f"  {ada}, created ")
    assert [line.endswith("(this one)") for line in shown[3:5]] == [False, True]
    assert "version" not in acme.succeeds("show", bo)
    for resume_id, versions in ((ada, [again, ada]), (bo, [bo])):
        page = acme.answers("show", resume_id, "--versions", "--json")
        assert [entry["id"] for entry in page["resumes"]] == versions
        table = acme.succeeds("show", resume_id, "--versions").splitlines()
        assert [line.split()[0] for line in table[-len(versions) :]] == versions


def test_what_the_index_lacks_is_told_and_an_export_without_it_fails(
    acme: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = store_resumes(acme.home, a_resume("Ada"), a_resume("Bo"))
    assert acme.answers("list", "--filter", "ada", "--json")["resumes"]
    store_resumes(acme.home, a_resume("Ada"), a_resume("Cy"))
    for name in ("CATCH_UP_TIMEOUT_S", "EXPORT_CATCH_UP_TIMEOUT_S"):
        monkeypatch.setattr(f"cli.commands.resumes.{name}", 0.0)

    listed = acme("list", "--filter", "ada")
    page = acme.answers("list", "--filter", "ada", "--json")
    exported = acme("export", "--filter", "ada", "--to", str(tmp_path / "out"))

    assert (listed.exit_code, listed.stdout.count("\n")) == (0, 2)
    assert listed.stderr == "The 2 newest resumes are not searched yet. Try again later.\n"
    assert (page["unsearched"], [one["id"] for one in page["resumes"]]) == (2, ids[:1])
    assert exported.exit_code == 1
    assert exported.stderr.splitlines()[1:] == [
        "Incomplete: The 2 newest resumes are not searched yet. Export again later."
    ]


def test_what_matches_a_filter_is_exported_oldest_first(acme: CommandLine, tmp_path: Path) -> None:
    store_resumes(acme.home, *(a_resume(name) for name in ("Ada B", "Bo", "Ada A")))

    lines = acme.succeeds("export", "--filter", "ada -nowhere").splitlines()

    assert [json.loads(line)["header"]["name"] for line in lines] == ["Ada B", "Ada A"]
    out = tmp_path / "out"
    told = acme("export", "--filter", "name:a", "--format", "pdf", "--to", str(out)).stderr
    assert told == f"Exported 2 resumes to {out}.\n"
    assert sorted(path.name for path in out.iterdir()) == ["AdaAResume.pdf", "AdaBResume.pdf"]
    assert "Exported 0 resumes." in acme("export", "--filter", "nobody").stderr
    assert "Nothing to search for" in acme.fails(2, "export", "--filter", "!")
    for words in (["--all"], ["0" * 24]):
        assert "use either" in acme.fails(2, "export", "--filter", "ada", *words)


def test_unknown_fields_are_shown_and_exported_in_their_own_notation(
    acme: CommandLine, tmp_path: Path
) -> None:
    unknown = rb'"unknown":[1.0,1e2,"\u00e9\/"],"fax":{"\u0061":-0}'
    skills = b'"skills":{"column":0,"items":[{"title":"Go","tags":[]}]}'
    body = b'{"sections":{%b},"header":{%b}}' % (skills, unknown)
    [resume_id] = store_resumes(acme.home, body)

    shown = acme.succeeds("show", resume_id, "--json")
    stream = acme.succeeds("export", resume_id)
    out = str(tmp_path / "out")
    told = {"exported": 1, "kept": 0, "failed": [], "to": out, "unsearched": 0}
    assert acme.answers("export", resume_id, "--to", out, "--json") == told

    [file] = (tmp_path / "out").iterdir()
    for text in (shown, stream, file.read_text("utf-8")):
        assert unknown.decode() in re.sub(r"\s", "", text)
    assert acme.succeeds("export", resume_id, "--format", "jsonresume").count("fax") == 0
    # What is shown is the stored resume, whole and in its order.
    assert json.dumps(json.loads(shown)) == json.dumps(whole_view(parse(body).document))
    assert json.loads(shown)["isImported"] is True


def test_an_export_is_indented_unless_that_made_it_too_large_to_import(
    acme: CommandLine, tmp_path: Path
) -> None:
    skills = {"column": 0, "items": [{"tags": ["abcdef"] * 200}] * 500}
    store_resumes(acme.home, a_resume("Ada"), a_resume("Bo", sections={"skills": skills}))

    acme.succeeds("export", "--all", "--to", str(tmp_path / "out"))

    small, large = (
        (tmp_path / "out" / f"{name}Resume.json").read_bytes() for name in ("Ada", "Bo")
    )
    assert small.startswith(b'{\n  "header": {\n')
    assert large.count(b"\n") == 1
    assert parse(large).name == "Bo"


def test_months_are_shown_and_exported_as_the_account_counted_them(acme: CommandLine) -> None:
    acme.succeeds("accounts", "set", "acme", "--first-month", "1")
    dates = {"fromYear": 2024, "fromMonth": 1, "toYear": 2025, "toMonth": 6}
    jobs = {"column": 0, "items": [{"position": "Baker", "dateRange": dates}]}
    acme.succeeds("import", "-", stdin=a_resume("Ada", sections={"experiences": jobs}))
    [resume] = acme.answers("list", "--json")["resumes"]

    assert f"  Jan 2024{TO}Jun 2025" in acme.succeeds("show", resume["id"]).splitlines()
    [job] = acme.answers("export", resume["id"], "--format", "jsonresume")["work"]
    assert (job["startDate"], job["endDate"]) == ("2024-01", "2025-06")


def test_an_id_that_is_not_there_or_of_another_account_is_named_with_the_way_on(
    acme: CommandLine,
) -> None:
    [resume_id] = store_resumes(acme.home, a_resume())
    acme.succeeds("accounts", "create", "beta")

    for command in ("show", "delete", "export"):
        message = acme.fails(1, command, resume_id, "--account", "beta")
        assert message.startswith(f'Resume not found in account "beta": "{resume_id}". Find ')
        assert message.endswith("list --account beta --filter TEXT`")


def test_a_deleted_resume_is_gone_and_its_place_free(acme: CommandLine) -> None:
    [ada, bo] = store_resumes(acme.home, a_resume("Ada"), a_resume("Bo"))

    deleted = acme("delete", ada, "--account", "acme", "--yes")

    assert deleted.stderr == (
        f'Deleted resume {ada} from account "acme". '
        "Its imported file, backups and exports are kept: see docs/erasing.md to erase a person.\n"
    )
    assert acme.answers("delete", bo, "--yes", "--json") == {"deleted": bo}
    assert acme.answers("accounts", "show", "acme", "--json")["resumes"] == 0
    assert "Resume not found" in acme.fails(1, "delete", ada)


def test_files_have_an_id_in_their_names_if_another_resume_has_the_name(
    acme: CommandLine, tmp_path: Path
) -> None:
    [ada, twin, bo] = store_resumes(acme.home, *map(a_resume, ("Ada", "Ada", "Bo")))
    acme.succeeds("accounts", "create", "other")
    [third] = store_resumes(acme.home, a_resume("Ada", title="Third"), account="other")
    assert ada < twin
    folder, mine = tmp_path / "new" / "folder", ("--account", "acme")

    exported = acme("export", ada, bo, ada, *mine, "--to", str(folder))

    assert exported.stderr == f"Exported 2 resumes to {folder}.\n"
    assert {file.name for file in folder.iterdir()} == {"AdaResume.json", "BoResume.json"}
    assert parse((folder / "BoResume.json").read_bytes()).name == "Bo"
    # In one export two files are written, though they have the same content, and replace none of these.
    everything = acme("export", "--all", *mine, "--to", str(folder))
    assert (everything.exit_code, "Exported 1 resume" in everything.stderr) == (1, True)
    assert "Kept 2 files from an earlier export" in everything.stderr
    others = acme("export", "--all", "--account", "other", "--to", str(folder))
    assert others.stderr == f"Exported 1 resume to {folder}.\n"
    names = {"AdaResume.json", f"AdaResume-{twin}.json", f"AdaResume-{third}.json", "BoResume.json"}
    assert {file.name for file in folder.iterdir()} == names
    assert json.loads((folder / f"AdaResume-{third}.json").read_bytes())["title"] == "Third"

    # Each goes to its own name again.
    acme.succeeds("export", "--all", "--account", "other", "--to", str(folder), "--overwrite")
    acme.succeeds("export", "--all", *mine, "--to", str(folder), "--overwrite")
    assert {file.name for file in folder.iterdir()} == names
    assert "title" not in json.loads((folder / "AdaResume.json").read_bytes())


def test_an_earlier_export_is_kept_unless_it_may_be_overwritten(
    acme: CommandLine, tmp_path: Path
) -> None:
    [ada, _] = store_resumes(acme.home, a_resume("Ada"), a_resume("Bo"))
    acme.succeeds("export", ada, "--to", str(tmp_path))
    edited = tmp_path / "AdaResume.json"
    edited.write_text("edited", encoding="ascii")

    beside = acme("export", "--all", "--to", str(tmp_path))

    assert (beside.exit_code, beside.stderr) == (0, f"Exported 2 resumes to {tmp_path}.\n")
    assert edited.read_text(encoding="ascii") == "edited"
    exported = tmp_path / f"AdaResume-{ada}.json"
    assert parse(exported.read_bytes()).name == "Ada"
    kept = acme("export", "--all", "--to", str(tmp_path))
    assert kept.exit_code == 1
    assert kept.stderr.splitlines() == [
        f"Exported 0 resumes to {tmp_path}.",
        "Kept 2 files from an earlier export. Use --overwrite to replace existing files.",
    ]
    exported.unlink()
    replaced = acme("export", "--all", "--to", str(tmp_path), "--overwrite")
    assert replaced.exit_code == 0
    assert replaced.stderr == f"Exported 2 resumes to {tmp_path} (2 files overwritten).\n"
    assert parse(edited.read_bytes()).name == "Ada"


def test_all_is_one_resume_on_each_line_in_either_format(acme: CommandLine, tmp_path: Path) -> None:
    books = {"books": {"column": 0, "items": [{"title": "Notes"}]}}
    [ada, _] = store_resumes(acme.home, a_resume("Ada"), a_resume("Bo", sections=books))

    exported = acme("export", "--all")
    other = acme("export", "--all", "--format", "jsonresume")

    resumes = [json.loads(line) for line in exported.stdout.splitlines()]
    assert [resume["header"]["name"] for resume in resumes] == ["Ada", "Bo"]
    assert exported.stderr == "Exported 2 resumes.\n"
    resumes = [json.loads(line) for line in other.stdout.splitlines()]
    assert [resume["basics"]["name"] for resume in resumes] == ["Ada", "Bo"]
    assert resumes[0]["basics"]["summary"] == "Analyst and metaphysician."
    assert other.stderr.splitlines() == [
        "Exported 2 resumes.",
        "Not supported by JSON Resume, left out: books.",
    ]
    assert parse_imported(other.stdout.splitlines()[0].encode()).name == "Ada"
    for name in ("analyzer", "jsonresume"):  # one lies beside the other
        acme.succeeds("export", ada, "--to", str(tmp_path), "--format", name)
    assert {path.name for path in tmp_path.glob("Ada*")} == {
        "AdaResume.json",
        "AdaResume.jsonresume.json",
    }


def test_what_cannot_be_exported_as_asked_writes_nothing(acme: CommandLine, tmp_path: Path) -> None:
    [ada] = store_resumes(acme.home, a_resume())
    for more in ([], ["--to", str(tmp_path / "out")]):
        exported = acme("export", ada, "0" * 24, *more)
        assert (exported.exit_code, exported.stdout) == (1, "")
    assert not (tmp_path / "out").exists()
    folder = tmp_path / "file" / "folder"
    (tmp_path / "file").write_text("", encoding="ascii")
    message = acme.fails(2, "export", "--all", "--to", str(folder))
    assert message == f"Cannot write to {folder}: Not a directory"
    for words, why in (
        (["pdf"], "Several PDFs need a folder: use --to DIR"),
        (["docx"], "Several Word documents need a folder: use --to DIR"),
        (["docx", "--layout", "single"], "--layout and --paper are for --format pdf"),
        (["analyzer", "--layout", "single"], "are for --format pdf"),
        (["jsonresume", "--anonymous"], "are for --format pdf"),
    ):
        assert why in acme.fails(2, "export", "--all", "--format", *words)


# PDFs


TOO_LONG = {"summaries": {"column": 0, "items": [{"text": "word " * 4_000}] * 11}}


def test_each_resume_is_a_pdf_in_the_folder(acme: CommandLine, tmp_path: Path) -> None:
    [ada, _] = store_resumes(acme.home, a_resume("Ada Lovelace"), a_resume("Bo"))
    (acme.home / "config.toml").write_text("pdf = false", encoding="ascii")  # of the API alone

    exported = acme("export", "--all", "--format", "pdf", "--to", str(tmp_path))

    assert exported.stderr == f"Exported 2 resumes to {tmp_path}.\n"
    names = {"AdaLovelaceResume.pdf": "Ada", "BoResume.pdf": "Bo"}
    assert {path.name for path in tmp_path.glob("*.pdf")} == set(names)
    for name, person in names.items():
        page = pypdf.PdfReader(tmp_path / name).pages[0]
        assert person in page.extract_text()
        assert page.mediabox.width == pytest.approx(595, abs=1)

    chosen = ("--layout", "single", "--paper", "letter", "--anonymous")
    acme.succeeds("export", ada, "--format", "pdf", *chosen, "--to", str(tmp_path / "chosen"))

    [path] = (tmp_path / "chosen").iterdir()
    page = pypdf.PdfReader(path).pages[0]
    assert page.mediabox.width == pytest.approx(612, abs=1)
    assert "Candidate" in page.extract_text()
    assert "Lovelace" not in page.extract_text() + path.name


def test_one_pdf_alone_goes_to_a_pipe_and_to_no_terminal(acme: CommandLine, tmp_path: Path) -> None:
    [ada] = store_resumes(acme.home, a_resume())

    exported = acme("export", ada, "--format", "pdf")

    assert exported.stdout_bytes.startswith(b"%PDF-")
    assert exported.stderr == "Exported 1 resume.\n"
    words = ("--home", str(acme.home), "export", ada, "--format", "pdf")
    code, _, written = on_terminal(*words, is_all=True)
    assert code == 2
    assert "use --to DIR, or redirect it to a file" in " ".join(written.split())
    code, _, written = on_terminal(*words, "--to", str(tmp_path))
    assert (code, "exported 0 of 1 resumes" in written) == (0, True)


def test_each_resume_is_a_word_document_in_the_folder(acme: CommandLine, tmp_path: Path) -> None:
    [ada, _] = store_resumes(acme.home, a_resume("Ada Lovelace"), a_resume("Bo.docx"))

    exported = acme("export", "--all", "--format", "docx", "--to", str(tmp_path))

    assert exported.stderr == f"Exported 2 resumes to {tmp_path}.\n"
    assert {path.name for path in tmp_path.glob("*.docx")} == {
        "AdaLovelaceResume.docx",
        "Bo.docxResume.docx",
    }
    piped = acme("export", ada, "--format", "docx").stdout_bytes
    assert piped == (tmp_path / "AdaLovelaceResume.docx").read_bytes()
    hidden = tmp_path / "hidden"
    acme.succeeds("export", ada, "--format", "docx", "--anonymous", "--to", str(hidden))
    [path] = hidden.iterdir()
    assert path.name == f"Candidate{ada[-3:].upper()}Resume.docx"


def test_all_are_a_book_whose_candidates_are_named_in_a_file_of_its_own(
    acme: CommandLine, tmp_path: Path
) -> None:
    ada, bo = store_resumes(acme.home, a_resume(), a_resume("=Bo"))
    path, names = tmp_path / "book.pdf", tmp_path / "names.csv"
    words = ("export", "--all", "--format", "pdf", "--book", str(path))

    exported = acme(*words, "--anonymous", "--candidates", str(names))

    assert (exported.exit_code, exported.stdout) == (0, "")
    assert exported.stderr == f"Exported 2 resumes to {path}.\n"
    assert names.read_bytes() == (
        b"\xef\xbb\xbfcandidate,id,name\r\n"
        + f"Candidate 1,{ada},Ada Lovelace\r\nCandidate 2,{bo},'=Bo\r\n".encode()
    )
    text = "".join(page.extract_text() for page in pypdf.PdfReader(path).pages)
    assert "Candidate 2" in text
    assert "Lovelace" not in text
    assert "replace an earlier export with --overwrite" in acme.fails(1, *words)
    acme.succeeds(*words, "--overwrite", "--layout", "single", "--paper", "letter")
    pages = pypdf.PdfReader(path).pages
    assert {page.mediabox.width for page in pages} == {612}
    assert "Ada Lovelace" in pages[2].extract_text()


def test_the_house_style_is_shown_unless_it_is_refused(acme: CommandLine, tmp_path: Path) -> None:
    store_resumes(acme.home, a_resume())
    folder = acme.home / "branding" / "acme"
    folder.mkdir(parents=True)
    (folder / "branding.toml").write_text('name = "Example Service"', encoding="ascii")
    path = tmp_path / "book.pdf"
    for words, pages in (([], [True, False, True]), (["--no-brand"], [False] * 3)):
        acme.succeeds(
            "export", "--all", "--format", "pdf", "--book", str(path), "--overwrite", *words
        )
        texts = [page.extract_text() for page in pypdf.PdfReader(path).pages]
        assert ["Example Service" in text for text in texts] == pages
    assert "--no-brand for pdf and docx" in acme.fails(2, "export", "--all", "--no-brand")


def test_what_is_no_book_is_said_and_writes_nothing(
    acme: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "book.pdf"
    words = ("export", "--all", "--format", "pdf", "--book", str(path))
    assert acme.fails(2, *words) == "There are no resumes for the book"
    store_resumes(acme.home, a_resume(sections=TOO_LONG))
    assert "No resume of the book could be rendered: Too long for a PDF" in acme.fails(2, *words)
    store_resumes(acme.home, a_resume(), a_resume("Bo"))
    for more, why in (
        (["--to", str(tmp_path)], "--book is for --format pdf, and takes the place of --to"),
        (["--candidates", str(path)], "--candidates is for --book with --anonymous"),
        (["--anonymous", "--candidates", str(path)], "name the same file"),
    ):
        assert why in acme.fails(2, *words, *more)
    monkeypatch.setattr("resumes.export.MAX_RESUMES", 2)
    assert "A book holds up to 2 resumes: choose fewer" in acme.fails(2, *words)
    assert not list(tmp_path.glob("*.p*"))
    monkeypatch.undo()
    exported = acme(*words)
    assert exported.exit_code == 1
    assert "Could not generate the PDF of resume" in exported.stderr
    assert path.is_file()


@pytest.mark.parametrize("kind", ["pdf", "docx"])
def test_several_renderers_write_the_same_files_as_one_and_name_what_cannot_be_drawn(
    acme: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    bodies = [a_resume(header={"name": "Ada", "title": str(number)}) for number in range(5)]
    bodies[2] = a_resume("Ada", sections=TOO_LONG)
    ids = store_resumes(acme.home, *bodies)
    results = []
    for count in ("1", "3"):
        monkeypatch.setenv("RESUMES_RENDERERS", count)
        folder = tmp_path / count
        exported = acme("export", "--all", "--format", kind, "--to", str(folder))
        assert exported.exit_code == 1
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        results.append((files, exported.stderr.replace(str(folder), "")))
    assert results[0] == results[1]
    assert len(results[0][0]) == 4
    first, last = results[0][1].splitlines()
    assert f" of resume {ids[2]}: Too long for a " in first
    assert "Exported 4 resumes" in last


@pytest.mark.parametrize("name", [b"home", b"h\xe9"], ids=["UTF-8", "not UTF-8"])
def test_pdfs_are_made_in_a_home_of_any_name_with_its_fonts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: bytes
) -> None:
    own = CommandLine(tmp_path / os.fsdecode(name))
    own.succeeds("accounts", "create", "acme")
    if has_font := bool(find_cjk_fonts()):
        monkeypatch.setattr("resumes.rendering.fonts.SYSTEM_FONTS", ())
        add_cjk_font(own.home)
    store_resumes(own.home, a_resume("山田" if has_font else "Ada"))

    exported = own("export", "--all", "--format", "pdf", "--to", str(tmp_path))

    assert exported.stderr == f"Exported 1 resume to {tmp_path}.\n"


def test_without_a_terminal_nothing_is_destroyed_unless_yes_is_said(acme: CommandLine) -> None:
    [ada] = store_resumes(acme.home, a_resume("Ada"))
    key = acme.answers("keys", "create", "acme", "--json")["id"]
    commands = [("delete", ada), ("keys", "revoke", key)]
    commands.append(("accounts", "delete", "acme", "--with-resumes"))

    for words in commands:
        refused = acme.fails(2, *words)
        assert refused == "Cannot ask for confirmation without a terminal: use --yes"
    assert acme.answers("accounts", "show", "acme", "--json")["resumes"] == 1
    assert [one["state"] for one in acme.answers("keys", "list", "--json")["keys"]] == ["active"]

    for words in commands:
        acme.succeeds(*words, "--yes")
    assert acme.answers("accounts", "list", "--json")["accounts"] == []


@pytest.mark.parametrize(
    ("typed", "words", "code", "left", "said"),
    [
        (b"n\n", [], 1, 1, " Canceled: nothing was done."),
        (b"y\n", [], 0, 0, " Deleted resume "),
        (b"\x04", [], 1, 1, "Error: No answer; nothing was done"),
        pytest.param(b"n\n", ["--yes"], 0, 0, "Deleted resume ", marks=pytest.mark.slow),
    ],
)
def test_on_a_terminal_deleting_asks_unless_yes_is_said(
    acme: CommandLine, typed: bytes, words: list[str], code: int, left: int, said: str
) -> None:
    [ada] = store_resumes(acme.home, a_resume("Ada"))
    line = ("--home", str(acme.home), "delete", ada, *words)

    ended, _, written = on_terminal(*line, typed=typed, is_all=True)

    asks = 'Permanently delete "Ada Resume"?' in written
    assert (ended, asks) == (code, not words), written
    assert said in written
    assert acme.answers("accounts", "show", "acme", "--json")["resumes"] == left


def test_a_resume_deleted_during_an_export_leaves_out_no_other(acme: CommandLine) -> None:
    ada, bo, cy = store_resumes(acme.home, a_resume("Ada"), a_resume("Bo"), a_resume("Cy"))
    with open_home(acme.home) as store:
        owner = accounts.get_account(store, "acme")
        exported = export.iter_resumes(store, owner.id)
        first = next(exported)
        stored_resumes.delete_resume(store, owner.id, bo)
        assert [resume.entry.id for resume in (first, *exported)] == [ada, cy]
