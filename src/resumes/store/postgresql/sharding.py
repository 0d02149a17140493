"""Sharding with the extension Citus: how tables are distributed over nodes (docs/sharding.md)."""

from typing import Final

from sqlalchemy import text

from resumes.errors import Conflict
from resumes.store.addresses import PostgresAddress
from resumes.store.postgresql.store import (
    BEGIN_UPGRADE,
    IS_SHARDED,
    TABLES_TIMEOUT,
    UPGRADE_TIMEOUT_S,
    lock_tables,
    transaction_on,
)
from resumes.store.schema import ACCOUNT_TABLES, account_usage

_ON_EACH_NODE: Final = ("plans", "accounts")

_ON_COORDINATOR: Final = ("api_keys", "import_requests", "key_directory")
"""Tables that are searched without knowing the account, for example for the key of a request. If
they were distributed, one dead node would stop the requests of all accounts."""

_BEGIN: Final = (
    # Tables that refer to tables on each node must be distributed sequentially.
    f"{BEGIN_UPGRADE};{TABLES_TIMEOUT};SET LOCAL citus.multi_shard_modify_mode = 'sequential'"
)


def distribute(address: PostgresAddress) -> list[str]:
    """Distribute the accounts of a store over the nodes of its cluster, in one transaction; return
    the tables that were not distributed yet.

    Raises Conflict if the server does not have the extension, and StoreUnavailable.
    """
    first = account_usage.name
    names = [table.name for table in ACCOUNT_TABLES if table.name not in _ON_COORDINATOR]
    with transaction_on(address, _BEGIN, timeout_s=UPGRADE_TIMEOUT_S) as connection:
        if not connection.execute(text(IS_SHARDED)).scalar_one():
            raise Conflict(f"{address.label} lacks the extension citus: see docs/sharding.md")
        lock_tables(connection)
        done = {*connection.scalars(text("SELECT logicalrelid::text FROM pg_dist_partition"))}
        # Citus cannot enforce unique numbers across nodes. Numbers need not be unique, because each
        # search specifies its account.
        connection.execute(
            text("ALTER TABLE search_progress DROP CONSTRAINT IF EXISTS search_progress_number_key")
        )
        ordered = dict.fromkeys([*_ON_EACH_NODE, first, *names])
        added = [name for name in ordered if name not in done]
        for name in added:
            if name in _ON_EACH_NODE:
                connection.execute(text(f"SELECT create_reference_table('{name}')"))
                continue
            beside = "none" if name == first else first
            table = f"'{name}', 'account_id', colocate_with => '{beside}'"
            connection.execute(text(f"SELECT create_distributed_table({table})"))
            # Otherwise the coordinator's disk would keep the old rows, even of erased people.
            truncate = f"truncate_local_data_after_distributing_table('{name}')"
            connection.execute(text(f"SELECT {truncate}"))
        return added
