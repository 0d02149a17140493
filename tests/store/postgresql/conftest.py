from collections.abc import Iterator

import pytest

from tests.support import postgres

VERSIONS = [pytest.param("16", marks=pytest.mark.campaign), "18"]


@pytest.fixture(scope="package", params=VERSIONS, ids=lambda version: f"PostgreSQL {version}")
def server(request: pytest.FixtureRequest) -> Iterator[postgres.Server]:
    """A server that tests of this package may stop, freeze and configure; they leave it well."""
    with postgres.running(request.param) as server:
        yield server


@pytest.fixture
def url(server: postgres.Server) -> Iterator[str]:
    """An empty database."""
    name = server.make_database()
    yield server.url(name)
    server.drop_database(name)
