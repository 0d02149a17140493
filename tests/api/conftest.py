from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.api.builders import Client
from tests.support.api.serving import Place, serve_here


@pytest.fixture(autouse=True)
def _clients_are_closed() -> Iterator[None]:
    """Each client that a test makes is closed at its end."""
    made: list[Client] = []
    make = Client.__init__

    def make_and_keep(client: Client, *arguments: Any, **options: Any) -> None:
        make(client, *arguments, **options)
        made.append(client)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "__init__", make_and_keep)
        yield
    for client in made:
        client.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One server for a module, with the settings of a beginner and a store in a file."""
    with serve_here(tmp_path_factory.mktemp("home")) as place:
        yield place


@pytest.fixture
def client(place: Place) -> Client:
    """A client whose new account is on the business plan."""
    return place.client()


@pytest.fixture
def free_client(place: Place) -> Client:
    """A client whose new account is on the free plan: 5 resumes, no listing."""
    return place.client("free")


@pytest.fixture
def a_place(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    """Makes servers with settings of their own: `a_place(max_body_bytes=1_024)`."""
    with ExitStack() as stack:
        yield lambda **changes: stack.enter_context(serve_here(tmp_path, **changes))
