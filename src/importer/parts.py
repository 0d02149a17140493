"""What a file of several resumes gives: its parts, or the one reason why it gives none."""

from dataclasses import dataclass

from importer.outcomes import Refusal
from resumes.errors import InvalidJson, TooLarge
from resumes.reasons import Reason

Bytes = bytes | bytearray
"""The whole of a file or of a member, inflated."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a file is taken."""

    max_bytes: int
    """Of one resume (`Format.max_bytes`)."""

    max_file_bytes: int
    """Of the whole file, inflated; of a zip, of all members that are opened together."""

    max_parts: int = 100_000
    """Resumes in a file."""

    max_members: int = 10_000
    """Members of a zip, whatever they are; streams of a gzip file."""


@dataclass(frozen=True, slots=True)
class Part:
    """One resume of a file, as bytes that nobody has parsed yet, or why it cannot be had."""

    number: int
    """From 1 through the whole file, parts that are refused among them."""

    place: str
    """For people: "item 3", "member good/a.json", "member more.ndjson, line 2"; empty for the only
    value of a file. Names of members are escaped in it."""

    byte_offset: int | None
    """Where the part begins in the inflated file or member; None for a member that is refused."""

    body: bytes
    """The JSON value's own bytes, outer white space cut; empty when it is refused."""

    refusal: Refusal | None = None


class CannotUnpack(Exception):
    """Nothing of a file or of a member can be had, for the reason in `refusal`."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def cut(content: Bytes, begin: int, end: int) -> bytes:
    """These bytes of the content, copied once."""
    with memoryview(content) as view:
        return bytes(view[begin:end])


def resume_too_large(limits: Limits) -> Refusal:
    """For a resume over the limit, in the words of the API."""
    return Refusal(Reason.TOO_LARGE, TooLarge(limit_bytes=limits.max_bytes).message)


def file_too_large(limits: Limits) -> Refusal:
    """For a file that is too large, whatever its parts are."""
    return Refusal(
        Reason.TOO_LARGE,
        f"File too large: inflated, the limit is {limits.max_file_bytes} bytes (max_file_bytes). "
        "Split it into several files",
    )


def too_many_parts(limits: Limits) -> Refusal:
    """For a file of more resumes than are taken from one."""
    return Refusal(
        Reason.TOO_LARGE,
        f"File too large: it holds more than {limits.max_parts:,} resumes. "
        "Split it into several files",
    )


def invalid_archive(message: str) -> Refusal:
    """For an archive or a member that cannot be opened."""
    return Refusal(Reason.INVALID_ARCHIVE, message)


def invalid_json(error: InvalidJson) -> Refusal:
    """For a file or a member that is not JSON as a whole."""
    return Refusal(Reason.INVALID_JSON, error.message, byte_offset=error.offset)


def holds_no_resume(why: str) -> Refusal:
    """For white space alone, which is no JSON."""
    return Refusal(Reason.INVALID_JSON, f"It holds no resume: {why}", byte_offset=0)
