import pytest

from resumes.errors import Conflict
from resumes.store import Store, account_rows
from resumes.store.account_file import Kind, Row
from resumes.store.account_rows import add_rows, iter_slices

pytestmark = pytest.mark.engines


def test_a_slice_is_of_one_kind_and_bounded_in_rows_and_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(account_rows, "SLICE_ROWS", 3)
    monkeypatch.setattr(account_rows, "SLICE_BYTES", 2_000)
    small, large = Row(Kind.ITEM, {}), Row(Kind.RESUME, {}, b"x" * 2_000)
    rows = [large, large, small, small, small, small]
    assert [len(some) for some in iter_slices(rows)] == [1, 1, 3, 1]


def test_rows_of_an_account_that_has_gone_are_refused(store: Store) -> None:
    told: list[int] = []
    with pytest.raises(Conflict, match="deleted while it was imported"):
        add_rows(store, "f" * 16, "2027-01-15T08:00:00.000Z", [Row(Kind.ITEM, {})], told.append)
    assert told == []
