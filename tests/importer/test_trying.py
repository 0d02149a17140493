import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from importer import leases, reading
from importer.outcomes import Refusal
from importer.reading import NotAFile, Signature
from importer.trying import Known, Trial, Tried
from resumes.analyzer import DEFAULT_FORMAT, Format, Resume
from resumes.reasons import Reason
from tests.importer.builders import FAILED, a_report, a_work_claim
from tests.importer.packing import gzipped
from tests.resumes.builders import a_document

SETTLE_S = 5.0
AN_ARRAY = b"[" + a_document() + b"]"


def tried(
    path: Path, trial: Trial, *, for_s: float | None = None, name: str | None = None
) -> Tried:
    """The file tried after its signature was the same for so long; None is for a new file."""
    signature = reading.find_signature(path)
    assert signature is not None
    known = None if for_s is None else Known(signature, for_s)
    descriptor = reading.open_file(path)
    try:
        return trial.try_open(descriptor, name or path.name, known)
    finally:
        os.close(descriptor)


@pytest.fixture
def trial() -> Trial:
    return Trial(DEFAULT_FORMAT, SETTLE_S)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "cv.json"
    path.write_bytes(a_document())
    return path


# What a file is, and when it may be judged


def test_a_whole_resume_is_ready_at_once(path: Path, trial: Trial) -> None:
    found = tried(path, trial)
    assert isinstance(found.verdict, Resume)
    assert found.is_ready
    assert found.signature == reading.find_signature(path)
    assert found.digest == reading.digest(b"\n" + a_document())


@pytest.mark.parametrize("body", [b"", b"{}", b"\0" * 50, a_document()[:-1], b"[]", AN_ARRAY])
def test_anything_else_is_ready_after_it_was_quiet(path: Path, trial: Trial, body: bytes) -> None:
    path.write_bytes(body)
    readiness = [tried(path, trial, for_s=for_s).is_ready for for_s in (None, 0, 4.9, 5.0, 60)]
    assert readiness == [False, False, False, True, True]
    assert tried(path, trial).digest is None


def test_quiet_before_a_change_does_not_count(path: Path, trial: Trial) -> None:
    path.write_bytes(b"{}")
    known = Known(Signature(1, 2, 3), 1_000)
    with path.open("rb") as file:
        assert not trial.try_open(file.fileno(), "cv.json", known).is_ready


def test_without_a_settling_time_everything_is_ready_at_once(path: Path) -> None:
    path.write_bytes(b"{}")
    assert tried(path, Trial(DEFAULT_FORMAT, 0)).is_ready


@pytest.mark.parametrize("body", [a_document(), b"{}", AN_ARRAY])
def test_what_is_written_to_while_it_is_read_is_not_ready(
    path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    path.write_bytes(body)
    read = reading._read

    def read_slowly(descriptor: int, at_most: int) -> bytes:
        content = read(descriptor, at_most)
        path.write_bytes(b"{")
        return content

    monkeypatch.setattr(reading, "_read", read_slowly)
    assert not tried(path, Trial(DEFAULT_FORMAT, 0)).is_ready


def test_i13_a_report_of_ours_is_never_ready(path: Path, trial: Trial) -> None:
    path.write_bytes(a_report(a_work_claim(path.parent / "work"), FAILED))
    found = tried(path, trial, for_s=1_000)
    assert (found.is_report, found.is_ready) == (True, False)


# Files of several resumes


def test_several_resumes_under_the_name_of_one_are_to_be_unpacked_when_they_settled(
    path: Path, trial: Trial
) -> None:
    path.write_bytes(AN_ARRAY)
    assert isinstance(tried(path, trial).verdict, Refusal)
    found = tried(path, trial, for_s=SETTLE_S)
    assert (found.verdict, found.is_ready) == (None, True)


@pytest.mark.parametrize("name", ["cv.ndjson", "cv.json.gz", "cv.ZIP", "1" * 24])
@pytest.mark.parametrize("body", [a_document(), b"{", gzipped(a_document())])
def test_what_other_names_hold_is_not_looked_at_before_it_is_unpacked(
    path: Path, trial: Trial, name: str, body: bytes
) -> None:
    path.write_bytes(body)
    new, quiet = (tried(path, trial, for_s=for_s, name=name) for for_s in (None, SETTLE_S))
    assert (new.verdict, new.is_ready) == (None, False)
    assert (quiet.verdict, quiet.is_ready) == (None, True)
    assert trial.leaves_unread(name)


def test_a_file_over_the_limit_of_one_resume_may_hold_several(path: Path) -> None:
    small = Trial(Format(max_bytes=20), SETTLE_S)
    assert not small.leaves_unread(path.name)
    assert (tried(path, small).verdict, tried(path, small).is_ready) == (None, False)
    assert tried(path, small, for_s=SETTLE_S).is_ready


# Files that cannot be opened


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "Cannot read it: Permission denied"),
        (NotAFile("Not a regular file: x"), "Not a regular file"),
    ],
)
def test_what_cannot_be_opened_is_ready_after_twelve_settling_times(
    trial: Trial, error: OSError, message: str
) -> None:
    signature = Signature(1, 2, 3)
    for for_s, is_ready in ((0, False), (59.9, False), (60, True)):
        found = trial.try_unreadable(error, signature, Known(signature, for_s))
        assert found == Tried(signature, Refusal(Reason.UNREADABLE, message), is_ready=is_ready)
    assert not trial.try_unreadable(error, signature, None).is_ready
    assert not trial.try_unreadable(error, signature, Known(Signature(9, 2, 3), 60)).is_ready
    assert Trial(DEFAULT_FORMAT, 0).try_unreadable(error, signature, None).is_ready


