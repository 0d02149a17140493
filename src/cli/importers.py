"""The importers that are running: whether all goes well, and how to start one."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cli.findings import Finding
from cli.session import Session
from resumes.text import counted, escaped

if TYPE_CHECKING:
    from resumes.store import Store
    from resumes.store.importers import SeenImporter

SUBJECT = "importer"


def start_line(session: Session, root: str | None) -> str:
    """The command that starts an importer on the folder; on the home's inbox where none is known."""
    inbox = escaped(str(Path(session.settings().inbox).resolve()))
    words = ("up",) if root in (None, inbox) else ("watch", root)
    return session.command_line(*words)


def iter_importer_findings(session: Session, store: "Store") -> Iterator[Finding]:
    """How each importer fares, and whether files wait that none will take up."""
    from resumes.store import importers

    seen = importers.list_importers(store)
    watched = {one.importer.root for one in seen if one.is_live}
    for one in seen:
        if one.is_live:
            yield _live(one)
        else:
            yield _silent(session, one, is_replaced=one.importer.root in watched)
    waiting = list(_iter_waiting(session, store, is_any_live=bool(watched)))
    yield from waiting
    if not seen and not waiting:
        yield Finding(SUBJECT, f"none is running; `{start_line(session, None)}` starts one")


def _live(seen: "SeenImporter") -> Finding:
    from resumes.store.importers import State

    importer = seen.importer
    said = ". ".join(finding.sentence.rstrip(".") for finding in importer.findings)
    text = f"watches {importer.root} (process {importer.pid} on {importer.host})"
    if importer.waiting:
        text += f", {counted(importer.waiting, 'file')} waiting"
    if importer.state is State.DEGRADED:
        return Finding(SUBJECT, text, said or "It is not well; its log says more")
    return Finding(SUBJECT, f"{text}. {said}" if said else text)


def _silent(session: Session, seen: "SeenImporter", *, is_replaced: bool) -> Finding:
    importer = seen.importer
    text = (
        f"process {importer.pid} on {importer.host}, which watched {importer.root}, "
        f"has said nothing for {span(seen.age_s)}"
    )
    if is_replaced:
        return Finding(SUBJECT, f"{text}; another one watches it")
    return Finding(SUBJECT, text, f"If it has ended: {start_line(session, importer.root)}")


def _iter_waiting(session: Session, store: "Store", *, is_any_live: bool) -> Iterator[Finding]:
    from resumes.store import ledger, requests
    from resumes.store.ledger import FileOutcome

    for root in requests.list_unwatched_roots(store):
        where = "" if root is None else f" of {root}"
        yield Finding(
            SUBJECT,
            f"files{where} were asked for again, and no importer takes them up",
            f"Start one: {start_line(session, root)}",
        )
    held = [] if is_any_live else ledger.list_files(store, outcome=FileOutcome.HELD, limit=1)
    for file in held:
        yield Finding(
            SUBJECT,
            "files are held, and no importer is running to let them in",
            f"Start one: {start_line(session, file.root)}",
        )


def span(seconds: float) -> str:
    """`40 seconds`, `5 minutes`, `3 hours`: the largest unit of which there are two."""
    for unit, unit_s in (("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * unit_s:
            return counted(int(seconds // unit_s), unit)
    return counted(int(seconds), "second")
