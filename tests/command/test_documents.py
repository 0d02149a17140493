"""Documents in the watched folder, as the command line shows and forgets them."""

import json
import re
from pathlib import Path

import pytest

from tests.command.conftest import CommandLine
from tests.support.analyzers import an_analyzer

ANALYZER = """
text = open(FILE).read()
sys.stderr.write("read " + text.partition("of ")[2])
if "nobody" in text: sys.exit(1)
name, address = text.partition("of ")[2].split()[:2]
print(json.dumps({"header": {"name": name + " Plughsson", "email": address}, "sections": {}}))
"""


@pytest.fixture
def analyzing(acme: CommandLine, tmp_path: Path) -> CommandLine:
    """`acme` with an analyzer, which takes name and address from a document."""
    folder = tmp_path / "analyzer"
    folder.mkdir()
    command = json.dumps(an_analyzer(folder, ANALYZER))
    (acme.home / "config.toml").write_text(f"analyzer = {command}\nsettle_s = 0\n")
    return acme


def drop(run: CommandLine, **documents: str) -> None:
    """Drop PDFs, and import what is there."""
    folder = run.home / "inbox" / "acme"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in documents.items():
        (folder / f"{name}.pdf").write_text(f"%PDF-1.7 of {text}")
    run("watch", "--once")


def ids(run: CommandLine) -> dict[str, str]:
    """The ids of the files by their names."""
    files = run.answers("imports", "list", "--json")["files"]
    return {Path(file["name"]).stem: file["id"] for file in files}


def test_a_file_shows_how_it_was_analyzed_and_what_was_written(analyzing: CommandLine) -> None:
    drop(analyzing, ida="Ida ida@example.org", none="nobody nobody@example.org")
    known = ids(analyzing)

    shown = analyzing.succeeds("imports", "show", known["ida"])
    assert re.search(r"^analyzed +in [0-9.]+ s$", shown, re.MULTILINE)
    assert re.search(r"^analyzer said +read Ida ida@example.org$", shown, re.MULTILINE)
    told = analyzing.answers("imports", "show", known["ida"], "--json")
    assert told["analysis"]["said"] == "read Ida ida@example.org"
    assert told["analysis"]["tookS"] > 0
    assert told["resumeId"]
    source = analyzing.succeeds("imports", "show", known["ida"], "--source")
    assert json.loads(source)["header"]["name"] == "Ida Plughsson"

    failed = analyzing.answers("imports", "show", known["none"], "--json")
    assert (failed["outcome"], failed["reason"]) == ("failed", "analyzer")
    assert failed["message"].endswith("failed with exit code 1: read nobody nobody@example.org")
    assert "imports retry" in failed["hint"]


def test_doctor_says_how_many_documents_wait_and_how_long_they_take(
    analyzing: CommandLine,
) -> None:
    drop(analyzing, ida="Ida ida@example.org")
    (analyzing.home / "inbox/acme/next.pdf").write_text("%PDF")
    told = analyzing("doctor").stdout
    assert re.search(
        r"documents +1 document waiting for the analyzer; of the newest 1 document, half took at "
        r"most [0-9.]+ s, and all at most [0-9.]+ s",
        " ".join(told.split()),
    )
    assert "will not be imported" not in told

    (analyzing.home / "config.toml").write_text("")
    told = " ".join(analyzing("doctor").stdout.split())
    assert "1 file in" in told
    assert 'will not be imported: "next.pdf" (no analyzer is set)' in told
    assert "documents" not in told


def test_a_forgotten_person_leaves_no_documents(analyzing: CommandLine) -> None:
    analyzing.succeeds("plans", "set", "small", "--max-resumes", "2")
    analyzing.succeeds("accounts", "set-plan", "acme", "small")
    drop(analyzing, a="Ida ida@example.org", b="Eva eva@example.org")
    drop(analyzing, c="Ida ida@example.org", d="Ida ida@example.org again")
    drop(analyzing, e="nobody ida@example.org", f="nobody eva@example.org")
    inbox = analyzing.home / "inbox"
    assert len([*inbox.rglob("*.pdf")]) == 6

    told = analyzing("forget", "ida@example.org", "--yes")

    # Of what the analyzer could not read, only its text tells.
    [left] = re.findall(r"^(\S+) may name the person", told.stderr, re.MULTILINE)
    assert "/_failed/analyzer/e-" in left
    Path(left).unlink()
    assert analyzing("forget", "ida@example.org", "--yes").exit_code == 0
    contents = {path.name: path.read_bytes() for path in inbox.rglob("*") if path.is_file()}
    documents = [name for name in contents if name.endswith(".pdf")]
    assert sorted(name[0] for name in documents) == ["b", "f"]
    assert not [name for name, content in contents.items() if b"ida" in content.lower()]
    drop(analyzing, g="Ida ida@example.org")
    assert len([*(inbox / "_failed/forgotten").glob("forgotten-*.pdf")]) == 1
