import json
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from importer.json_texts import CannotUnpack
from importer.unpack import is_bundle, unpack
from resumes.import_reasons import Reason
from tests.support.inbox.packing import (
    LIMITS,
    WIDE,
    bomb,
    gzipped,
    refusal_of,
    refused_parts,
    unpacked,
    zipped,
)
from tests.support.resumes import a_document

ADA, BO, EVE = a_document("Ada"), a_document("Bo"), a_document("Eve")


def in_array(documents: list[bytes]) -> bytes:
    return b" [\n" + b" ,\r\n".join(documents) + b"\t]\n"


def in_lines(documents: list[bytes]) -> bytes:
    return b"\r\n\n".join(documents)


def in_members(documents: list[bytes]) -> bytes:
    return zipped({f"{number}.json": body for number, body in enumerate(documents)})


PACKERS: dict[str, tuple[str, Callable[[list[bytes]], bytes]]] = {
    "array": ("a.json", in_array),
    "lines": ("a.ndjson", in_lines),
    "gzipped array": ("a.json.gz", lambda documents: gzipped(in_array(documents))),
    "gzipped array of no name": ("a.gz", lambda documents: gzipped(in_array(documents))),
    "gzipped lines": ("a.jsonl.gz", lambda documents: gzipped(in_lines(documents))),
    "members": ("a.zip", in_members),
    "array in a zip": ("a.zip", lambda documents: zipped({"a.json": in_array(documents)})),
    "lines in a zip": ("a.zip", lambda documents: zipped({"a.jsonl": in_lines(documents)})),
}

FIELDS = st.dictionaries(st.text(max_size=5), st.text(max_size=8) | st.integers() | st.none())
DOCUMENTS = st.lists(
    st.builds(
        lambda fields, is_ascii: json.dumps(fields, ensure_ascii=is_ascii).encode(
            "utf-8", "surrogatepass"
        ),
        FIELDS,
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


def values_of(name: str, body: bytes) -> list[Any]:
    """The objects that the file would give to the analyzer."""
    found = []
    try:
        for part in unpack(name, body, WIDE).parts:
            try:
                value = json.loads(part.body)
            except ValueError:
                continue
            if isinstance(value, dict):
                found.append(value)
    except CannotUnpack:
        assert not found
    return found


@pytest.mark.parametrize("kind", PACKERS)
@settings(max_examples=30)
@given(documents=DOCUMENTS, data=st.data())
def test_a_file_that_is_cut_short_gives_nothing_else(
    kind: str, documents: list[bytes], data: st.DataObject
) -> None:
    name, pack = PACKERS[kind]
    packed = pack(documents)
    cut = packed[: data.draw(st.integers(0, len(packed) - 1))]
    whole, found = values_of(name, packed), values_of(name, cut)
    assert found == whole[: len(found)]
    if kind != "lines":
        assert found == [] or cut.strip() == packed.strip()


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        ("a.json", ADA, False),
        ("a.json", json.dumps(json.loads(ADA), indent=2).encode(), False),
        ("a.json", ADA + b"\n", False),
        ("a.json", b"", False),
        ("a.json", b"{", False),
        ("a.json", in_array([ADA]), True),
        ("a.json", b"[", True),
        ("a.json", ADA + b"\n" + BO, True),
        ("a.json", b'\n{"a":1} \r\n\r\n {"b":', True),
        ("a.json", b'{"a":1}{"b":2}\n', False),
        ("a.json", b'{\n"a":1\n}\n{\n"b":2\n}', False),
        ("a.json", b'{"a":1\n{"b":2}\n', False),
        ("a.json", b'{"a":1}\n\x00\x00\x00\x00', False),
        ("a.json", b'"a"\n"b"\n', False),
        ("a.json", gzipped(ADA), False),
        ("a.ndjson", b"", True),
        ("A.JSONL", ADA, True),
        ("a.gz", b"", True),
        ("a.Json.Gz", ADA, True),
        ("a.zip", ADA, True),
        ("standard input", ADA, False),
        ("standard input", ADA + b"\n" + BO, True),
        ("standard input", gzipped(ADA), True),
        ("standard input", zipped({}), True),
    ],
)
def test_a_bundle_is_known_by_its_name_or_by_its_content(
    name: str, body: bytes, expected: bool
) -> None:
    assert is_bundle(name, body) == expected


