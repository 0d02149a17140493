"""The importer as a whole: what `resumes watch` runs."""

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

from importer.names import escaped
from importer.options import Options
from importer.rounds import Importer
from importer.running import Runner
from importer.telling import FileReport, Remarks, Summary
from resumes.errors import InvalidArgument
from resumes.store import Store

__all__ = ["FileReport", "Options", "Summary", "watch"]


def watch(
    store: Store,
    root: Path,
    options: Options,
    *,
    stop: threading.Event,
    on_file: Callable[[FileReport], None],
    on_notice: Callable[[str], None],
) -> Summary:
    """Files dropped into ROOT become resumes, until `stop` is set, or with `once` until it is drained.

    Raises InvalidArgument when ROOT is no folder that can be written to, and with `once` a
    StoreError when the store stays out of reach. All callbacks come from this thread but those
    of a failed watcher.
    """
    root = check_root(root)
    remarks = Remarks(on_notice)
    importer = Importer(store, root, options, on_file=on_file, remarks=remarks)
    try:
        runner = Runner(importer, remarks, scan_s=options.scan_s)
        if options.once:
            runner.drain(stop)
        else:
            runner.run(root, stop)
        return importer.summary()
    finally:
        importer.close()


def check_root(root: Path) -> Path:
    """The folder's real path. Raises InvalidArgument unless it is a folder that can be written to."""
    shown = escaped(str(root))
    try:
        mode = root.stat().st_mode
    except FileNotFoundError:
        raise InvalidArgument(f"Folder not found: {shown}. Create it, or name another") from None
    except OSError as error:
        raise InvalidArgument(f"Cannot use {shown}: {error.strerror}") from None
    if not stat.S_ISDIR(mode):
        raise InvalidArgument(f"Not a folder: {shown}. Name the folder that the analyzer writes to")
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        raise InvalidArgument(
            f"Cannot write in {shown}: files are moved away from it once imported"
        )
    return root.resolve()
