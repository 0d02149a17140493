import json
import os
from pathlib import Path

import pytest

from importer import holding, reports
from importer.claims import Claim
from importer.holding import FRESH_NS, Held, HeldFiles
from importer.reading import Signature
from tests.importer.builders import HELD, a_work_claim, drop
from tests.resumes.store.conftest import SteppingClock

ANA, BO = "a" * 16, "b" * 16


def arrivals(found: dict[str, list[Held]]) -> dict[str, list[int]]:
    """By account id, the numbers of arrival."""
    return {account: [int(held.claim_id, 16) for held in files] for account, files in found.items()}


def hold(root: Path, number: int, account_id: str = ANA, folder: str = "ana") -> Path:
    return drop(root, f"_held/{folder}/{number:024x}-{account_id}-cv.json")


def test_held_files_are_found_by_account_in_the_order_of_arrival(root: Path) -> None:
    for number, account in ((3, ANA), (1, ANA), (2, BO)):
        path = hold(root, number, account)
        path.with_suffix(reports.SUFFIX).touch()
    drop(root, "_held/ana/put-there-by-hand.json")
    drop(root, f"_held/ana/{4:024x}-{ANA}-notes.txt")
    drop(root, "_held/stray.json")
    assert arrivals(HeldFiles(root).find()) == {ANA: [1, 3], BO: [2]}


def test_the_files_of_an_account_are_one_queue_wherever_they_lie(root: Path) -> None:
    hold(root, 3, folder="ana")
    hold(root, 1, folder="her-later-name")
    hold(root, 2, folder="ana")
    assert arrivals(HeldFiles(root).find()) == {ANA: [1, 2, 3]}


@pytest.mark.parametrize("name", ["cv.ndjson", "cv.json.gz", "cv.ZIP"])
def test_files_of_several_resumes_are_held_too(root: Path, name: str) -> None:
    drop(root, f"_held/ana/{1:024x}-{ANA}-{name}")
    assert arrivals(HeldFiles(root).find()) == {ANA: [1]}


def test_nothing_is_held_without_the_folder(root: Path) -> None:
    assert HeldFiles(root).find() == {}
    (root / "_held").touch()
    assert HeldFiles(root).find() == {}


def test_a_folder_is_listed_again_when_it_changes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    list_folder = holding._list

    def count(path: str) -> list[Held]:
        listed.append(path)
        return list_folder(path)

    monkeypatch.setattr(holding, "_list", count)
    hold(root, 1)
    os.utime(root / "_held/ana", ns=(0, 5 * FRESH_NS))
    clock_ns = 10 * FRESH_NS
    held_files = HeldFiles(root, time_ns=lambda: clock_ns)
    assert arrivals(held_files.find()) == arrivals(held_files.find()) == {ANA: [1]}
    assert len(listed) == 1
    hold(root, 2)
    assert arrivals(held_files.find()) == {ANA: [1, 2]}
    assert len(listed) == 2


def test_a_folder_that_changed_just_now_is_listed_once_more(root: Path) -> None:
    hold(root, 1)
    clock_ns = [5 * FRESH_NS]
    held_files = HeldFiles(root, time_ns=lambda: clock_ns[0])

    def find() -> dict[str, list[int]]:
        os.utime(root / "_held/ana", ns=(0, 5 * FRESH_NS))  # the clock's tick is not over
        return arrivals(held_files.find())

    assert find() == {ANA: [1]}
    hold(root, 2)
    assert find() == {ANA: [1, 2]}


def test_a_held_file_is_taken_up_under_its_claim_and_its_first_name(root: Path) -> None:
    path = hold(root, 1)
    report = path.with_name(f"{1:024x}-{ANA}-cv{reports.SUFFIX}")
    report.write_bytes(a_report(root, name="ana/deep/cv.json"))
    one = holding.as_return(find_one(root), root, now_us=7)
    claim = one.claim
    assert one.is_return
    assert one.path == str(path)
    assert (claim.id, claim.account_id) == (f"{1:024x}", ANA)
    assert (claim.name, claim.account) == ("ana/deep/cv.json", "ana")
    assert claim.claimed_at_us == 7
    assert claim.reports == (str(report.relative_to(root)),)
    report.unlink()
    nameless = holding.as_return(find_one(root), root, now_us=7).claim
    assert (nameless.name, nameless.account) == (path.name, "ana")


def test_a_report_that_somebody_edited_brings_no_broken_name_in(root: Path) -> None:
    path = hold(root, 1)
    edited = json.loads(a_report(root, name="cv.json")) | {"file": "\ud800\x1b[2J"}
    path.with_name(f"{1:024x}-{ANA}-cv{reports.SUFFIX}").write_text(
        json.dumps(edited), encoding="ascii"
    )
    claim = holding.as_return(find_one(root), root, now_us=7).claim
    claim.name.encode()  # the store and the next report can take it
    assert "\x1b" not in claim.name


def find_one(root: Path) -> Held:
    ((held,),) = HeldFiles(root).find().values()
    return held


def a_report(root: Path, name: str) -> bytes:
    """The report on the first file that was held."""
    claim: Claim = a_work_claim(root / ".work" / "i" / ANA, f"{1:024x}", name=name)
    signature = Signature(1, 1, 1)
    return reports.compose(claim, signature, HELD, sha256=None, now_us=SteppingClock()())


def test_as_many_are_released_as_there_are_free_places() -> None:
    held = [Held(f"{number:024x}", ANA, f"{number}.json") for number in range(1_000)]
    assert holding.split(held, 3) == (held[:3], held[3:])
    assert holding.split(held, 0) == ([], held)
    assert len(holding.split(held, None)[0]) == holding.RELEASE_FILES
    assert len(holding.split(held, 10**9)[0]) == holding.RELEASE_FILES


def test_a_file_of_several_is_released_alone() -> None:
    names = ("0.json", "1.json", "2.ndjson", "3.json")
    held = [Held(f"{number:024x}", ANA, name) for number, name in enumerate(names)]
    assert holding.split(held, None) == (held[:2], held[2:])
    assert holding.split(held[2:], None) == (held[2:3], held[3:])


@pytest.mark.parametrize("content", [b' [{"header": {}}]', b'{"header": {}}\n{"header": {}}\n'])
def test_a_file_of_several_is_known_by_what_it_holds_too(root: Path, content: bytes) -> None:
    hold(root, 1).write_bytes(b'{"header": {}}\n')
    hold(root, 2).write_bytes(content)
    hold(root, 3)
    (held,) = HeldFiles(root).find().values()
    assert holding.split(held, None) == (held[:1], held[1:])
    assert holding.split(held[1:], None) == (held[1:2], held[2:])


def test_those_under_way_are_not_among_those_who_wait() -> None:
    held = [Held(f"{number:024x}", ANA, str(number)) for number in range(3)]
    assert holding.without(held, []) == held
    assert holding.without(held, [f"{1:024x}"]) == [held[0], held[2]]
