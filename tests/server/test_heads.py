import pytest

from server.heads import (
    HEAD_BYTES,
    MAX_FIELDS,
    TARGET_BYTES,
    Refused,
    check_head,
    check_part,
    check_size,
)
from server.responses import RETRY_AFTER
from tests.server.builders import RESUMES

HOST = (b"host", b"resumes.test")
TARGET = RESUMES.encode()


def status_of(version: str, target: bytes, *headers: tuple[bytes, bytes]) -> int:
    """The status that a head is refused with; 0 if it is served."""
    try:
        check_head(version, target, headers)
    except Refused as refused:
        return refused.status
    return 0


@pytest.mark.parametrize(
    ("size", "status"), [(TARGET_BYTES, 0), (TARGET_BYTES + 1, 414), (TARGET_BYTES * 10, 414)]
)
def test_a_target_has_a_longest(size: int, status: int) -> None:
    assert status_of("1.1", b"/".ljust(size, b"x"), HOST) == status


@pytest.mark.parametrize(("count", "status"), [(MAX_FIELDS, 0), (MAX_FIELDS + 1, 431)])
def test_a_head_has_so_many_fields(count: int, status: int) -> None:
    assert status_of("1.1", TARGET, HOST, *[(b"a", b"")] * (count - 1)) == status


@pytest.mark.parametrize(
    ("version", "status"), [("1.1", 0), ("1.0", 0), ("0.9", 400), ("2.0", 400), ("3.0", 400)]
)
def test_only_http_1_is_served(version: str, status: int) -> None:
    assert status_of(version, TARGET, HOST) == status


@pytest.mark.parametrize(
    "target",
    [b"*", b"http://resumes.test/api/v1/resumes", b"resumes.test:80", b"/api#x", b"", b"api",
     b"/a/%2e%2E/b", b"/a%2fb", b"/a%2Fb", b"/a%5cb", b"/a%00", b"/a%0a", b"/a%1F", b"/a%7f"],
)  # fmt: skip
def test_a_target_that_could_be_read_otherwise_is_refused(target: bytes) -> None:
    assert status_of("1.1", target, HOST) == 400


@pytest.mark.parametrize("target", [b"/", b"/a/../b", b"/%72", b"/a%20b?c=%2e%2f%00", b"/%zz%"])
def test_other_targets_are_left_to_the_application(target: bytes) -> None:
    assert status_of("1.1", target, HOST) == 0


@pytest.mark.parametrize(
    ("version", "hosts", "status"),
    [
        ("1.1", [], 400),
        ("1.0", [], 0),
        ("1.1", [b"a", b"a"], 400),
        ("1.0", [b"a", b"b"], 400),
        ("1.1", [b"a b"], 400),
        ("1.1", [b"user@a"], 400),
        ("1.1", [b"a/b"], 400),
        ("1.1", [b"a:80x"], 400),
        ("1.1", [b""], 0),
        ("1.1", [b"a.example:8000"], 0),
        ("1.1", [b"127.0.0.1:8000"], 0),
        ("1.1", [b"[::1]:8000"], 0),
        ("1.1", [b"[::1"], 400),
    ],
)
def test_a_request_names_one_host(version: str, hosts: list[bytes], status: int) -> None:
    assert status_of(version, TARGET, *[(b"host", host) for host in hosts]) == status


@pytest.mark.parametrize(
    ("version", "codings", "status"),
    [
        ("1.1", [b"chunked"], 0),
        ("1.1", [b"Chunked"], 0),
        ("1.1", [b"gzip, chunked"], 501),
        ("1.1", [b"identity"], 501),
        ("1.1", [b""], 501),
        ("1.1", [b"chunked", b"chunked"], 400),
        ("1.0", [b"chunked"], 400),
    ],
)
def test_the_one_transfer_coding_is_chunked(
    version: str, codings: list[bytes], status: int
) -> None:
    headers = [(b"transfer-encoding", coding) for coding in codings]

    assert status_of(version, TARGET, HOST, *headers) == status


def test_a_whole_head_is_measured_with_all_that_belongs_to_it() -> None:
    spent_bytes = len(TARGET) + 16 + len(b"name: \r\n")
    check_size(TARGET, [(b"name", b"x" * (HEAD_BYTES - spent_bytes))])

    with pytest.raises(Refused) as caught:
        check_size(TARGET, [(b"name", b"x" * (HEAD_BYTES - spent_bytes + 1))])

    assert caught.value.status == 431


@pytest.mark.parametrize(
    ("head_bytes", "target_bytes", "status"),
    [(HEAD_BYTES, 1, 0), (HEAD_BYTES + 1, 1, 431), (9_000, TARGET_BYTES + 1, 414)],
)
def test_a_part_of_a_head_is_refused_as_soon_as_it_is_too_much(
    head_bytes: int, target_bytes: int, status: int
) -> None:
    try:
        check_part(head_bytes, b"x" * target_bytes)
        found = 0
    except Refused as refused:
        found = refused.status

    assert found == status


def test_only_what_may_work_later_says_when() -> None:
    assert Refused(503, "full").headers == [RETRY_AFTER]
    assert Refused(431, "large").headers == []
