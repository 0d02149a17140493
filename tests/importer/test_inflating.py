import itertools
import time
import tracemalloc
from collections.abc import Iterator

import pytest

from importer.inflating import CHUNK_BYTES, collect, iter_gunzipped
from importer.parts import Bytes, CannotUnpack
from resumes.reasons import Reason
from tests.importer.packing import LIMITS, WIDE, bomb, gzipped

CONTENT = bytes(range(256)) * 2_000


def gunzipped(body: bytes) -> bytes:
    return b"".join(iter_gunzipped(body, WIDE))


def ignore(_: Bytes) -> None:
    """Looks at nothing."""


def test_a_stream_is_inflated_in_pieces() -> None:
    pieces = list(iter_gunzipped(gzipped(CONTENT), WIDE))
    assert b"".join(pieces) == CONTENT
    assert max(map(len, pieces)) <= CHUNK_BYTES


def test_streams_one_after_the_other_are_one_content_and_zeros_may_follow() -> None:
    body = gzipped(b"a") + gzipped(b"") + gzipped(CONTENT) + b"\0" * 1_000
    assert gunzipped(body) == b"a" + CONTENT


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not a gzip file"),
        (b'{"a":1}', "not a gzip file"),
        (gzipped(CONTENT)[:-1], "cut short"),
        (gzipped(CONTENT)[:100], "cut short"),
        (b"\x1f\x8b", "cut short"),
        (gzipped(CONTENT) + b"\0\0x", "damaged"),
        (gzipped(b"a") + b"\x1f\x8b", "cut short"),
        (gzipped(CONTENT)[:-8] + b"\0" * 8, "damaged"),
        (gzipped(CONTENT)[:10] + b"\xff" * 100, "damaged"),
    ],
)
def test_what_is_damaged_or_cut_short_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(CannotUnpack, match=message) as caught:
        gunzipped(body)
    assert caught.value.refusal.reason is Reason.INVALID_ARCHIVE


def test_any_shorter_beginning_of_a_stream_is_refused() -> None:
    body = gzipped(CONTENT[:300])
    for size in range(len(body)):
        with pytest.raises(CannotUnpack):
            gunzipped(body[:size])


@pytest.mark.timing
def test_streams_without_number_are_refused() -> None:
    streams = gzipped(b"")
    assert gunzipped(streams * WIDE.max_members) == b""
    started = time.monotonic()
    with pytest.raises(CannotUnpack, match="more than 10,000 streams"):
        gunzipped(streams * 1_000_000)
    assert time.monotonic() - started < 60


def test_no_more_is_inflated_than_a_file_may_hold() -> None:
    taken: list[bytes] = []

    def endless() -> Iterator[bytes]:
        for chunk in itertools.repeat(b" " * 1_000):
            taken.append(chunk)
            yield chunk

    with pytest.raises(CannotUnpack, match="inflated, the limit is 20000 bytes"):
        collect(endless(), LIMITS, ignore)
    assert len(taken) == 21
    assert collect([b" " * 20_000], LIMITS, ignore) == b" " * 20_000


def test_the_beginning_is_shown_once_as_soon_as_it_is_longer_than_a_resume() -> None:
    shown: list[bytes] = []
    content = collect([b"x" * 1_000] * 5, LIMITS, lambda beginning: shown.append(bytes(beginning)))
    assert content == b"x" * 5_000
    assert shown == [b"x" * 3_000]
    collect([b"x" * 1_000] * 2, LIMITS, lambda beginning: pytest.fail("not longer"))


def test_a_gigabyte_in_a_megabyte_costs_no_more_than_the_limit() -> None:
    body = bomb(b"")
    assert len(body) < 2 * 1024 * 1024
    tracemalloc.start()
    with pytest.raises(CannotUnpack, match="File too large"):
        collect(iter_gunzipped(body, WIDE), WIDE, ignore)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 1.5 * WIDE.max_file_bytes
