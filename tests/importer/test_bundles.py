import json
from pathlib import Path

import pytest

from importer import bundles, judging, reading
from importer.bundles import SLICE_ITEMS, Bundle, as_ledger_text
from importer.outcomes import Conclusion, ItemConclusion, Refusal
from importer.parts import CannotUnpack, Limits
from importer.reading import NotAFile
from resumes.analyzer import DEFAULT_FORMAT, Format, Resume
from resumes.errors import Issue
from resumes.reasons import Reason
from resumes.store.items import MOST_PROBLEMS, parse_items
from resumes.store.ledger import FileOutcome
from tests.importer.builders import DONE, FAILED
from tests.importer.packing import WIDE, gzipped, zipped
from tests.resumes.builders import a_document


def lines(count: int) -> bytes:
    """NDJSON of so many resumes."""
    return b"".join(a_document(f"Person {number}") + b"\n" for number in range(1, count + 1))


def opened(
    tmp_path: Path,
    content: bytes,
    name: str = "ana/cv.ndjson",
    accepted: Format = DEFAULT_FORMAT,
    limits: Limits = WIDE,
) -> Bundle:
    """The claimed file, open; `name` is what it was called."""
    path = tmp_path / ("1" * 24)
    path.write_bytes(content)
    return Bundle(str(path), name, accepted, limits)


def refused(
    tmp_path: Path,
    content: bytes,
    name: str = "ana/cv.ndjson",
    accepted: Format = DEFAULT_FORMAT,
    limits: Limits = WIDE,
) -> Refusal:
    """Why nothing of the file can be had."""
    with pytest.raises(CannotUnpack) as caught:
        opened(tmp_path, content, name, accepted, limits)
    return caught.value.refusal


# Slices


def test_a_file_is_given_slice_by_slice_until_nothing_is_left(tmp_path: Path) -> None:
    bundle = opened(tmp_path, lines(2 * SLICE_ITEMS + 5))
    slices = [bundle.next_slice() for _ in range(4)]
    assert [len(portions) for portions in slices] == [SLICE_ITEMS, SLICE_ITEMS, 5, 0]
    numbers = [portion.part.number for portions in slices for portion in portions]
    assert numbers == list(range(1, 2 * SLICE_ITEMS + 6))


def test_a_slice_of_large_resumes_has_fewer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "SLICE_BYTES", 2 * len(a_document("Person 1")))
    bundle = opened(tmp_path, lines(5))
    assert [len(bundle.next_slice()) for _ in range(4)] == [2, 2, 1, 0]


def test_the_signature_is_that_of_what_was_read(tmp_path: Path) -> None:
    bundle = opened(tmp_path, lines(1))
    assert bundle.signature == reading.find_signature(tmp_path / ("1" * 24))


# Portions


def test_a_resume_on_its_way_in_has_the_digest_of_its_own_bytes_and_its_number(
    tmp_path: Path,
) -> None:
    document = a_document("Ada")
    content = b"[ " + a_document("Bo") + b" ,\n " + document + b"\n]"
    new = opened(tmp_path, content, "ana/cv.json").next_slice()[1].new_resume()
    assert new is not None
    assert new.resume.name == "Ada"
    assert (new.item, new.digest) == (2, reading.digest(document))


def test_what_is_no_resume_does_not_go_in_and_the_others_do(tmp_path: Path) -> None:
    content = a_document("Ada") + b"\nnonsense\n{}\n" + a_document("Bo")
    portions = opened(tmp_path, content).next_slice()
    verdicts = [portion.verdict for portion in portions]
    assert [isinstance(verdict, Resume) for verdict in verdicts] == [True, False, False, True]
    assert [portion.new_resume() is None for portion in portions] == [False, True, True, False]
    assert isinstance(verdicts[1], Refusal)
    assert verdicts[1].reason is Reason.INVALID_JSON
    assert portions[1].part.place == "line 2"


def test_a_member_that_cannot_be_had_is_refused_and_the_others_are_not(tmp_path: Path) -> None:
    content = zipped({"a.json": a_document("Ada"), "b.zip": b"PK\x03\x04"})
    first, second = opened(tmp_path, content, "ana/cv.zip").next_slice()
    assert isinstance(first.verdict, Resume)
    assert isinstance(second.verdict, Refusal)
    assert second.verdict == second.part.refusal


# Files that turn out to be something else


