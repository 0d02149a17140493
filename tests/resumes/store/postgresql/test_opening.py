"""Opening a store in PostgreSQL: what is told when it cannot be had."""

import time

import psycopg
import pytest

from resumes.errors import StoreUnavailable
from resumes.store import open_store, plans
from resumes.store.postgresql import opening
from tests.postgres import Server, free_port


def test_a_new_store_has_the_three_plans(url: str) -> None:
    with open_store(url) as store:
        assert [plan.name for plan in plans.list_plans(store)] == ["free", "pro", "business"]


def test_any_form_of_the_address_opens_it(url: str) -> None:
    rest = url.partition("://")[2]
    for scheme in ("postgres", "postgresql+psycopg", "postgresql+asyncpg"):
        with open_store(f"{scheme}://{rest}") as store:
            assert plans.list_plans(store)


def test_of_several_servers_one_that_can_be_written_to_is_enough(url: str, server: Server) -> None:
    name = url.rpartition("/")[2]
    hosts = f"127.0.0.1:{free_port()},127.0.0.1:{server.port}"
    with open_store(
        f"postgresql://resumes@{hosts}/{name}?target_session_attrs=read-write"
    ) as store:
        assert plans.list_plans(store)


def test_a_server_that_is_not_there_is_told(server: Server) -> None:
    port = free_port()
    with pytest.raises(StoreUnavailable, match=rf"postgresql://127.0.0.1:{port}/db .*refused"):
        open_store(f"postgresql://ana:hidden@127.0.0.1:{port}/db")


def test_a_database_that_is_not_there_is_told_without_the_password(server: Server) -> None:
    address = f"postgresql://resumes:hidden@127.0.0.1:{server.port}/missing"
    with pytest.raises(StoreUnavailable, match='"missing" does not exist') as told:
        open_store(address)
    assert "hidden" not in told.value.message


@pytest.mark.timing
def test_who_only_looks_does_not_wait_for_long(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "LOOK_PATIENCE_S", 0.5)
    open_store(url).close()
    with psycopg.connect(url) as other:
        other.execute("LOCK TABLE alembic_version IN ACCESS EXCLUSIVE MODE")
        began_s = time.monotonic()
        with pytest.raises(StoreUnavailable, match="did not answer"):
            open_store(url)
        assert time.monotonic() - began_s < 5
