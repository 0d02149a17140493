"""Databases of a PostgreSQL server that tests may stop."""

from collections.abc import Iterator

import pytest

from tests.support import postgres


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    """A server that these tests may stop, if they start it again."""
    with postgres.running("18") as server:
        yield server


@pytest.fixture
def url(server: postgres.Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty database, which the environment names."""
    name = server.make_database()
    monkeypatch.setenv("RESUMES_DATABASE", server.url(name))
    yield server.url(name)
    server.drop_database(name)
