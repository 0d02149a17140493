import re

from resumes.store import identifiers


def test_a_resume_id_is_its_position_and_8_random_digits() -> None:
    first, second = identifiers.resume_id(255), identifiers.resume_id(255)
    assert identifiers.RESUME_ID.fullmatch(first)
    assert first[:16] == second[:16] == "00000000000000ff"
    assert first != second


def test_ids_compare_as_their_positions_do() -> None:
    positions = [0, 1, 9, 10, 15, 16, 1_800_000_000_000_000, 2**53]
    ids = [identifiers.resume_id(position) for position in positions]
    assert ids == sorted(ids)


def test_account_and_key_ids_are_random() -> None:
    assert len({identifiers.account_id() for _ in range(100)}) == 100
    assert all(identifiers.KEY_ID.fullmatch(identifiers.key_id()) for _ in range(3))


def test_random_ends_are_as_many_as_asked_for_and_differ() -> None:
    tails = list(identifiers.tails(200))
    assert len(tails) == len(set(tails)) == 200
    assert all(identifiers.RESUME_ID.fullmatch(identifiers.resume_id(1, tail)) for tail in tails)
    assert identifiers.resume_id(255, tails[0]) == f"00000000000000ff{tails[0]}"
    assert list(identifiers.tails(0)) == []


def test_ids_of_accounts_and_keys_have_their_forms() -> None:
    assert re.fullmatch("[0-9a-f]{16}", identifiers.account_id())
    assert re.fullmatch("key_[0-9a-f]{12}", identifiers.key_id())
