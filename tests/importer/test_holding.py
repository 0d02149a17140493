import json
from pathlib import Path

from importer import holding, reports
from tests.importer.builders import A_REFUSAL, HELD, a_work_claim, drop, judged

ANA, BO = "a" * 16, "b" * 16


def test_held_files_are_found_by_account_in_the_order_of_arrival(root: Path) -> None:
    for claim, account in ((3, ANA), (1, ANA), (2, BO)):
        drop(root, f"_held/ana/{claim:024x}-{account}-cv.json")
        drop(root, f"_held/ana/{claim:024x}-{account}-cv.report.json")
    drop(root, "_held/ana/put-there-by-hand.json")
    drop(root, "_held/stray.json")
    found = holding.find_held(root)
    assert {
        account: [int(held.claim_id, 16) for held in files] for account, files in found.items()
    } == {
        ANA: [1, 3],
        BO: [2],
    }


def test_nothing_is_held_without_the_folder(root: Path) -> None:
    assert holding.find_held(root) == {}


def test_a_held_file_is_taken_up_under_its_claim_and_its_first_name(root: Path) -> None:
    path = drop(root, f"_held/ana/{1:024x}-{ANA}-cv.json")
    first = a_work_claim(root / ".work" / "i" / ANA, f"{1:024x}", name="ana/deep/cv.json")
    report = path.with_name(f"{1:024x}-{ANA}-cv.report.json")
    report.write_bytes(reports.compose(first, judged(b"{", A_REFUSAL), HELD, now_us=1))
    ((held,),) = holding.find_held(root).values()
    claim = holding.claim_of(held, root, first.folder, now_us=7)
    assert (claim.id, claim.name, claim.account) == (first.id, "ana/deep/cv.json", "ana")
    assert claim.reports == (str(report.relative_to(root)),)
    report.unlink()
    assert holding.claim_of(held, root, first.folder, now_us=7).name == path.name


def test_a_report_that_somebody_edited_brings_no_broken_name_in(root: Path) -> None:
    path = drop(root, f"_held/ana/{1:024x}-{ANA}-cv.json")
    first = a_work_claim(root / ".work" / "i" / ANA, f"{1:024x}", name="cv.json")
    report = path.with_name(f"{1:024x}-{ANA}-cv.report.json")
    composed = json.loads(reports.compose(first, judged(b"{", A_REFUSAL), HELD, now_us=1))
    report.write_text(json.dumps(composed | {"file": "\ud800\x1b[2J"}), encoding="ascii")
    ((held,),) = holding.find_held(root).values()
    claim = holding.claim_of(held, root, first.folder, now_us=7)
    claim.name.encode()  # the store and the next report can take it
    assert "\x1b" not in claim.name


def test_as_many_are_released_as_there_are_free_places(root: Path) -> None:
    held = [holding.Held(root / str(n), f"{n:024x}", ANA) for n in range(1_000)]
    assert holding.split(held, 3) == (held[:3], held[3:])
    assert holding.split(held, 0) == ([], held)
    assert len(holding.split(held, None)[0]) == holding.RELEASE_FILES
