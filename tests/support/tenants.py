"""Whether statements keep to one account: what sharded engines need, and what keeps tenants apart.

A table whose key begins with `account_id` is an account's. A statement that touches one has to say
which account, by a condition that always holds: `account_id = ?`, or that it equals one that is said.
An account is said as well by its unique name, and by the hash of a key, which the directory knows.
"""

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

from sqlalchemy import Engine, event

from resumes.store import schema

SRC: Final = Path(__file__).parents[2] / "src"
TESTS: Final = Path(__file__).parents[1]

TENANT_TABLES: Final = frozenset(
    table.name
    for table in schema.metadata.sorted_tables
    if next(iter(table.primary_key)).name == "account_id"
)
SAYING: Final = {
    ("accounts", "id"),
    ("accounts", "name"),
    ("key_directory", "key_hash"),
    *((table, "account_id") for table in TENANT_TABLES | {"key_directory"}),
}
"""Columns by which one account is meant."""

ACROSS: Final = {
    "resumes.store.accounts.list_accounts": "the admin's list of accounts",
    "resumes.store.accounts.list_open": "an importer finds whose folders it watches",
    "resumes.store.integrity.": "db check looks for rows of accounts that are not there",
    "resumes.store.accounts.list_wrong": "doctor proves the quota of every account",
    "resumes.store.retention.list_due_on": "a service finds what is due; it erases account by account",
    "resumes.store.plans._affected": "whom a change of a plan hits, before it is made",
    "resumes.store.accounts.count_active_keys": "the admin's list of accounts counts keys",
    "resumes.store.idempotency.prune_async": "pruning finds what is old; it deletes account by account",
    "resumes.store.api_keys._read_keys": "the admin's list of keys, and a key by its id",
    "resumes.store.migrations.": "a migration changes whole tables",
    "resumes.store.transfer.copies.": "a copy is of a whole store",
    "resumes.store.transfer.backups.": "a backup and a restore are of whole stores",
    **dict.fromkeys(
        (
            f"resumes.store.transfer.account_import._check_{what}"
            for what in ("sizes", "account", "documents", "forgotten")
        ),
        "an import looks at a copy of its file alone",
    ),
    "resumes.store.import_requests.list_requests": "an importer takes up what is asked of its folder",
    "resumes.store.import_requests._for_all_files": "accounts with files to ask for, one by one then",
    "resumes.store.import_requests.find_oldest": "doctor: whether anybody waits for an importer",
    "resumes.store.import_requests.list_unwatched_roots": "doctor and importers: folders that no importer watches",
    "resumes.store.search_index.list_behind": "the indexer finds accounts to index, one by one then",
    "resumes.store.search_index.count_indexed": "doctor tells how far the store is indexed",
    "resumes.store.search_index._count_removed": "the indexer asks whether resumes were removed",
    **dict.fromkeys(
        (
            f"resumes.store.search_engine.{name}"
            for name in ("_IS_USED", "_REMOVE_UNUSED", "_remove_unused")
        ),
        "PostgreSQL's list of words is one of all accounts",
    ),
    "resumes.store.search_index._begin_progress": "an account's number in the index is its own",
    "resumes.store.creation._LOCK_FREE": "creates of several accounts share a transaction",
    "resumes.store.import_history.": "metrics and the admin's overview count all files",
}
"""Where statements may touch many accounts, and why: functions, statements, or (with a dot at the
end) whole modules. No request of a client comes through any of them."""

_READS_OR_WRITES: Final = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b")
_VALUE: Final = r"(?:\?|%s|:\w+)"
_TABLE: Final = re.compile(
    r"(?:\b(?:FROM|JOIN|INTO|UPDATE)\s+|,\s*)(?P<table>[a-z_]+)\b(?![.(])"
    r"(?:\s+(?:AS\s+)?(?P<alias>[a-z]\w*)\b)?"
)
_SAID: Final = re.compile(rf"(?:\b(\w+)\.)?\b(\w+) = {_VALUE}")
_EQUAL: Final = re.compile(r"\b(\w+)\.(\w+) = (\w+)\.(\w+)")
_INSERT: Final = re.compile(r"\s*INSERT INTO (\w+) \(([^)]*)\)")


def tables_across(sql: str) -> set[str]:
    """The accounts' tables that the statement touches without saying of which account."""
    if not _READS_OR_WRITES.match(sql):
        return set()
    offending = set()
    inserted = _INSERT.match(sql)
    if inserted is not None:
        if inserted[1] in TENANT_TABLES and "account_id" not in re.split(r",\s*", inserted[2]):
            offending.add(inserted[1])
        sql = sql[inserted.end() :].partition("ON CONFLICT")[0]
    return offending | _judge(sql)


