"""An account on its way out."""

import hashlib
import io
import json
from collections.abc import Callable, Iterator

import pytest

from resumes.errors import Conflict
from resumes.store import Store, account_export, accounts, creating, keys, listing
from resumes.store.account_export import iter_lines
from resumes.store.account_file import Kind, Row
from resumes.store.account_file_reader import Reader
from resumes.store.accounts import AccountInfo
from tests.resumes.builders import a_claim, a_resume
from tests.resumes.store.builders import a_file
from tests.resumes.store.damages import damage
from tests.resumes.store.exports import exported, fill

pytestmark = pytest.mark.engines

MakeAccount = Callable[..., AccountInfo]


def rows_of(export: bytes) -> dict[Kind, list[Row]]:
    rows: dict[Kind, list[Row]] = {kind: [] for kind in Kind}
    for row in Reader(io.BytesIO(export)):
        rows[row.kind].append(row)
    return rows


def test_everything_of_the_account_is_in_its_export_and_nothing_of_others(
    store: Store, an_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_export, "LARGE_ROWS", 2)
    monkeypatch.setattr(account_export, "SMALL_ROWS", 3)
    ana, bo = an_account("ana"), an_account("bo")
    ids = fill(store, ana, 7)
    fill(store, bo, 2)
    a_file(store, ana, "9" * 24)

    rows = rows_of(exported(store))

    assert [row.values["id"] for row in rows[Kind.RESUME]] == ids
    for row in rows[Kind.RESUME]:
        stored = listing.get_resume(store, ana.id, row.values["id"])
        assert row.document == stored.document.encode()
    assert [row.values["item"] for row in rows[Kind.ITEM]] == list(range(7))
    assert {row.values["resume_id"] for row in rows[Kind.DIGEST]} == set(ids)
    assert [row.values["claim_id"] for row in rows[Kind.FILE]] == ["0" * 24, "9" * 24]
    assert rows[Kind.FILE][1].values["source"] == b"{"
    assert rows[Kind.KEY] == []


@pytest.mark.parametrize("table", ["resumes", "documents"])
def test_a_digest_whose_resume_was_lost_is_left_out(
    store: Store, table: str, an_account: MakeAccount
) -> None:
    ana = an_account()
    lost, kept = fill(store, ana, 2)
    damage(
        store, f"DELETE FROM {table} WHERE account_id = :id AND id = :lost", id=ana.id, lost=lost
    )

    digests = rows_of(exported(store))[Kind.DIGEST]

    assert [row.values["resume_id"] for row in digests] == [kept]


def test_keys_go_along_when_asked_for_and_only_those_that_count(
    store: Store, an_account: MakeAccount
) -> None:
    an_account()
    kept, revoked = keys.create_key(store, "ana", name="one"), keys.create_key(store, "ana")
    keys.revoke_key(store, revoked.id)

    (row,) = rows_of(exported(store, with_keys=True))[Kind.KEY]

    assert (row.values["id"], row.values["key_hash"]) == (kept.id, keys.hash_key(kept.secret))
    assert kept.secret.encode() not in exported(store, with_keys=True)


def test_what_comes_in_meanwhile_is_left_out_whole(store: Store, an_account: MakeAccount) -> None:
    ana = an_account()
    first = fill(store, ana, 2)
    lines: Iterator[bytes] = iter_lines(store, accounts.get_account(store, "ana"))
    header = next(lines)
    more = [a_resume("Later", with_digest=True)]
    creating.create(store, ana.id, more, claim=a_claim("5" * 24))

    rows = rows_of(header + b"".join(lines))

    assert [row.values["id"] for row in rows[Kind.RESUME]] == first
    assert {row.values["resume_id"] for row in rows[Kind.DIGEST]} == set(first)
    assert {row.values["resume_id"] for row in rows[Kind.ITEM]} == set(first)


def test_the_last_line_has_the_sha256_of_all_before_it(
    store: Store, an_account: MakeAccount
) -> None:
    fill(store, an_account(), 1)
    *before, last = exported(store).splitlines(keepends=True)
    assert json.loads(last)["sha256"] == hashlib.sha256(b"".join(before)).hexdigest()


def test_whoever_waits_is_told_how_many_resumes_are_out(
    store: Store, an_account: MakeAccount
) -> None:
    fill(store, an_account(), 3)
    told: list[int] = []
    for _ in iter_lines(store, accounts.get_account(store, "ana"), told=told.append):
        pass
    assert told == [1, 2, 3]


def test_an_account_that_is_deleted_meanwhile_does_not_look_whole(
    store: Store, an_account: MakeAccount
) -> None:
    ana = an_account()
    fill(store, ana, 3)
    lines = iter_lines(store, ana)
    next(lines)

    accounts.delete_account(store, "ana", with_resumes=True)

    with pytest.raises(Conflict, match="was deleted while it was exported"):
        list(lines)