# Whether a claimed file is what was read

IsFinal = Callable[[float, float | None], bool]


@pytest.fixture
def is_final(path: Path) -> Iterator[IsFinal]:
    """Whether the claimed file is final: `is_final(settle_s, for_s)`."""
    signature = reading.find_signature(path)
    assert signature is not None
    found = Tried(signature, None, is_ready=True)
    descriptor = reading.open_file(path)

    def ask(settle_s: float, for_s: float | None) -> bool:
        known = None if for_s is None else Known(signature, for_s)
        return Trial(DEFAULT_FORMAT, settle_s).is_final(descriptor, str(path), found, known)

    if leases.find_writer(descriptor) is None:
        os.close(descriptor)
        pytest.skip("this file system gives no leases")
    yield ask
    os.close(descriptor)


def refuse_leases(descriptor: int, command: int, argument: int) -> int:
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


@pytest.mark.parametrize("settle_s", [0, 0.2, 5, 60])
def test_i4_a_file_without_a_writer_is_final_at_once(is_final: IsFinal, settle_s: float) -> None:
    assert is_final(settle_s, None)


def test_i4_a_file_that_changed_since_it_was_read_is_not_final(
    path: Path, is_final: IsFinal
) -> None:
    os.utime(path, ns=(0, 0))
    assert not is_final(0, 1_000)


def test_i4_a_file_that_was_replaced_or_is_gone_is_not_final(path: Path, is_final: IsFinal) -> None:
    path.unlink()
    assert not is_final(0, 1_000)
    path.write_bytes(a_document())
    assert not is_final(0, 1_000)


@pytest.mark.parametrize(
    ("settle_s", "quiet_s"), [(0, 60), (1, 60), (5, 60), (10, 120), (3_600, 43_200)]
)
def test_i4_a_file_with_a_writer_is_final_after_a_minute_and_twelve_settling_times(
    path: Path, is_final: IsFinal, settle_s: float, quiet_s: float
) -> None:
    with path.open("ab"):
        assert not is_final(settle_s, None)
        assert not is_final(settle_s, quiet_s - 0.1)
        assert is_final(settle_s, quiet_s)


@pytest.mark.parametrize(("settle_s", "quiet_s"), [(5, 1), (1, 1), (0.2, 0.2)])
def test_i4_where_nothing_is_known_of_writers_a_file_is_final_after_a_second(
    monkeypatch: pytest.MonkeyPatch, is_final: IsFinal, settle_s: float, quiet_s: float
) -> None:
    monkeypatch.setattr(fcntl, "fcntl", refuse_leases)
    assert not is_final(settle_s, None)
    assert not is_final(settle_s, quiet_s - 0.01)
    assert is_final(settle_s, quiet_s)


def test_i4_without_a_settling_time_nothing_is_waited_for_where_nothing_is_known(
    monkeypatch: pytest.MonkeyPatch, is_final: IsFinal
) -> None:
    monkeypatch.setattr(fcntl, "fcntl", refuse_leases)
    assert is_final(0, None)


def test_i4_quiet_before_a_change_does_not_count(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "fcntl", refuse_leases)
    trial = Trial(DEFAULT_FORMAT, SETTLE_S)
    found = tried(path, trial)
    known = Known(found.signature._replace(mtime_ns=1), 1_000)
    with path.open("rb") as file:
        assert not trial.is_final(file.fileno(), str(path), found, known)
