"""Compressed bundles: gzip and zip."""

import contextlib
import io
import struct
import time
import tracemalloc
import unicodedata
import zipfile

import pytest

from importer.json_texts import CannotUnpack
from importer.unpack import gunzip, open_archive, read_member
from resumes.import_reasons import Reason
from resumes.text import is_harmless
from tests.support.inbox.packing import LIMITS, WIDE, bomb, gzipped, zipped, zipped_as

# Zip


CENTRAL = "<4s6H3L5H2L"
"""An entry of the central directory, as APPNOTE.TXT 4.3.12 has it."""


def contents(body: bytes) -> dict[str, bytes]:
    """What each member holds, by its name as it is shown."""
    archive, members, _ = open_archive(body, WIDE)
    return {member.name: read_member(archive, member) for member in members}


def refused(body: bytes) -> dict[str, str]:
    """Why members are refused, by name; empty for those that are not."""
    members = open_archive(body, WIDE).members
    return {member.name: str(member.obstacle or "") for member in members}


def refusal(body: bytes) -> str:
    with pytest.raises(CannotUnpack) as caught:
        open_archive(body, LIMITS)
    return caught.value.refusal.message


def edited(body: bytes, **fields: int) -> bytes:
    """The zip with other numbers in the entry of its first member, in the central directory."""
    at = body.index(b"PK\x01\x02")
    values = list(struct.unpack_from(CENTRAL, body, at))
    places = {"flags": 3, "method": 4, "crc": 7, "compress_size": 8, "file_size": 9}
    places["header_offset"] = 16
    for name, value in fields.items():
        values[places[name]] = value
    return body[:at] + struct.pack(CENTRAL, *values) + body[at + struct.calcsize(CENTRAL) :]


def test_what_is_not_to_be_imported_is_passed_over_and_named() -> None:
    ending, hidden, system = "ending", "hidden", "system"
    skipped = {
        "notes.txt": ending,
        "a.json\\": ending,
        ".hidden.json": hidden,
        ".git/a.json": hidden,
        "._a.json": hidden,
        "a.json.tmp": hidden,
        "__MACOSX/good/._a.json": system,
        "x/@EADIR/b.json": system,
        "old~/a.json": hidden,
        "back\\.hidden\\a.json": hidden,
    }
    body = zipped({
        "good/": b"",
        "folder.json/": b"",
        "back\\": b"",
        **dict.fromkeys(skipped, b"x"),
        "資料\\.隠し\\表.json": b"{}",
        "資料~\\表.json": b"{}",
        "./good/a.json": b"{}",
        "back\\b.json": b"{}",
    })  # fmt: skip
    assert list(contents(body)) == ["./good/a.json", "back\\\\b.json"]
    named = open_archive(body, WIDE).skipped.named
    skipped |= {"資料\\.隠し\\表.json": hidden, "資料~\\表.json": hidden}
    assert {one.name.replace("\\\\", "\\"): one.why for one in named} == skipped


TWO_BYTES = ("cp932", "shift_jis_2004", "big5", "big5hkscs", "gbk", "gb18030", "cp949", "johab")


def characters(encoding: str) -> list[str]:
    """A character for each second byte that ASCII has, as far as the encoding has one."""
    found: dict[int, str] = {}
    for second in range(0x31, 0x7F):
        for first in range(0x81, 0xFF):
            with contextlib.suppress(UnicodeDecodeError):
                char = bytes([first, second]).decode(encoding)
                if len(char) == 1 and char.isprintable():
                    found.setdefault(second, char)
    assert len(found) > 40
    return list(found.values())