def test_places_say_where_a_part_is() -> None:
    archive = zipped({"a.json": ADA, "m/n.ndjson": b"\n" + BO, "e.json": in_array([EVE, ADA])})
    assert [(part.number, part.place) for part in unpacked("a.zip", archive)] == [
        (1, "member a.json"),
        (2, "member m/n.ndjson, line 2"),
        (3, "member e.json, item 1"),
        (4, "member e.json, item 2"),
    ]
    assert [part.place for part in unpacked("a.json", in_array([ADA, BO]))] == ["item 1", "item 2"]
    assert [part.place for part in unpacked("a.jsonl.gz", gzipped(ADA))] == ["line 1"]
    assert [part.place for part in unpacked("a.json.gz", gzipped(ADA))] == [""]


def test_a_member_that_cannot_be_had_is_a_part_and_the_others_go_on() -> None:
    archive = zipped({
        "a.json": ADA,
        "b.zip": zipped({}),
        "../c.json": BO,
        "d.json": b"",
        "e.json": in_array([ADA])[:-5],
        "f.ndjson": b"\n",
        "g.json": gzipped(BO),
        "h.json": b"[]",
        "i.json": b'{"a":"' + b"x" * LIMITS.max_bytes + b'"}',
        "j.json": EVE,
    })  # fmt: skip
    parts = unpacked("a.zip", archive, LIMITS)
    assert [part.number for part in parts] == list(range(1, 11))
    assert [part.body for part in parts if not part.refusal] == [ADA, EVE]
    reasons = [part.refusal.reason for part in parts if part.refusal]
    assert reasons == [
        Reason.INVALID_ARCHIVE,
        Reason.INVALID_ARCHIVE,
        Reason.INVALID_JSON,
        Reason.INVALID_JSON,
        Reason.INVALID_JSON,
        Reason.INVALID_ARCHIVE,
        Reason.INVALID_RESUME,
        Reason.TOO_LARGE,
    ]
    assert refused_parts(parts)["member i.json"].startswith("Resume too large")


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("a.json", b"[]", Reason.INVALID_RESUME),
        ("a.ndjson", b"", Reason.INVALID_JSON),
        ("a.json.gz", gzipped(b""), Reason.INVALID_JSON),
        ("a.gz", gzipped(b" \n"), Reason.INVALID_JSON),
        ("a.gz", ADA, Reason.INVALID_ARCHIVE),
        ("a.json.gz", gzipped(gzipped(ADA)), Reason.INVALID_ARCHIVE),
        ("a.gz", gzipped(zipped({"a.json": ADA})), Reason.INVALID_ARCHIVE),
        ("a.zip", gzipped(ADA), Reason.INVALID_ARCHIVE),
        ("a.zip", ADA, Reason.INVALID_ARCHIVE),
        ("a.ndjson", gzipped(ADA), Reason.INVALID_ARCHIVE),
        ("a.json", in_array([ADA])[:-2], Reason.INVALID_JSON),
    ],
)
def test_a_file_of_which_nothing_can_be_had_is_refused_as_a_whole(
    name: str, body: bytes, reason: Reason
) -> None:
    assert refusal_of(name, body).reason is reason


def test_a_zip_of_too_many_resumes_gives_as_many_as_are_taken_and_says_so() -> None:
    lines = b"{}\n" * (LIMITS.max_parts - 1)
    parts = unpacked("a.zip", zipped({"a.ndjson": lines, "b.ndjson": lines}), LIMITS)
    assert len(parts) == LIMITS.max_parts + 1
    assert not any(part.refusal for part in parts[:-1])
    assert parts[-1].refusal is not None
    assert "more than 50 resumes" in parts[-1].refusal.message


def test_of_what_is_too_large_no_more_is_inflated_than_a_file_may_hold() -> None:
    archive = zipped({"a.json": b'{"a":"' + b"x" * (WIDE.max_file_bytes // 2), "b.json": ADA})
    for body, message in (
        (bomb(b'{"a":"'), "File too large"),
        (bomb(b'["'), "File too large"),
        (archive, "Resume too large"),
    ):
        tracemalloc.start()
        try:
            refusals = [part.refusal for part in unpack("", body, WIDE).parts]
        except CannotUnpack as error:
            refusals = [error.refusal]
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert refusals[0] is not None
        assert refusals[0].reason is Reason.TOO_LARGE
        assert refusals[0].message.startswith(message)
        assert refusals[1:] == [None] * (body is archive)
        assert peak_bytes < 1.5 * WIDE.max_file_bytes
