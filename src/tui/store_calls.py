"""Calling the store from screens, in threads that workers await, and describing its errors.

The event loop never waits for the store, and a thread never touches a widget. If a worker is
canceled, its thread continues and the result is dropped.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Coroutine, Iterator, Mapping
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
"""The store's type: widgets, which must not use the store, import this module."""

logger = logging.getLogger("resumes.tui")

STORE_THREADS = 4
"""Maximum number of concurrent calls; each thread has its own connection."""

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
    ErrorCode.FORGOTTEN: "`resumes forget EMAIL --lift` allows it again.",
    ErrorCode.BUSINESS_PLAN_REQUIRED: "Change the plan with p in Accounts.",
    ErrorCode.NOT_FOUND: f"It may have been deleted. {_REFRESH}",
    ErrorCode.CONFLICT: f"Nothing was changed. {_REFRESH}",
    ErrorCode.IDEMPOTENCY_MISMATCH: f"Nothing was changed. {_REFRESH}",
    ErrorCode.RESUME_CHANGED: _REFRESH,
    ErrorCode.STORE_UNAVAILABLE: _RETRY,
    ErrorCode.OUTCOME_UNKNOWN: _REFRESH,
    ErrorCode.STATEMENT_REFUSED: _DATA,
    ErrorCode.STORE_INCOMPATIBLE: "Press q to quit, or r to retry.",
}


@dataclass(eq=False)
class Failure(Exception):
    """A failed store call, described for the user."""

    message: str
    remedy: str
    is_passing: bool = False
    """Whether the store is unavailable, so that the same call may succeed later."""

    is_gone: bool = False
    """Whether the requested object no longer exists."""

    @property
    def content(self) -> Content:
        """The failure and its remedy on one line."""
        end = "" if self.message.endswith((".", "!", "?")) else "."
        return safe(f"! {self.message}{end} {self.remedy}")


def failure(error: ResumesError) -> Failure:
    """Return a Failure that describes an expected error."""
    is_passing = error.code is ErrorCode.STORE_UNAVAILABLE
    is_gone = error.code is ErrorCode.NOT_FOUND
    return Failure(error.message, REMEDIES[error.code], is_passing, is_gone)


class _ShowsFailures(Protocol):
    def show_failure(self, failure: Failure) -> None: ...


S = TypeVar("S", bound=_ShowsFailures)


async def call(
    store: R, function: Callable[Concatenate[R, P], T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call the function with the store in a thread. Must be called in a worker. Raises Failure."""
    try:
        return await asyncio.to_thread(function, store, *args, **kwargs)
    except ResumesError as error:
        raise failure(error) from error
    except Exception as error:  # an unexpected error is logged in full and shown with a reference
        reference = secrets.token_hex(4)
        logger.exception("Internal error %s in a store call", reference)
        remedy = f"See the log for details. {_RETRY}"
        raise Failure(f"Internal error {reference}", remedy) from error
    finally:
        # Textual removes a screen's widgets before it cancels the screen's workers. In widgets that
        # are being removed, `display` is false.
        if not get_current_worker().node.display:
            raise asyncio.CancelledError


WRITES: Final = "writes"
"""The group of all workers that may write."""

Method = Callable[Concatenate[S, P], Coroutine[Any, Any, None]]
WorkerMethod = Callable[Concatenate[S, P], Worker[None]]


def store_work(*, exclusive: bool = False) -> Callable[[Method[S, P]], WorkerMethod[S, P]]:
    """Make a method a worker. If it raises Failure, the screen shows it.

    `exclusive` cancels a running worker of the same method. An exclusive method must not write,
    because the outcome of a canceled write is not shown. `is_writing` finds the other workers.
    """

    def decorate(method: Method[S, P]) -> WorkerMethod[S, P]:
        # By default, Textual puts all arguments, however long, into the worker's description.
        @work(group=method.__name__ if exclusive else WRITES, exclusive=exclusive, description="")
        @wraps(method)
        async def run(self: S, *args: P.args, **kwargs: P.kwargs) -> None:
            try:
                await method(self, *args, **kwargs)
            except Failure as failure:
                self.show_failure(failure)

        return run

    return decorate


def is_running(node: DOMNode, method: Callable[..., object]) -> bool:
    """Return whether the worker method is running for the node."""
    return any(worker.name == method.__name__ for worker in _iter_running(node))


def is_writing(node: DOMNode) -> bool:
    """Return whether a worker that may write is running for the node."""
    return any(worker.group == WRITES for worker in _iter_running(node))


def _iter_running(node: DOMNode) -> Iterator[Worker[Any]]:
    for worker in node.workers:
        if worker.node is node and not (worker.is_finished or worker.is_cancelled):
            yield worker
