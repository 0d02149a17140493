"""Tenants are kept apart by every statement, and nothing is used that a sharded engine lacks."""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.dialects import postgresql, sqlite

import resumes.store
from resumes.store import Store, accounts, api_keys
from resumes.store.accounts import AccountInfo
from resumes.store.statements import Prepared
from tests.support import tenants
from tests.support.tenants import tables_across

pytestmark = pytest.mark.engines

STORE = Path(resumes.store.__file__).parent
DIALECTS: tuple[Any, ...] = (
    sqlite.dialect(),
    postgresql.dialect(paramstyle="format"),  # type: ignore[no-untyped-call]  # SQLAlchemy's own
)


def modules() -> Iterator[Any]:
    for found in pkgutil.walk_packages(resumes.store.__path__, "resumes.store."):
        if "migrations." not in found.name:  # Alembic alone can run these
            yield importlib.import_module(found.name)


def named(module: Any) -> Iterator[tuple[str, Any]]:
    """What a module holds by name, and what its tables of statements hold."""
    for name, value in vars(module).items():
        yield name, value
        if isinstance(value, dict):
            for inner in value.values():
                yield name, inner


def statements_of(module: Any) -> Iterator[tuple[str, str]]:
    """The SQL that a module has ready, for each engine: statements and text of its own."""
    for name, value in named(module):
        if isinstance(value, Prepared):
            yield from ((name, compiled(value, dialect)) for dialect in DIALECTS)
        elif isinstance(value, str) and re.match(r"(SELECT|INSERT|UPDATE|DELETE) ", value):
            yield name, value


def compiled(prepared: Prepared, dialect: Any) -> str:
    return Prepared(prepared._statement)._for(dialect)[0]


def sites() -> set[str]:
    """Where prepared statements are said that touch more than one account."""
    return {
        f"{module.__name__}.{name}"
        for module in modules()
        for name, sql in statements_of(module)
        if tables_across(sql)
    }


def test_no_prepared_statement_reaches_into_other_accounts() -> None:
    assert sum(1 for module in modules() for _ in statements_of(module)) > 30
    assert [site for site in sorted(sites()) if not tenants.may_cross(site)] == []


def test_a_subquery_has_to_say_the_account_as_well() -> None:
    whole = "SELECT (SELECT d.crc32 FROM documents d WHERE d.account_id = {}) FROM resumes r WHERE r.account_id = ?"
    assert tables_across(whole.format("?")) == set()
    assert tables_across(whole.format("r.account_id")) == {"documents"}


def test_each_exception_is_there_and_has_its_reason() -> None:
    prepared = {site for site in tenants.ACROSS if site.rpartition(".")[2].strip("_").isupper()}
    assert prepared == {site for site in sites() if not site.startswith("resumes.store.transfer.")}
    for site, reason in tenants.ACROSS.items():
        assert len(reason) > 10, site
        module, _, name = site.removesuffix(".").rpartition(".")
        assert hasattr(importlib.import_module(module), name), site


def test_what_the_store_runs_is_watched(
    store: Store, monkeypatch: pytest.MonkeyPatch, an_account: Callable[..., AccountInfo]
) -> None:
    an_account()
    api_keys.create_key(store, "ana")
    monkeypatch.setattr(tenants, "ACROSS", {})
    before = [*tenants.WATCH.offences]
    api_keys.list_keys(store, account="ana")
    accounts.get_account(store, "ana")
    assert before == tenants.WATCH.offences
    api_keys.list_keys(store)
    (offence,) = tenants.WATCH.offences
    tenants.WATCH.offences.clear()
    assert offence.startswith("resumes.store.api_keys._read_keys: api_keys: SELECT")


LACKING = re.compile(
    r"(?i:\bnextval\b|\bSERIAL\b|CREATE SEQUENCE|sa\.Sequence|sa\.Identity|pg_(?:try_)?advisory"
    r"|\bTEMP(?:ORARY)? TABLE|CREATE TEMP|jsonb)|\b(?:UN)?LISTEN\b|\bNOTIFY\b"
)


def test_no_source_of_the_store_uses_what_sharded_engines_lack() -> None:
    found = [
        f"{path.name}: {match[0]}"
        for path in STORE.rglob("*.py")
        for match in LACKING.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []
