import os
from pathlib import Path

import pytest

from importer import judging, reading
from importer.outcomes import Refusal
from resumes import analyzer
from resumes.analyzer import DEFAULT_FORMAT, Format, Resume
from resumes.errors import InvalidJson, InvalidResume, NotFound, ResumesError
from resumes.reasons import Reason
from tests.resumes.builders import a_document


def test_a_valid_resume_is_one() -> None:
    assert judging.judge(a_document(), DEFAULT_FORMAT) == analyzer.parse(a_document())


def test_a_json_resume_is_one_too() -> None:
    verdict = judging.judge(b'{"basics": {"name": "Ada"}, "work": []}', DEFAULT_FORMAT)
    assert isinstance(verdict, Resume)
    assert verdict.name == "Ada"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{}",
        b"[]",
        b"{} {}",
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        b"\x00" * 50,
        a_document()[:-1],
        a_document() + b"\x00",
        b'{"header": NaN}',
        b'{"a": 1, "a": 2}',
        b'{"a": "\\ud800"}',
        b"[" * 100_000,
        a_document(type="coverLetter"),
        a_document(header=5, title=7),
    ],
)
def test_the_verdict_is_the_one_that_posting_the_same_bytes_gets(body: bytes) -> None:
    with pytest.raises(ResumesError) as caught:
        analyzer.parse(body)
    error = caught.value
    verdict = judging.judge(body, DEFAULT_FORMAT)
    assert isinstance(verdict, Refusal)
    assert (verdict.reason, verdict.message) == (error.code.value, error.message)
    if isinstance(error, InvalidJson):
        assert verdict.byte_offset == error.offset
    if isinstance(error, InvalidResume):
        assert (verdict.path, verdict.issues) == (error.issues[0].path, error.issues)


def test_what_is_over_the_limit_is_too_large() -> None:
    verdict = judging.judge(a_document(), Format(max_bytes=20))
    assert verdict == Refusal(Reason.TOO_LARGE, "Resume too large: the limit is 20 bytes")


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(reading.NotAFile) as caught:
        reading.open_file(tmp_path / "pipe.json")
    assert judging.unreadable(caught.value) == Refusal(Reason.UNREADABLE, "Not a regular file")
    refused = judging.unreadable(PermissionError(13, "Permission denied"))
    assert refused == Refusal(Reason.UNREADABLE, "Cannot read it: Permission denied")


def test_an_error_that_no_file_can_cause_is_told_all_the_same() -> None:
    refused = judging.refusal(NotFound("Account not found"))
    assert refused == Refusal(Reason.ACCOUNT_DELETED, "Account not found")


def test_a_fault_of_ours_is_an_internal_error_with_an_id_that_the_log_knows(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(body: bytes, format: Format) -> Resume:  # noqa: A002  (as in analyzer.parse)
        raise RuntimeError("broken")

    monkeypatch.setattr(analyzer, "parse_imported", broken)
    verdict = judging.judge(a_document(), DEFAULT_FORMAT)
    assert isinstance(verdict, Refusal)
    assert verdict.reason is Reason.INTERNAL_ERROR
    assert verdict.message.split()[2].rstrip(";") in caplog.text
    assert "RuntimeError: broken" in caplog.text
