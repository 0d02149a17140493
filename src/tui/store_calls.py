"""How a screen asks the store: in a thread, which a worker awaits; and how errors are shown.

The event loop never waits for the store, and a thread never touches a widget. A worker that is
canceled has no use for the answer: the thread continues, and what it returns is dropped.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from textual import work
from textual.content import Content
from textual.dom import DOMNode
from textual.worker import Worker, get_current_worker

from resumes.errors import ErrorCode, ResumesError
from tui.text import safe

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")
"""The store: widgets, which import this module, know none."""

logger = logging.getLogger("resumes.tui")

STORE_THREADS = 4
"""How many calls are under way at a time; each thread has a connection of its own."""

_RETRY: Final = "Press r to retry."
_REFRESH: Final = "Press r to refresh."
_DATA: Final = f"{_REFRESH} `resumes doctor` checks the store."

REMEDIES: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.INVALID_JSON: _DATA,
    ErrorCode.INVALID_RESUME: _DATA,
    ErrorCode.COVER_LETTER: "Only resumes are stored.",
    ErrorCode.TOO_LARGE: "Make it smaller.",
    ErrorCode.INVALID_ARGUMENT: "Correct it and try again.",
    ErrorCode.INVALID_KEY: "Create a new one with n in Keys.",
    ErrorCode.QUOTA_REACHED: "Choose a larger plan with p in Accounts.",
    ErrorCode.BUSINESS_PLAN_REQUIRED: "Change the plan with p in Accounts.",
    ErrorCode.NOT_FOUND: f"It may have been deleted. {_REFRESH}",
    ErrorCode.CONFLICT: f"Nothing was changed. {_REFRESH}",
    ErrorCode.IDEMPOTENCY_MISMATCH: f"Nothing was changed. {_REFRESH}",
    ErrorCode.STORE_UNAVAILABLE: _RETRY,
    ErrorCode.OUTCOME_UNKNOWN: _REFRESH,
    ErrorCode.STATEMENT_REFUSED: _DATA,
    ErrorCode.STORE_INCOMPATIBLE: "Press q to quit, or r to retry.",
}


@dataclass(eq=False)
class Failure(Exception):
    """A store call that did not work, in words for the reader."""

    message: str
    remedy: str
    is_passing: bool = False
    """Whether the store is away, so that the same call may work later."""

    is_gone: bool = False
    """Whether what was asked for is not there any more."""

    @property
    def content(self) -> Content:
        """The failure as one line."""
        end = "" if self.message.endswith((".", "!", "?")) else "."
        return safe(f"! {self.message}{end} {self.remedy}")


def failure(error: ResumesError) -> Failure:
    """Return how an expected error is shown."""
    is_passing = error.code is ErrorCode.STORE_UNAVAILABLE
    is_gone = error.code is ErrorCode.NOT_FOUND
    return Failure(error.message, REMEDIES[error.code], is_passing, is_gone)


class _ShowsFailures(Protocol):
    def show_failure(self, failure: Failure) -> None: ...


S = TypeVar("S", bound=_ShowsFailures)


async def call(
    store: R,
    function: Callable[Concatenate[R, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Return what the function returns for the store; for a worker alone. Raises Failure."""
    try:
        return await asyncio.to_thread(function, store, *args, **kwargs)
    except ResumesError as error:
        raise failure(error) from error
    except Exception as error:  # the edge of this surface: logged whole, shown with an id
        reference = secrets.token_hex(4)
        logger.exception("Internal error %s in a store call", reference)
        remedy = f"See the log for details. {_RETRY}"
        raise Failure(f"Internal error {reference}", remedy) from error
    finally:
        # Textual removes the parts of a screen before it cancels the screen's workers, and what is
        # being removed is not displayed.
        if not get_current_worker().node.display:
            raise asyncio.CancelledError


Method = Callable[Concatenate[S, P], Coroutine[Any, Any, None]]
WorkerMethod = Callable[Concatenate[S, P], Worker[None]]


def store_work(*, exclusive: bool = False) -> Callable[[Method[S, P]], WorkerMethod[S, P]]:
    """Make a method a worker that may end with a Failure, which its screen then shows.

    `exclusive` cancels the one of the same method that is under way: it must not write, since nobody
    would see its outcome.
    """

    def decorate(method: Method[S, P]) -> WorkerMethod[S, P]:
        # Textual would describe the worker by all its arguments, however long they are.
        @work(group=method.__name__, exclusive=exclusive, description="")
        @wraps(method)
        async def run(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
            try:
                await method(self, *args, **kwargs)
            except Failure as failure:
                self.show_failure(failure)

        return run

    return decorate


def is_running(node: DOMNode, method: Callable[..., object]) -> bool:
    """Return whether the method, a worker, is under way for the node."""
    return any(
        worker.node is node and worker.name == method.__name__
        for worker in node.workers
        if not (worker.is_finished or worker.is_cancelled)
    )
