import pytest

from importer.parts import (
    CannotUnpack,
    Limits,
    cut,
    file_too_large,
    invalid_archive,
    resume_too_large,
    too_many_parts,
)
from resumes.errors import TooLarge
from resumes.reasons import Reason

LIMITS = Limits(max_bytes=1_000, max_file_bytes=2_000, max_parts=3_000)


def test_a_part_is_cut_out_as_bytes_of_its_own() -> None:
    content = bytearray(b"[{}, {}]")
    body = cut(content, 1, 3)
    content += b" "
    assert body == b"{}"
    assert type(body) is bytes


def test_a_resume_over_the_limit_is_refused_in_the_words_of_the_api() -> None:
    assert resume_too_large(LIMITS).message == TooLarge(limit_bytes=1_000).message
    assert resume_too_large(LIMITS).reason is Reason.TOO_LARGE


def test_a_file_over_a_limit_is_told_which_one_and_what_to_do() -> None:
    for refusal, limit in (
        (file_too_large(LIMITS), "2000 bytes"),
        (too_many_parts(LIMITS), "3,000"),
    ):
        assert refusal.reason is Reason.TOO_LARGE
        assert limit in refusal.message
        assert refusal.message.endswith("Split it into several files")


def test_what_cannot_be_unpacked_says_why() -> None:
    with pytest.raises(CannotUnpack, match="It is encrypted") as caught:
        raise CannotUnpack(invalid_archive("It is encrypted"))
    assert caught.value.refusal.reason is Reason.INVALID_ARCHIVE
