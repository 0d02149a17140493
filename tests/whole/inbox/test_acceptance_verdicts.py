"""The verdict on a file is the one that the API gives for the same bytes, also on one that is far too large."""

import functools
from collections.abc import Mapping
from pathlib import Path

import pytest

from resumes.analyzer import DEFAULT_FORMAT
from tests.support import programs
from tests.support.inbox.mounts import a_disk
from tests.support.inbox.oracle import Tally, reports_of
from tests.support.inbox.packing import bomb, zipped
from tests.support.inbox.scenes import Scene
from tests.support.resumes import a_document
from tests.support.stores import make_account

GIGABYTE = 1024**3
LIMIT = DEFAULT_FORMAT.max_bytes


def filled(name: str, size_bytes: int) -> bytes:
    """A resume of exactly so many bytes."""
    empty = len(a_document(name, filler=""))
    body = a_document(name, filler="x" * (size_bytes - empty))
    assert len(body) == size_bytes
    return body


@functools.cache
def refused() -> Mapping[str, tuple[bytes, str]]:
    """Return the content and the reason of each file that is refused, by its name."""
    return {
        "empty.json": (b"", "invalid_json"),
        "over.json": (filled("over", LIMIT + 1), "too_large"),
        "wide.json": (b"[" + b"{}," * 20_000_000 + b"{}]", "too_large"),
        "bomb.json.gz": (bomb(b'{"header": {"name": "a"}, "x": "'), "too_large"),
        "lines.ndjson.gz": (bomb(b"{}\n"), "too_large"),
        "bomb.zip": (zipped({"a.json": b"x" * (256 * 1024 * 1024)}), "too_large"),
        "nested.zip": (
            zipped({"inner.zip": zipped({"a.json": a_document("nested")})}),
            "invalid_archive",
        ),
        "escape.zip": (zipped({"../evil.json": a_document("evil")}), "invalid_archive"),
        "root.zip": (zipped({"/etc/evil.json": a_document("evil")}), "invalid_archive"),
    }


