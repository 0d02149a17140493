import json
from pathlib import Path

import pytest

from importer import claims, moves
from importer.claims import ClaimIds
from importer.steps import Step, unobserved
from tests.importer.builders import a_work_claim
from tests.resumes.store.conftest import SteppingClock


def test_ids_sort_by_arrival_even_while_the_clock_stands_still(clock: SteppingClock) -> None:
    ids = ClaimIds(clock)
    made = [ids.next() for _ in range(50)]
    clock.advance(-3600)
    made.append(ids.next())
    later = claims.ClaimIds(clock)
    later.follow(made[-1])
    made.append(later.next())
    assert made == sorted(made)
    assert all(claims.CLAIM_ID.fullmatch(claim_id) for claim_id in made)


def test_an_id_that_no_clock_of_ours_can_have_made_is_not_followed(clock: SteppingClock) -> None:
    ids = ClaimIds(clock)
    ids.follow("f" * 24)
    assert claims.CLAIM_ID.fullmatch(ids.next())
    assert ids.next()[:16] < "f" * 16


def test_a_journal_that_somebody_edited_brings_no_broken_text_in(tmp_path: Path) -> None:
    claim = a_work_claim(tmp_path / "work" / ("f" * 16))
    source = tmp_path / "cv.json"
    source.touch()
    assert claims.take(claim, source, unobserved)
    fields = json.loads(claim.journal.read_bytes()) | {"name": "\ud800\x1b[2J"}
    claim.journal.write_text(json.dumps(fields), encoding="ascii")
    (loaded,) = claims.iter_claims(claim.folder)
    assert loaded.name == "\\ud800\\x1b[2J"


def test_the_journal_is_written_before_the_file_is_taken(tmp_path: Path) -> None:
    source = tmp_path / "cv.json"
    source.touch()
    claim = a_work_claim(tmp_path / "work" / ("f" * 16))
    seen: list[tuple[Step, bool, bool]] = []

    def observe(step: Step) -> None:
        seen.append((step, claim.journal.exists(), source.exists()))

    assert claims.take(claim, source, observe)
    assert seen == [(Step.JOURNAL_WRITTEN, True, True), (Step.CLAIMED, True, False)]
    journal = json.loads(claim.journal.read_bytes())
    assert bytes.fromhex(journal["name_hex"]) == b"ana/cv.json"
    assert (journal["account_id"], journal["account"]) == ("f" * 16, "ana")


def test_a_file_that_another_took_is_not_ours(tmp_path: Path) -> None:
    claim = a_work_claim(tmp_path / "work")
    assert not claims.take(claim, tmp_path / "gone.json", unobserved)
    assert not claim.journal.exists()


def test_a_claim_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: object, target: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(moves, "move", refuse)
    claim = a_work_claim(tmp_path / "work")
    with pytest.raises(PermissionError):
        claims.take(claim, tmp_path / "cv.json", unobserved)
    assert not claim.journal.exists()


def test_claims_are_found_again_as_they_were(tmp_path: Path) -> None:
    first = a_work_claim(tmp_path, "1" * 24, attempt=2, reports=("_held/a.report.json",))
    second = a_work_claim(tmp_path, "2" * 24, name="ana/bad\\xff.json")
    for claim in (second, first):
        claims.rewrite(claim)
    assert list(claims.iter_claims(tmp_path)) == [first, second]
    claims.drop(first)
    claims.drop(first)
    assert list(claims.iter_claims(tmp_path)) == [second]


@pytest.mark.parametrize("journal", [None, b"", b'{"account": "ana"', b"[]", b'{"account": "ana"}'])
def test_without_a_journal_that_can_be_read_the_account_is_still_known(
    tmp_path: Path, journal: bytes | None
) -> None:
    folder = tmp_path / ("f" * 16)
    claim = a_work_claim(folder, "000660c648eecba68fb746f2")
    claim.path.touch()
    if journal is not None:
        claim.journal.write_bytes(journal)
    (found,) = claims.iter_claims(folder)
    assert (found.account_id, found.account, found.name) == ("f" * 16, "", claim.id)
    assert found.claimed_at.startswith("2026-")
