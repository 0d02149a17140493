"""What the planner is told, and the plans that come of it before it has statistics."""

import psycopg
import pytest

from resumes.store import accounts, open_store
from resumes.store.listing import PAGE
from resumes.store.postgresql.planner import RANDOM_PAGE_COST
from tests.postgres import Server

RESUMES = """
    INSERT INTO resumes (account_id, id, filename, created_at, updated_at)
    SELECT %s, 'res_' || lpad(number::text, 22, '0'), 'resume.json', '2027-01-15', '2027-01-15'
    FROM generate_series(1, 5000) AS number
"""
COST = "SELECT setting FROM pg_settings WHERE name = 'random_page_cost'"


def cost(url: str) -> str:
    with psycopg.connect(url) as connection:
        (setting,) = connection.execute(COST).fetchone() or ("",)
    return str(setting)


def test_a_page_of_an_account_that_has_just_grown_walks_the_key(url: str) -> None:
    with open_store(url) as store:
        account = accounts.create_account(store, "ana")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER TABLE resumes SET (autovacuum_enabled = off)")
            connection.execute(RESUMES, [account.id])
        with store.read() as connection:
            sql, names, constants = PAGE._for(connection)
        values = constants | {"account_id": account.id, "after": "", "rows": 21}
        with psycopg.connect(url) as connection:
            lines = connection.execute(f"EXPLAIN {sql}".encode(), [values[name] for name in names])
            plan = "\n".join(line for (line,) in lines)
    assert "Index Scan using resumes_pkey" in plan
    assert "Sort" not in plan


def test_what_somebody_chose_is_left(server: Server) -> None:
    name = server.make_database()
    server.execute(f"ALTER DATABASE {name} SET random_page_cost = 3")
    open_store(server.url(name)).close()
    assert cost(server.url(name)) == "3"
    server.drop_database(name)


@pytest.mark.parametrize("owns", [True, False], ids=["its own database", "somebody's database"])
def test_a_role_without_rights_sets_its_own(server: Server, owns: bool) -> None:
    name = server.make_database()
    role = f"role_{name}"
    server.execute(f"CREATE ROLE {role} LOGIN")
    server.execute(
        f"ALTER DATABASE {name} OWNER TO {role}"
        if owns
        else f"GRANT ALL ON SCHEMA public TO {role}",
        database=name,
    )
    url = server.url(name).replace("resumes@", f"{role}@")
    open_store(url).close()
    assert cost(url) == RANDOM_PAGE_COST
    assert cost(server.url(name)) != RANDOM_PAGE_COST
    server.drop_database(name)