SPARSE = {"sparse.json": GIGABYTE, "sparse.ndjson": GIGABYTE // 8, "sparse.zip": GIGABYTE // 8}

GOOD = a_document("Ada")

ENCODINGS: dict[str, bytes] = {
    "utf-8": a_document("Zoë"),
    "utf-8 without escapes": a_document("Zo_").replace(b"_", "ë".encode()),
    "utf-8 with a mark": b"\xef\xbb\xbf" + GOOD,
    "utf-16 with a mark": GOOD.decode().encode("utf-16"),
    "utf-16 little-endian": GOOD.decode().encode("utf-16-le"),
    "utf-16 big-endian": GOOD.decode().encode("utf-16-be"),
    "utf-16 big-endian with a mark": b"\xfe\xff" + GOOD.decode().encode("utf-16-be"),
    "latin-1": '{"header": {"name": "Zoë"}}'.encode("latin-1"),
    "trailing zeros": GOOD + b"\x00" * 10,
    "zeros alone": b"\x00" * 500,
    "empty": b"",
    "blank": b" \t\r\n ",
    "two values": b"{} {}",
    "two resumes side by side": a_document("Bo") + b" " + a_document("Cy"),
    "cut off": GOOD[:-5],
    "blanks around it": b"\n\t " + a_document("Di") + b"\r\n",
}

POISON: dict[str, bytes] = {
    "NaN": b'{"header": {"name": "a"}, "x": NaN}',
    "Infinity": b'{"header": {"name": "a"}, "x": -Infinity}',
    "a number that overflows": b'{"header": {"name": "a"}, "x": 1e999}',
    "a key twice": b'{"header": {"name": "a"}, "header": {"name": "b"}}',
    "an integer of 5,000 digits": b'{"header": {"name": "a"}, "x": ' + b"7" * 5_000 + b"}",
    "half of a surrogate pair": rb'{"header": {"name": "\ud800"}}',
    "an escaped zero": rb'{"header": {"name": "a\u0000b"}}',
    "a zero": b'{"header": {"name": "a\x00b"}}',
    "100,000 levels without an end": b'{"a":' * 100_000,
    "100,000 levels of objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "100,000 levels in a field": b'{"header": {"name": "a"}, "x": ' + b"[" * 100_000,
    "a control character": b'{"header": {"name": "a\x1bb"}}',
    "no object": b'"text"',
    "no header": b"{}",
    "a wrong type": b'{"header": {"name": 7}}',
    "a PDF": b"%PDF-1.7\n",
}

CASES = ENCODINGS | POISON
GOOD_AFTER = "after all of these"


class Verdicts:
    """What the API and the importer said of each case."""

    def __init__(self, home: Path) -> None:
        self.scene = Scene(home / "importer")
        self.scene.account("ana")
        self.files = {name: f"ana/{number}.json" for number, name in enumerate(CASES)}
        for name, body in CASES.items():
            self.scene.drop(self.files[name], body)
        self.scene.drain(settle_s=0.2)
        self.scene.drop("ana/good.json", a_document(GOOD_AFTER))
        self.scene.drain(settle_s=0.2)
        self.reports = reports_of(self.scene.root, "failed")
        self.answers = _post_all(home / "api")

    @property
    def accepted(self) -> set[str]:
        """The cases that the API took."""
        return {name for name, (status, _) in self.answers.items() if status == 201}


def _post_all(home: Path) -> dict[str, programs.Answer]:
    key = make_account(home, "ana")
    with programs.serving(home, "--no-rate-limit") as url:
        return {
            name: programs.call(f"{url}/api/v1/resumes", key, method="POST", body=body)
            for name, body in CASES.items()
        }


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    return Verdicts(tmp_path_factory.mktemp("verdicts"))


@pytest.mark.parametrize("name", CASES)
def test_a_file_is_judged_as_the_api_judges_its_bytes(verdicts: Verdicts, name: str) -> None:
    status, answer = verdicts.answers[name]
    report = verdicts.reports.get(verdicts.files[name])
    if status == 201:
        assert report is None
        return
    assert report is not None
    assert report["message"] == answer["error"]
    assert status == 400
    if report["reason"] == "invalid_json":
        assert isinstance(report["byteOffset"], int)
        assert 0 <= report["byteOffset"] <= len(CASES[name])
    else:
        assert report["reason"] == "invalid_resume"
        assert report["issues"] == answer["issues"]


def test_each_kind_of_poison_is_refused_and_the_next_file_is_imported(verdicts: Verdicts) -> None:
    good = {"utf-8", "utf-8 without escapes", "utf-8 with a mark", "blanks around it"}
    assert verdicts.accepted == good
    found = verdicts.scene.check(
        files=len(CASES) + 1, resumes={"ana": ["Zoë", "Zoë", "Ada", "Di", GOOD_AFTER]}
    )
    assert found == Tally(5, len(CASES) - 4, 0, 0, frozenset())


# Sizes


MEMORY_BYTES = 300 * 1024 * 1024


@pytest.mark.slow
def test_what_is_too_large_is_refused_for_its_own_reason_and_never_whole_in_memory_or_on_disk(
    scene: Scene,
) -> None:
    scene.account("ana")
    scene.account("bo")
    with scene.watched(settle_s=0.3) as importer:
        for name, (content, _) in refused().items():
            scene.drop(f"ana/{name}", content)
        for name, size_bytes in SPARSE.items():
            with (scene.root / "ana" / name).open("wb") as file:
                file.truncate(size_bytes)
        scene.drop("ana/limit.json", filled("limit", LIMIT))
        scene.drop("bo/small.json", a_document("small"))
        scene.wait_for(ended=len(refused()) + 5, limit_s=60)
        assert importer.most_memory_bytes < MEMORY_BYTES
    found = scene.check(files=len(refused()) + 5, resumes={"ana": ["limit"], "bo": ["small"]})
    assert found == Tally(2, len(refused()) + 3, 0, 0, frozenset())
    reports = reports_of(scene.root, "failed")
    reasons = {name: reason for name, (_, reason) in refused().items()}
    reasons |= dict.fromkeys(SPARSE, "too_large")
    assert {name.removeprefix("ana/"): one["reason"] for name, one in reports.items()} == reasons
    assert list(scene.home.rglob("*evil*")) == []
    assert not Path("/etc/evil.json").exists()


# Disks


@pytest.mark.slow
def test_i9_from_an_account_folder_on_another_disk_files_are_copied_away(tmp_path: Path) -> None:
    root = tmp_path / "home" / "inbox"
    with a_disk(root / "ana", 8 * 1024 * 1024) as disk:
        scene = Scene(tmp_path / "home", disk.seen(root))
        scene.account("ana")
        scene.account("bo")
        with scene.watched(settle_s=0.3, before=disk.enter, root=root):
            for number in range(5):
                scene.drop(f"ana/{number}.json", a_document(f"far {number}"))
            scene.drop("ana/bad.json", b"nonsense")
            scene.drop("bo/cv.json", a_document("near"))
            scene.wait_for(ended=7)
        far = [f"far {number}" for number in range(5)]
        assert scene.check(files=7, resumes={"ana": far, "bo": ["near"]}).failed == 1
