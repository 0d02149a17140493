from resumes.store import Store, accounts
from resumes.store.moving.proving import digest_tables
from resumes.store.postgresql.snapshots import snapshot_of
from tests.resumes.store.moving.builders import fill_store, held_by


def test_a_snapshot_stays_as_it_was_while_others_write(store: Store, url: str) -> None:
    fill_store(store)
    before = held_by(store)
    with snapshot_of(url) as connection:
        assert digest_tables(connection, lambda table, rows: None) == before
        accounts.create_account(store, "late")
        assert digest_tables(connection, lambda table, rows: None) == before
    assert held_by(store) != before
