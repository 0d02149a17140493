"""Hearing of changes soon. Events only say "look": some are lost, and the scan finds everything.

One watcher is kept for as long as it lives, since making one anew misses what happens meanwhile
(paperless-ngx issue 13011). A file name that is not UTF-8 ends it; then it is made again.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import watchfiles

from importer.scanning import is_outcome
from importer.telling import Remark

logger = logging.getLogger("resumes.importer")

GROUPING_MS = 200
"""The longest that changes are collected for while more keep coming."""

STEP_MS = 20
"""How long it must be silent for changes to be passed on; an event costs about twice this."""

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
"""Between a watcher that failed and the next, longer each time that it hears nothing."""

Source = Callable[[Path, threading.Event], Iterator[object]]
"""Yields something for each group of changes below a folder, until the event is set."""


def native_events(root: Path, stop: threading.Event) -> Iterator[object]:
    """The system's own events, as watchfiles passes them on."""
    prefix = f"{root}/"

    def matters(change: watchfiles.Change, path: str) -> bool:
        # Our own moves take files away from the inbox and put them where nobody looks.
        first = path.removeprefix(prefix).partition("/")[0]
        return change is not watchfiles.Change.deleted and not is_outcome(first)

    return watchfiles.watch(
        root,
        watch_filter=matters,
        debounce=GROUPING_MS,
        step=STEP_MS,
        stop_event=stop,
        rust_timeout=0,  # the stop event is looked at in each step all the same
        raise_interrupt=False,
        ignore_permission_denied=True,
    )


@contextlib.contextmanager
def watched(
    root: Path, look: threading.Event, remark: Remark, *, source: Source = native_events
) -> Iterator[None]:
    """During the block `look` is set soon after something changes below ROOT."""
    stop = threading.Event()
    thread = threading.Thread(
        target=_listen, args=(root, look, remark, source, stop), name="watcher", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _listen(
    root: Path, look: threading.Event, remark: Remark, source: Source, stop: threading.Event
) -> None:
    pause_s = FIRST_PAUSE_S
    while not stop.is_set():
        try:
            for _ in source(root, stop):
                pause_s = FIRST_PAUSE_S
                look.set()
        except Exception as error:
            logger.info("The watcher failed and is made again", exc_info=True)
            remark(
                "watcher",
                f"The system's watcher failed ({type(error).__name__}) and is made again; "
                "meanwhile new files are found by scans",
            )
        look.set()
        stop.wait(pause_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
