"""How a screen asks the store: in a thread, which a worker awaits.

The event loop never waits for the store, and a thread never touches a widget. A worker that is
canceled has no use for the answer: the thread goes on by itself, and what it returns is dropped.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from textual import work
from textual.dom import DOMNode
from textual.worker import Worker

from resumes.errors import ResumesError
from tui.notices import Failure, failure, internal_failure

if TYPE_CHECKING:
    from resumes.store.store import Store

T = TypeVar("T")
P = ParamSpec("P")

logger = logging.getLogger("resumes.tui")

STORE_THREADS = 4
"""How many calls are under way at a time; each thread has a connection of its own."""


class _ShowsFailures(Protocol):
    def show_failure(self, failure: Failure) -> None: ...


S = TypeVar("S", bound=_ShowsFailures)


async def call(
    store: "Store",
    function: "Callable[Concatenate[Store, P], T]",
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Return what the function returns for the store. Raises Failure."""
    try:
        return await asyncio.to_thread(function, store, *args, **kwargs)
    except ResumesError as error:
        raise failure(error) from error
    except Exception as error:  # the edge of this surface: logged whole, shown with an id
        reference = secrets.token_hex(4)
        logger.exception("Internal error %s in a store call", reference)
        raise internal_failure(reference) from error


def store_work(
    *, group: str = "default", exclusive: bool = False
) -> Callable[
    [Callable[Concatenate[S, P], Coroutine[Any, Any, None]]],
    Callable[Concatenate[S, P], Worker[None]],
]:
    """Make a method a worker that may end with a Failure, which its screen then shows.

    `exclusive` cancels the worker of the same group that is under way: nothing that writes may be
    in such a group, since nobody would hear of its outcome.
    """

    def decorate(
        method: Callable[Concatenate[S, P], Coroutine[Any, Any, None]],
    ) -> Callable[Concatenate[S, P], Worker[None]]:
        # Textual would describe the worker by all its arguments, however long they are.
        @work(group=group, exclusive=exclusive, description="")
        @wraps(method)
        async def run(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
            try:
                await method(self, *args, **kwargs)
            except Failure as failure:
                self.show_failure(failure)

        return run

    return decorate


def is_running(node: DOMNode, group: str, name: str | None = None) -> bool:
    """Return whether a worker of the group, or the one of this name, is under way for the node."""
    return any(
        worker.node is node and worker.group == group and name in (None, worker.name)
        for worker in node.workers
        if not (worker.is_finished or worker.is_cancelled)
    )