@pytest.mark.parametrize("encoding", TWO_BYTES)
def test_i18_no_second_byte_of_a_character_is_taken_for_anything_else(encoding: str) -> None:
    names = [
        name
        for char in characters(encoding)
        for name in (
            f"{char}.json",
            f"{char}/a.json",
            f"a{char}{char}/b{char}.json",
            f".{char}/a.json",
        )
    ]
    names += [f"{name.removesuffix('.json')}.txt" for name in names]
    _, members, skipped = open_archive(zipped_as(encoding, dict.fromkeys(names, b"{}")), WIDE)
    assert [member.obstacle for member in members] == [None] * (len(names) * 3 // 8)
    assert skipped.count == len(names) - len(members)


@pytest.mark.parametrize(
    ("encoding", "name", "skipped"),
    [
        ("cp932", "本田圭.json", None),
        ("cp932", "マサミ/本田.json", None),
        ("cp932", "表\\能.json", None),
        ("cp932", "資料/.本田.json", "hidden"),
        ("cp932", "資料a\\.hidden\\表.json", "hidden"),
        ("cp932", "資料1~/表.json", "hidden"),
        ("cp932", "資料.tmp/表.json", "hidden"),
        ("cp932", "資料/@eaDir/表.json", "system"),
        ("cp932", "資料/__macosx\\表.json", "system"),
        ("cp932", "表", "ending"),
        ("big5", "林成功.json", None),
        ("gbk", "刘誠.json", None),
        ("euc-kr", "이력서.json", None),
        ("euc-kr", "이력서/.숨김.json", "hidden"),
        ("euc_jp", "職務経歴表.json", None),
        ("cp866", "папка~/резюме.json", None),
        ("cp850", "é\\.a.json", None),
        ("utf-8", unicodedata.normalize("NFD", "Zoë/Ångström が.json"), None),
        ("utf-8", unicodedata.normalize("NFD", "Zoë/.Ångström.json"), "hidden"),
    ],
)
def test_a_name_in_an_unknown_encoding_is_judged_by_what_is_certain(
    encoding: str, name: str, skipped: str | None
) -> None:
    body = zipped_as(encoding, {name: b"{}", "a.json": b"{}"})
    assert len(open_archive(body, WIDE).members) == 1 + (skipped is None)
    assert [one.why for one in open_archive(body, WIDE).skipped.named] == [skipped] * (
        skipped is not None
    )


def test_of_very_many_that_are_passed_over_the_first_are_named() -> None:
    names = [f"{number}-{'n' * 500}.txt" for number in range(1_000)]
    skipped = open_archive(zipped(dict.fromkeys([*names, "a.json"], b"{}")), WIDE).skipped
    assert (skipped.count, len(skipped.named)) == (1_000, 100)
    assert skipped.describe().startswith("1,000 members: 0-nnn")
    assert skipped.describe().endswith("and 990 more")
    assert len(skipped.describe()) < 4_000


@pytest.mark.parametrize("encoding", ["utf-8", "cp932"])
@pytest.mark.parametrize(
    "name",
    [
        *("../表.json", "表/../../b.json", "/etc/表.json", "\\表.json", "..\\表.json"),
        *("C:\\表.json", "c:表.json"),
    ],
)
def test_a_name_that_leads_out_is_refused(encoding: str, name: str) -> None:
    (member,) = open_archive(zipped_as(encoding, {name: b"{}"}), WIDE).members
    assert "unsafe" in str(member.obstacle)


def test_a_name_with_a_nul_is_refused_and_shown_whole() -> None:
    body = zipped({"evil.exe_.json": b"{}"}).replace(b"evil.exe_", b"evil.exe\0")
    assert list(refused(body)) == ["evil.exe\\x00.json"]
    assert "unsafe" in str(refused(body))


def test_a_name_in_utf_8_is_shown_as_it_is_without_the_flag_too() -> None:
    names = ["Zoë/履歴書.json", unicodedata.normalize("NFD", "Ångström.txt")]
    _, [member], skipped = open_archive(zipped_as("utf-8", dict.fromkeys(names, b"{}")), WIDE)
    assert [member.name, skipped.named[0].name] == names
    long = zipped_as("utf-8", {f"{'履' * 300}.json": b"{}"})
    assert open_archive(long, WIDE).members[0].name == "履" * 200 + "…"


def test_names_are_shown_escaped_and_not_without_end() -> None:
    body = zipped({"\x1b[31m\n\u202egpj.json": b"{}", "n" * 60_000 + ".json": b"{}"})
    hostile, long = contents(body)
    assert hostile == "\\x1b[31m\\x0a\\u202egpj.json"
    assert is_harmless(hostile)
    assert len(long) <= 4_096


@pytest.mark.parametrize(
    ("body", "message"),
    [
        *(
            (zipped({name: b"x"}), "It is a nested archive, which is not opened")
            for name in ("a.zip", "a.json.gz", "a.gz", "x/b.ndjson.GZ")
        ),
        (edited(zipped({"a.json": b"{}"}), flags=1), "It is encrypted"),
        (zipped({"a.json": b"{}"}, zipfile.ZIP_BZIP2), "method 12, not with deflate"),
        (zipped({"a.json": b"{}"}, zipfile.ZIP_LZMA), "method 14, not with deflate"),
        (edited(zipped({"a.json": b"{}"}), method=99), "method 99, not with deflate"),
    ],
)
def test_nested_encrypted_and_oddly_compressed_members_are_refused(
    body: bytes, message: str
) -> None:
    assert next(iter(refused(body).values())).endswith(message)


@pytest.mark.parametrize(
    "fields",
    [
        {"crc": 1},
        {"file_size": 10},
        {"file_size": 5_000},
        {"compress_size": 3},
        {"compress_size": 0},
        {"header_offset": 5},
        {"header_offset": 2**31},
        {"header_offset": 2**32 - 1},
        {"flags": 0x20},
        {"flags": 0x40},
    ],
)
def test_a_member_that_is_not_what_the_archive_says_is_damaged(fields: dict[str, int]) -> None:
    body = edited(zipped({"a.json": b'{"a":1}' * 100, "b.json": b"{}" * 500}), **fields)
    with pytest.raises(CannotUnpack, match="damaged") as caught:
        contents(body)
    assert caught.value.refusal.reason is Reason.INVALID_ARCHIVE


def test_a_zip_that_is_cut_short_anywhere_is_refused() -> None:
    body = zipped({"a.json": b"{}", "b.json": b"[]"})
    for size in range(4, len(body)):
        assert refusal(body[:size]) == "The zip archive is damaged or truncated"
    for other in (b"", b"{}", b"PK", b"\x1f\x8b\x08"):
        assert refusal(other) == "It is not a zip archive, despite its name"


@pytest.mark.parametrize(
    ("members", "skipped"),
    [
        ({}, ""),
        ({"folder/": b""}, ""),
        (
            {"a.txt": b"x", "folder/": b"", ".a.json": b"x"},
            ". Skipped 2 members: a.txt (not .json, .ndjson or .jsonl), .a.json (hidden or temporary)",
        ),
    ],
)
def test_a_zip_without_a_file_to_import_says_so(members: dict[str, bytes], skipped: str) -> None:
    assert refusal(zipped(members)) == (
        f"The zip archive contains no file that ends in .json, .ndjson or .jsonl{skipped}"
    )


def test_members_in_front_of_which_something_else_stands_are_found() -> None:
    assert contents(b"#!/bin/sh\n" + zipped({"a.json": b"{}"})) == {"a.json": b"{}"}


@pytest.mark.timing
def test_more_members_than_are_opened_are_refused_before_they_are_listed() -> None:
    names = [f"{number}.json" for number in range(LIMITS.max_members + 1)]
    assert "more than 40 members" in refusal(zipped(dict.fromkeys(names, b"{}")))
    assert open_archive(zipped(dict.fromkeys(names[1:], b"{}")), LIMITS)
    entry = struct.pack(CENTRAL, b"PK\x01\x02", *[0] * 16)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, len(entry) * 1_000_000, 0, 0)
    started = time.monotonic()
    with pytest.raises(CannotUnpack, match="more than 10,000 members"):
        open_archive(entry * 1_000_000 + end, WIDE)
    assert time.monotonic() - started < 10


