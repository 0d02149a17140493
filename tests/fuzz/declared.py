"""The errors that reading may end in, what must be true of each, and how long it may take."""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from resumes.analyzer import Format, Resume
from resumes.errors import CoverLetter, InvalidInput, InvalidJson, InvalidResume, Issue, TooLarge
from resumes.text import is_harmless
from tests.fuzz import oracle

BASE_S: Final = 2.0
"""For any input, however short: what else runs on the machine slows the processor too."""

PER_BYTE_S: Final = 50e-6


@contextmanager
def bounded(size_bytes: int) -> Iterator[None]:
    """What is done within took no more processor time than its input of so many bytes may."""
    began_s = time.thread_time()
    yield
    took_s = time.thread_time() - began_s
    allowed_s = BASE_S + size_bytes * PER_BYTE_S
    assert took_s <= allowed_s, f"{took_s:.2f} s for {size_bytes} bytes: {allowed_s:.2f} s allowed"


FORMAT: Final = Format(extra_section_types=frozenset({"hobbies"}), max_bytes=64 * 1024)
MOST_ISSUES: Final = 50
MISSING: Final = {"header", "sections", "column"}
"""What an error may name though it is not there."""


def read(parse: Callable[[bytes, Format], Resume], body: bytes) -> Resume | InvalidInput:
    """What parsing came to, in time; anything but the four declared errors goes through."""
    try:
        with bounded(len(body)):
            return parse(body, FORMAT)
    except (TooLarge, InvalidJson, CoverLetter, InvalidResume) as error:
        check_error(error, body)
        return error


def check_error(error: InvalidInput, body: bytes) -> None:
    """The error is true of these bytes, and points into them."""
    value = oracle.find_value(body)
    assert is_harmless(error.message)
    if isinstance(error, TooLarge):
        assert len(body) > FORMAT.max_bytes
    elif isinstance(error, InvalidJson):
        assert value is None, f"it can be kept: {error.message}"
        assert error.offset is None or 0 <= error.offset <= len(body)
    else:
        assert value is not None, "it is no JSON that can be kept"
        if isinstance(error, InvalidResume):
            assert 1 <= len(error.issues) <= MOST_ISSUES
            check_issues(error.issues, value[0])


def check_issues(issues: Sequence[Issue], document: Any) -> None:
    """Each names a place in the document, the document as a whole, or what is missing there."""
    paths: Collection[str] | None = None
    for issue in issues:
        assert is_harmless(issue.path)
        assert is_harmless(issue.message)
        if issue.path:
            paths = paths if paths is not None else set(oracle.paths_of(document))
            parent, _, last = issue.path.rpartition(".")
            is_missing = last in MISSING and (not parent or parent in paths)
            assert issue.path in paths or is_missing, f"nothing is at {issue.path}"
