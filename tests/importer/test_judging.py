import os
from pathlib import Path

import pytest

from importer import judging
from importer.judging import Judged
from importer.outcomes import Reason, Refusal
from resumes import analyzer
from resumes.analyzer import DEFAULT_FORMAT, Format, Resume
from resumes.errors import InvalidJson, InvalidResume, ResumesError
from tests.resumes.builders import a_document


def judge(tmp_path: Path, body: bytes) -> Judged:
    path = tmp_path / "a.json"
    path.write_bytes(body)
    result = judging.judge(str(path), DEFAULT_FORMAT)
    assert result is not None
    return result


def test_a_valid_resume_is_whole(tmp_path: Path) -> None:
    judged = judge(tmp_path, a_document())
    assert judged.is_whole
    assert isinstance(judged.verdict, Resume)


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
def test_the_verdict_is_the_one_that_posting_the_same_bytes_gets(
    tmp_path: Path, body: bytes
) -> None:
    with pytest.raises(ResumesError) as caught:
        analyzer.parse(body)
    error = caught.value
    verdict = judge(tmp_path, body).verdict
    assert isinstance(verdict, Refusal)
    assert (verdict.reason, verdict.message) == (error.code.value, error.message)
    if isinstance(error, InvalidJson):
        assert verdict.byte_offset == error.offset
    if isinstance(error, InvalidResume):
        assert (verdict.path, verdict.issues) == (error.issues[0].path, error.issues)


def test_a_file_over_the_limit_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(a_document())
    judged = judging.judge(str(path), Format(max_bytes=20))
    assert judged is not None
    assert isinstance(judged.verdict, Refusal)
    assert judged.verdict.reason is Reason.TOO_LARGE
    assert judged.verdict.message == "Resume too large: the limit is 20 bytes"


def test_a_file_that_vanished_has_no_verdict(tmp_path: Path) -> None:
    assert judging.judge(str(tmp_path / "gone.json"), DEFAULT_FORMAT) is None


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    judged = judging.judge(str(tmp_path / "pipe.json"), DEFAULT_FORMAT)
    assert judged is not None
    assert judged.verdict == Refusal(Reason.UNREADABLE, "Not a regular file")


def test_a_fault_of_ours_is_an_internal_error_with_an_id_that_the_log_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(body: bytes, format: Format) -> Resume:  # noqa: A002  (as in analyzer.parse)
        raise RuntimeError("broken")

    monkeypatch.setattr(analyzer, "parse", broken)
    verdict = judge(tmp_path, a_document()).verdict
    assert isinstance(verdict, Refusal)
    assert verdict.reason is Reason.INTERNAL_ERROR
    assert verdict.message.split()[2].rstrip(";") in caplog.text
