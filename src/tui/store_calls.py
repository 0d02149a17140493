"""How a screen asks the store: in a thread, with the answer as a message.

The event loop never waits for the store, and a thread never touches a widget. Textual can
cancel the task that waits for a thread, not the thread: an old call may end after a new one of
its group. So every call has a generation number, and the reply of an older one is dropped.
"""

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from textual.dom import DOMNode
from textual.message import Message

from resumes.errors import ResumesError
from tui.notices import Failure, failure, internal_failure

if TYPE_CHECKING:
    from resumes.store.store import Store

T = TypeVar("T")

logger = logging.getLogger("resumes.tui")

STORE_THREADS = 4
"""How many calls are under way at a time; each thread has a connection of its own."""

CHANGES = "changes"
"""The group of calls that write. They are never cancelled, and each gets its reply."""


@dataclass(frozen=True, slots=True)
class _Call:
    group: str
    generation: int
    run: Callable[["Store"], Any]
    then: Callable[[Any], None]
    failed: Callable[[Failure], None]


class Reply(Message, bubble=False):
    """A call has ended. Posted from its thread to the screen that asked."""

    def __init__(self, call: _Call, outcome: Any) -> None:
        super().__init__()
        self.call = call
        self.outcome = outcome


class StoreClient:
    """The store as one screen sees it, or the app, which hands each `Reply` it gets to `deliver`."""

    def __init__(self, store: "Store", screen: DOMNode) -> None:
        self._store = store
        self._screen = screen
        self._generations: dict[str, int] = {}

    def read(
        self,
        group: str,
        run: Callable[["Store"], T],
        then: Callable[[T], None],
        failed: Callable[[Failure], None],
    ) -> None:
        """`then` or `failed` is called with the outcome, unless the group was asked again."""
        generation = self._generations[group] = self._generations.get(group, 0) + 1
        self._start(_Call(group, generation, run, then, failed), exclusive=True)

    def drop(self, group: str) -> None:
        """What was asked in the group is not wanted any more: its reply will be dropped."""
        self._generations[group] = self._generations.get(group, 0) + 1

    def change(
        self,
        run: Callable[["Store"], T],
        then: Callable[[T], None],
        failed: Callable[[Failure], None],
    ) -> None:
        """`then` or `failed` is called with the outcome."""
        self._start(_Call(CHANGES, 0, run, then, failed), exclusive=False)

    def deliver(self, reply: Reply) -> None:
        """The call's continuation has run, unless a newer call of its group made it stale."""
        call = reply.call
        if call.group != CHANGES and call.generation != self._generations[call.group]:
            return
        if isinstance(reply.outcome, Failure):
            call.failed(reply.outcome)
        else:
            call.then(reply.outcome)

    def _start(self, call: _Call, *, exclusive: bool) -> None:
        self._screen.run_worker(
            partial(self._run, call),
            group=call.group,
            exclusive=exclusive,
            thread=True,
            exit_on_error=False,
        )

    def _run(self, call: _Call) -> None:
        """In a thread: nothing here but the call and one message."""
        self._screen.post_message(Reply(call, self._outcome(call)))

    def _outcome(self, call: _Call) -> Any:
        try:
            return call.run(self._store)
        except ResumesError as error:
            return failure(error)
        except Exception:  # the edge of this surface: logged whole, shown with an id
            reference = secrets.token_hex(4)
            logger.exception("Internal error %s in a store call (%s)", reference, call.group)
            return internal_failure(reference)
