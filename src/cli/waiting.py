"""`--wait`: what becomes of files that an importer was asked for."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cli.dropped_files import as_json, put_files
from cli.exits import ExitCode
from cli.output import put_json, say
from cli.session import Session
from resumes.text import counted

if TYPE_CHECKING:
    from resumes.store import Store
    from resumes.store.import_ledger import FileRow
    from resumes.store.import_requests import Action

LOOK_EVERY_S = 0.1


def wait_for(
    store: "Store",
    files: "Sequence[FileRow]",
    wait_s: float,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> "list[FileRow]":
    """The files as they are once something became of each, or when the time is over."""
    from resumes.store import import_ledger

    until = clock() + wait_s
    while True:
        now = [
            import_ledger.get_file(store, one.claim_id, account_id=one.account_id) for one in files
        ]
        if all(map(_is_new, files, now)) or clock() >= until:
            return now
        time.sleep(LOOK_EVERY_S)


def _is_new(before: "FileRow", now: "FileRow") -> bool:
    # Of a file of several resumes the ledger says how far it is after each part.
    return before.finished_at != now.finished_at and not now.is_under_way


def tell_outcomes(
    session: Session, action: "Action", before: "Sequence[FileRow]", now: "Sequence[FileRow]"
) -> ExitCode:
    """What became of the files is on standard output; the code is FAILED unless all went well."""
    from resumes.store.import_ledger import FileOutcome

    ended = [new for old, new in zip(before, now, strict=True) if _is_new(old, new)]
    if session.as_json:
        put_json({"action": action, "asked": len(now), "files": list(map(as_json, ended))})
    elif ended:
        put_files(ended)
    late = len(now) - len(ended)
    if late:
        say(f"Nothing became of {counted(late, 'file')} in this time; still asked for.")
    has_failed = any(file.outcome is FileOutcome.FAILED for file in ended)
    return ExitCode.FAILED if late or has_failed else ExitCode.DONE