@pytest.mark.parametrize("name", ["1" * 24, "ana/cv.json"])
def test_a_file_that_holds_one_resume_after_all_has_one_part(tmp_path: Path, name: str) -> None:
    bundle = opened(tmp_path, a_document("Ada"), name)
    (portion,) = bundle.next_slice()
    assert isinstance(portion.verdict, Resume)
    assert (portion.part.number, portion.part.place) == (1, "")
    assert bundle.next_slice() == []


def test_a_file_whose_name_is_lost_is_told_by_its_content(tmp_path: Path) -> None:
    for content in (gzipped(lines(2)), zipped({"a.json": a_document()}), lines(2)):
        assert opened(tmp_path, content, "1" * 24).next_slice()


def test_what_is_no_resume_and_not_several_is_refused_as_one(tmp_path: Path) -> None:
    body = b'{"header": 5}'
    assert refused(tmp_path, body, "1" * 24) == judging.judge(body, DEFAULT_FORMAT)
    large = refused(tmp_path, a_document(), "ana/cv.json", Format(max_bytes=20))
    assert large == Refusal(Reason.TOO_LARGE, "Resume too large: the limit is 20 bytes")


def test_a_file_that_is_too_large_or_damaged_is_refused_whole(tmp_path: Path) -> None:
    large = refused(tmp_path, lines(2), limits=Limits(max_bytes=20, max_file_bytes=20))
    assert large.reason is Reason.TOO_LARGE
    assert "max_file_bytes" in large.message
    assert refused(tmp_path, b"[" + a_document(), "a.json").reason is Reason.INVALID_JSON
    damaged = gzipped(lines(2))[:-4]
    assert refused(tmp_path, damaged, "a.json.gz").reason is Reason.INVALID_ARCHIVE


def test_what_cannot_be_opened_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Bundle(str(tmp_path / "gone"), "a.ndjson", DEFAULT_FORMAT, WIDE)
    with pytest.raises(NotAFile):
        Bundle(str(tmp_path), "a.ndjson", DEFAULT_FORMAT, WIDE)


# What became of the items


def test_what_became_of_each_item_is_collected_with_its_place(tmp_path: Path) -> None:
    bundle = opened(tmp_path, lines(2))
    first, second = bundle.next_slice()
    warnings = (Issue("nickname", "is unknown"),)
    bundle.conclude(first, Conclusion(FileOutcome.DONE, "2" * 24, warnings=warnings))
    bundle.conclude(second, FAILED)
    assert bundle.items == [
        ItemConclusion(1, "line 1", FileOutcome.DONE, "2" * 24, warnings=warnings),
        ItemConclusion(2, "line 2", FileOutcome.FAILED, refusal=FAILED.refusal),
    ]


def item(number: int, outcome: FileOutcome) -> ItemConclusion:
    refusal = None if outcome is FileOutcome.DONE else FAILED.refusal
    return ItemConclusion(number, f"line {number}", outcome, refusal=refusal)


def test_the_ledger_counts_all_items_and_tells_of_the_first_that_are_not_done() -> None:
    ends = [FileOutcome.DONE, FileOutcome.FAILED, FileOutcome.HELD, FileOutcome.DUPLICATE] * 40
    text = as_ledger_text(tuple(item(number, end) for number, end in enumerate(ends, 1)))
    assert text is not None
    kept = json.loads(text)
    assert {key: kept[key] for key in ("total", "done", "failed", "held", "duplicate")} == {
        "total": 160,
        "done": 40,
        "failed": 40,
        "held": 40,
        "duplicate": 40,
    }
    problems = kept["problems"]
    assert len(problems) == MOST_PROBLEMS
    assert problems[0] == {
        "item": 2,
        "place": "line 2",
        "outcome": "failed",
        "reason": "invalid_json",
        "message": "Invalid JSON: cut short",
        "path": None,
        "byteOffset": 1,
    }


def test_the_ledger_reads_what_it_is_given() -> None:
    text = as_ledger_text((item(1, FileOutcome.DONE), item(2, FileOutcome.FAILED)))
    assert text is not None
    items = parse_items(text)
    assert (items.total, items.failed) == (2, 1)
    assert [problem.place for problem in items.problems] == ["line 2"]


def test_of_a_file_of_one_the_ledger_keeps_no_items() -> None:
    assert as_ledger_text(DONE.items) is None
