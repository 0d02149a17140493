from importer import claims
from importer.claims import Claim, ClaimIds
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


def test_an_id_made_before_the_clock_was_set_back_is_followed(clock: SteppingClock) -> None:
    before = ClaimIds(clock).next()
    clock.advance(-6 * 24 * 3_600)
    ids = ClaimIds(clock)
    ids.follow(before)
    ids.follow("0" * 24)
    assert ids.next() > before


def test_a_claim_says_whose_it_is_and_where_it_lies() -> None:
    folder = "/inbox/.work/importer/" + "f" * 16
    claim = Claim("1" * 24, folder, "ana", "ana/cv.json", claimed_at_us=1_800_000_000_500_000)
    assert claim.account_id == "f" * 16
    assert claim.path == f"{folder}/{'1' * 24}"
    assert claim.temporary == f"{claim.path}.tmp"
    assert claim.claimed_at == "2027-01-15T08:00:00.500Z"


def test_ids_of_two_importers_differ_however_many_are_made(clock: SteppingClock) -> None:
    one, other = ClaimIds(clock), ClaimIds(clock)
    made = [ids.next() for _ in range(2 * claims.TAILS + 1) for ids in (one, other)]
    assert len(set(made)) == len(made)


def test_an_id_is_followed_up_to_the_largest_skew_of_a_clock(clock: SteppingClock) -> None:
    last_us = clock() + claims.LARGEST_SKEW_US
    for made_us, follows in ((last_us, True), (last_us + 1, False)):
        ids = ClaimIds(clock)
        ids.follow(f"{made_us:016x}{'0' * 8}")
        assert (int(ids.next()[:16], 16) == made_us + 1) is follows


def test_ids_made_within_a_microsecond_are_next_to_each_other(clock: SteppingClock) -> None:
    ids = ClaimIds(clock)
    made = [int(ids.next()[:16], 16) for _ in range(3)]
    assert made == [clock(), clock() + 1, clock() + 2]
