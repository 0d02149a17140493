"""Any bytes, as a file of any kind that is dropped into the inbox, read as a worker reads it.

The first line says how the rest is packed and what the file is called: `gzip b.ndjson.gz`. So an
input is readable, and what is packed is reached without a correct checksum by chance.
"""

import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import gettempdir
from typing import Final, NamedTuple

from importer import files, filing, json_texts, outcomes
from importer.claims import Claim, File, State
from importer.json_texts import CannotUnpack
from importer.options import Limits, Options
from importer.outcomes import NONE_SKIPPED, Result, Tally
from importer.reader import inspect
from importer.slices import Bundle, Portion
from resumes.analyzer import Resume
from resumes.import_reasons import Reason
from resumes.store.import_ledger import FileOutcome
from resumes.text import is_harmless
from resumes.watched_names import find_extension
from tests.fuzz import oracle
from tests.fuzz.declared import FORMAT, bounded
from tests.fuzz.parsing import check_stored

LIMITS: Final = Limits(
    max_bytes=FORMAT.max_bytes, max_file_bytes=4 * FORMAT.max_bytes, max_parts=100, max_members=20
)
MAX_NAME_BYTES: Final = 200
MEMBER: Final = "a.json"
MOST_CHECKED: Final = 5
"""Resumes of a bundle that are sent again, which takes far longer than reading them."""


class Dropped(NamedTuple):
    """A file in the inbox. `content` is what was packed, None where that is not known."""

    name: str
    body: bytes
    content: bytes | None


def check_dropped_file(data: bytes) -> None:
    """Whatever it holds, it comes to an end that can be reported, and so does each item."""
    dropped = parse_dropped(data)
    path = Path(gettempdir()) / f"resumes-fuzz-{os.getpid()}"
    path.write_bytes(dropped.body)
    try:
        with bounded(len(data) + LIMITS.max_file_bytes):
            verdict = _try(path, dropped.name)
            portions = list(_iter_portions(path, dropped.name)) if verdict is None else []
    except CannotUnpack as error:
        _check_refusal(error.refusal)
        _check_items_cannot_be_had(dropped, error.refusal)
        _check_report(dropped, error.refusal)
    else:
        if verdict is None:
            _check_portions(dropped, portions)
        else:
            _check_one(dropped, verdict)
    finally:
        path.unlink()


def parse_dropped(data: bytes) -> Dropped:
    """The file that an input stands for."""
    head, _, content = data.partition(b"\n")
    packing, _, shown = head.partition(b" ")
    pack = _PACKINGS.get(packing, bytes)
    is_known = packing in _PACKINGS and not content.startswith(_ARCHIVES)
    # A name has no slash and no NUL, and is not empty.
    kept = shown.translate(None, b"/\0")[:MAX_NAME_BYTES] or b"a.json"
    name, body = files.escaped(os.fsdecode(kept)), pack(content)
    if packing == b"plain" and (find_extension(name) or "").endswith((".gz", ".zip")):
        is_known = False  # it may be an archive all the same
    return Dropped(name, body, content if is_known else None)


def _gzipped(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=1, mtime=0)


def _zipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(MEMBER), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


_ARCHIVES: Final = (b"\x1f\x8b", *json_texts.ZIP_MAGICS)
_PACKINGS: Final[Mapping[bytes, Callable[[bytes], bytes]]] = {
    b"plain": bytes,
    b"gzip": _gzipped,
    b"zip": _zipped,
}


def _try(path: Path, name: str) -> Resume | Result | None:
    """The verdict on the file where it lies; None for a bundle."""
    tried = File(Claim("0" * 24, "a" * 16, "ana", name, is_return=True))
    descriptor = files.open_file(path)
    try:
        inspect(tried, descriptor, Options(format=FORMAT, settle_s=0))
    finally:
        os.close(descriptor)
    assert tried.state is State.READ
    assert tried.signature == files.find_signature(path)
    return tried.verdict


def _iter_portions(path: Path, name: str) -> Iterator[Portion]:
    bundle = Bundle(files.load(path, LIMITS.max_file_bytes), name, FORMAT, LIMITS)
    while portions := bundle.next_slice():
        yield from portions