def test_members_that_are_too_large_together_are_refused_unopened() -> None:
    half = b"{}" * (LIMITS.max_file_bytes // 4)
    assert open_archive(zipped({"a.json": half, "b.json": half}), LIMITS)
    assert "File too large" in refusal(zipped({"a.json": half, "b.json": half, "c.json": b"{}"}))
    open_archive(zipped({"a.json": half, "b.json": half, "c.txt": half}), LIMITS)


def test_members_that_overlap_are_refused() -> None:
    body = zipped({f"{number}.json": b"{}" * 400 for number in range(5)}, zipfile.ZIP_STORED)
    overlapping = edited(body, compress_size=len(body) - 2_000)
    assert refusal(overlapping) == "The zip archive is damaged: its members overlap"


def test_a_name_that_occurs_twice_is_two_members() -> None:
    buffer = io.BytesIO(zipped({"a.json": b"1", "b.json": b"2"}).replace(b"b.json", b"a.json"))
    archive, members, _ = open_archive(buffer.getvalue(), WIDE)
    assert [read_member(archive, member) for member in members] == [b"1", b"2"]


# Gzip


CONTENT = bytes(range(256)) * 2_000


def test_streams_one_after_the_other_are_one_content_and_zeros_may_follow() -> None:
    body = gzipped(b"a") + gzipped(b"") + gzipped(CONTENT) + b"\0" * 1_000
    assert gunzip(body, WIDE) == b"a" + CONTENT


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not a gzip file"),
        (b'{"a":1}', "not a gzip file"),
        *((gzipped(CONTENT[:300])[:size], "truncated") for size in (2, 5, 10, 50, -9, -1)),
        (gzipped(CONTENT) + b"\0\0x", "damaged"),
        (gzipped(b"a") + b"\x1f\x8b", "truncated"),
        (gzipped(CONTENT)[:-8] + b"\0" * 8, "damaged"),
        (gzipped(CONTENT)[:10] + b"\xff" * 100, "damaged"),
    ],
)
def test_what_is_damaged_or_cut_short_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(CannotUnpack, match=message) as caught:
        gunzip(body, WIDE)
    assert caught.value.refusal.reason is Reason.INVALID_ARCHIVE


@pytest.mark.timing
def test_streams_without_number_are_refused() -> None:
    streams = gzipped(b"")
    assert gunzip(streams * WIDE.max_members, WIDE) == b""
    started = time.monotonic()
    with pytest.raises(CannotUnpack, match="more than 10,000 streams"):
        gunzip(streams * 1_000_000, WIDE)
    assert time.monotonic() - started < 60


def test_no_more_is_inflated_than_a_file_may_hold() -> None:
    most = b" " * LIMITS.max_file_bytes
    assert gunzip(gzipped(most[:-1]) + gzipped(b" "), LIMITS) == most
    for body in (gzipped(most + b" "), gzipped(most) + gzipped(b" ")):
        with pytest.raises(CannotUnpack, match="the limit is 20000 bytes uncompressed"):
            gunzip(body, LIMITS)


def test_a_gigabyte_in_a_megabyte_costs_no_more_than_the_limit() -> None:
    body = bomb(b"")
    assert len(body) < 2 * 1024 * 1024
    tracemalloc.start()
    with pytest.raises(CannotUnpack, match="File too large"):
        gunzip(body, WIDE)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 1.5 * WIDE.max_file_bytes