def _judge(sql: str) -> set[str]:
    # Each subquery says it itself: a sharded engine does not carry the account into it.
    scope, subqueries = _split(sql)
    offending = set()
    for part in re.split(r"\bUNION\b", scope):
        names = _names(part)
        if " OR " in part:
            offending |= set(names.values()) & TENANT_TABLES
        said = _said(part)
        offending |= {
            table
            for name, table in names.items()
            if table in TENANT_TABLES and (name, "account_id") not in said
        }
    for subquery in subqueries:
        offending |= _judge(subquery)
    return offending


def _split(sql: str) -> tuple[str, list[str]]:
    """The statement without its subqueries and alternatives, and its subqueries."""
    subqueries: list[str] = []
    kept, depth, began = "", 0, 0
    for at, char in enumerate(sql):
        if char == "(":
            if depth == 0:
                began = at + 1
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                inner, more = _split(sql[began:at])
                subqueries += more
                if re.match(r"\s*SELECT\b", inner):
                    subqueries.append(sql[began:at])
                    subqueries = [one for one in subqueries if one not in more]
                elif " OR " not in inner:
                    kept += f"({inner})"
        elif depth == 0:
            kept += char
    return kept, subqueries


def _names(scope: str) -> dict[str, str]:
    """The tables of a scope, by what they are called in it."""
    return {(found["alias"] or found["table"]): found["table"] for found in _TABLE.finditer(scope)}


def _said(scope: str) -> set[tuple[str, str]]:
    """Where the account is said: names of tables with their columns."""
    names = _names(scope)
    said: set[tuple[str, str]] = set()
    for name, column in _SAID.findall(scope):
        places = [name] if name else list(names)
        if len(places) == 1 and (names.get(places[0]), column) in SAYING:
            said.add((places[0], column))
    return _spread(said, _EQUAL.findall(scope), names)


def _spread(
    said: set[tuple[str, str]], equal: list[tuple[str, str, str, str]], names: dict[str, str]
) -> set[tuple[str, str]]:
    """What is said of one column is said of each that equals it, and of its row."""
    while True:
        more = set(said)
        for name, column in said:
            whole = "id" if names.get(name) == "accounts" else "account_id"
            if (names.get(name), column) in SAYING:
                more.add((name, whole))
        for first, first_column, second, second_column in equal:
            pair = {(first, first_column), (second, second_column)}
            if pair & more and all((names.get(name), column) in SAYING for name, column in pair):
                more |= pair
        if more == said:
            return said
        said = more


def may_cross(site: str) -> bool:
    """Whether statements of this function, or of this name, may touch many accounts."""
    return any(site == one or (one.endswith(".") and site.startswith(one)) for one in ACROSS)


def site_of(frame: FrameType | None) -> str | None:
    """The function of ours that runs a statement, `resumes.store.api_keys.list_keys`; None: a test."""
    while frame is not None:
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(TESTS):
            return None
        if file.is_relative_to(SRC):
            module = ".".join(file.relative_to(SRC).with_suffix("").parts)
            site = f"{module}.{frame.f_code.co_qualname}"
            if not site.endswith(
                (".fetch", ".fetch_async", ".fetch_reachable")
            ):  # which run what others ask for
                return site
        frame = frame.f_back
    return None


class Watch:
    """Every statement that SQLAlchemy runs in this process, judged when it is first seen.

    Those that are compiled once and go past it (`Prepared`) are found in their modules.
    """

    def __init__(self) -> None:
        self.offences: list[str] = []
        self._innocent: set[str] = set()
        event.listen(Engine, "before_cursor_execute", self._look)

    def _look(self, _connection: Any, _cursor: Any, sql: str, *_: Any) -> None:
        if sql in self._innocent:
            return
        tables = tables_across(sql)
        if not tables:
            self._innocent.add(sql)
            return
        site = site_of(sys._getframe(1))
        if site is not None and not may_cross(site):
            self.offences.append(f"{site}: {', '.join(sorted(tables))}: {sql}")

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """No statement of the block touches more than one account. Raises AssertionError."""
        self.offences.clear()
        yield
        found = "\n".join(self.offences)
        self.offences.clear()
        assert not found, found


WATCH: Final = Watch()