def _check_one(dropped: Dropped, verdict: Resume | Result) -> None:
    """A file of one resume says what the same bytes say when they are parsed."""
    assert verdict == outcomes.judge(dropped.body, FORMAT)
    if isinstance(verdict, Result):
        _check_refusal(verdict)
        assert verdict.byte_offset is None or verdict.byte_offset <= len(dropped.body)
        _check_report(dropped, verdict)
    else:
        check_stored(verdict)
        _check_report(
            dropped, Result(FileOutcome.DONE, resume_id="f" * 24, warnings=verdict.warnings)
        )


def _check_refusal(refusal: Result) -> None:
    assert refusal.reason is not Reason.INTERNAL_ERROR, "an error that nobody declared"
    assert is_harmless(refusal.message)
    assert refusal.byte_offset is None or refusal.byte_offset >= 0


def _check_portions(dropped: Dropped, portions: list[Portion]) -> None:
    """The parts are what is in the file, each once, in order and in number within the limits."""
    parts = [part for part, _ in portions]
    assert [part.number for part in parts] == list(range(1, len(portions) + 1))
    assert 1 <= len(portions) <= LIMITS.max_parts + 1
    assert sum(len(part.body) for part in parts) <= LIMITS.max_file_bytes
    end = 0
    for part, verdict in portions:
        assert is_harmless(part.place)
        if isinstance(verdict, Result):
            _check_refusal(verdict)
        if dropped.content is not None:
            end = dropped.content.index(part.body, end) + len(part.body)
    for resume in [one for _, one in portions if isinstance(one, Resume)][:MOST_CHECKED]:
        check_stored(resume)
    _check_items(dropped, portions)
    items = Tally()
    for portion in portions:
        items.add(_concluded(portion))
    result = outcomes.sum_up(items, NONE_SKIPPED)
    assert (result.as_ledger_text() or "").isascii()
    _check_report(dropped, result)


def _check_items(dropped: Dropped, portions: list[Portion]) -> None:
    """Of an array, each item is a part; who else reads it finds the same items."""
    if not _is_array(dropped) or any(part.refusal for part, _ in portions):
        return
    assert dropped.content is not None
    expected = oracle.find_items(dropped.content)
    if expected is not None:
        read = [json.loads(part.body.decode("latin-1"), parse_int=str) for part, _ in portions]
        assert json.dumps(read) == json.dumps(expected)


def _check_items_cannot_be_had(dropped: Dropped, refusal: Result) -> None:
    """An array that is refused as no JSON is none to others either."""
    if _is_array(dropped) and refusal.reason is Reason.INVALID_JSON:
        assert dropped.content is not None
        assert refusal.byte_offset is not None
        assert 0 <= refusal.byte_offset <= len(dropped.content)
        expected = oracle.find_items(dropped.content)
        assert expected is None or "nested deeper" in refusal.message, refusal.message


def _is_array(dropped: Dropped) -> bool:
    content, extension = dropped.content, find_extension(dropped.name)
    if content is None or not content.lstrip(files.JSON_SPACE).startswith(b"["):
        return False
    is_packed = content != dropped.body
    packed = {".json.gz", ".gz"} if dropped.body.startswith(b"\x1f\x8b") else set()
    return extension in (packed if is_packed else {".json"}) and json_texts.is_json_bundle(content)


def _concluded(portion: Portion) -> Result:
    part, verdict = portion
    if isinstance(verdict, Result):
        return verdict._replace(item=part.number, place=part.place)
    done = Result(FileOutcome.DONE, resume_id="f" * 24, warnings=verdict.warnings)
    return done._replace(item=part.number, place=part.place)


def _check_report(dropped: Dropped, result: Result) -> None:
    """It can be written, read, shown, and told from a resume when somebody drops it."""
    claim = Claim("0" * 24, "a" * 16, "ana", dropped.name)
    signature = files.Signature(1, len(dropped.body), 0)
    report = filing.compose(claim, signature, result, sha256=None, now_us=0)
    assert all(map(is_harmless, report.decode().split("\n")))
    assert json.loads(report)["file"] == dropped.name
    assert filing.parse_report(report)
    assert json.loads(report)["hint"]
