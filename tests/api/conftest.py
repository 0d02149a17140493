from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.api.builders import Client
from tests.support.api.serving import Place, serve_here


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One server for a module, with the settings of a beginner and a store in a file."""
    with serve_here(tmp_path_factory.mktemp("home")) as place:
        yield place


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    """A client whose new account is on the business plan."""
    yield (client := place.client())
    client.close()


@pytest.fixture
def free_client(place: Place) -> Iterator[Client]:
    """A client whose new account is on the free plan: 5 resumes, no listing."""
    yield (client := place.client("free"))
    client.close()


@pytest.fixture
def a_place(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    """Makes servers with settings of their own: `a_place(max_body_bytes=1_024)`."""
    with ExitStack() as stack:
        yield lambda **changes: stack.enter_context(serve_here(tmp_path, **changes))
