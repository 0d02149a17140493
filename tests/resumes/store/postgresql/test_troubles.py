"""What a driver's error means."""

import psycopg
import pytest

from resumes.errors import ErrorCode
from resumes.store.postgresql.troubles import Trouble, explain, trouble_of
from tests.postgres import Server


@pytest.mark.parametrize(
    ("state", "trouble"),
    [
        ("0A000", Trouble.GONE),
        ("25006", Trouble.GONE),
        ("57P01", Trouble.GONE),
        ("57P03", Trouble.GONE),
        ("08006", Trouble.GONE),
        ("53300", Trouble.GONE),
        ("40001", Trouble.RACE),
        ("40P01", Trouble.RACE),
        ("23505", Trouble.RACE),
        ("55P03", Trouble.BUSY),
        ("57014", Trouble.BUSY),
        ("53100", Trouble.FULL),
        ("22012", Trouble.OTHER),
        ("42601", Trouble.OTHER),
    ],
)
def test_what_the_server_says_is_sorted(server: Server, state: str, trouble: Trouble) -> None:
    with psycopg.connect(server.url()) as connection, pytest.raises(psycopg.Error) as caught:
        connection.execute(f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{state}'; END $$")
    assert trouble_of(caught.value) is trouble


def test_a_server_that_is_not_there_is_gone() -> None:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect("postgresql://ana@127.0.0.1:1/db", connect_timeout=2)
    assert trouble_of(caught.value) is Trouble.GONE


def test_an_error_of_our_own_is_no_servers() -> None:
    assert trouble_of(ValueError("x")) is Trouble.OTHER


def test_an_error_is_told_in_its_first_line() -> None:
    told = explain(psycopg.OperationalError("connection refused"), "postgresql://host/db")
    assert told.code is ErrorCode.STORE_UNAVAILABLE
    assert told.message == (
        "The database postgresql://host/db cannot be used now: connection refused"
    )
