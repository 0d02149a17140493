"""The importers that are running: whether all goes well, and how to start one."""

from collections.abc import Iterator

from resumes.health.ages import span
from resumes.health.findings import Finding
from resumes.health.installation import Installation
from resumes.store import importers, ledger, requests
from resumes.store.engine import Store
from resumes.store.importers import SeenImporter, State
from resumes.store.ledger import FileOutcome
from resumes.text import counted

SUBJECT = "importer"


def iter_importer_findings(installation: Installation, store: Store) -> Iterator[Finding]:
    """How each importer fares, and whether files wait that none will take up."""
    seen = importers.list_importers(store)
    watched = {one.importer.root for one in seen if one.is_live}
    for one in seen:
        if one.is_live:
            yield _live(one)
        else:
            yield _silent(installation, one, is_replaced=one.importer.root in watched)
    waiting = list(_iter_waiting(installation, store, is_any_live=bool(watched)))
    yield from waiting
    if not seen and not waiting:
        yield Finding(SUBJECT, f"none is running; `{installation.start_line(None)}` starts one")


def _live(seen: SeenImporter) -> Finding:
    importer = seen.importer
    said = ". ".join(finding.sentence.rstrip(".") for finding in importer.findings)
    text = f"watches {importer.root} (process {importer.pid} on {importer.host})"
    if importer.waiting:
        text += f", {counted(importer.waiting, 'file')} waiting"
    if importer.state is State.DEGRADED:
        remedy = said or "It is not well; its log says more"
        return Finding(SUBJECT, text, remedy, about=importer.id)
    return Finding(SUBJECT, f"{text}. {said}" if said else text, about=importer.id)


def _silent(installation: Installation, seen: SeenImporter, *, is_replaced: bool) -> Finding:
    importer = seen.importer
    text = (
        f"process {importer.pid} on {importer.host}, which watched {importer.root}, "
        f"has said nothing for {span(seen.age_s)}"
    )
    if is_replaced:
        return Finding(SUBJECT, f"{text}; another one watches it", about=importer.id)
    command = installation.start_line(importer.root)
    return Finding(SUBJECT, text, f"If it has ended: {command}", command, about=importer.id)


def _iter_waiting(
    installation: Installation, store: Store, *, is_any_live: bool
) -> Iterator[Finding]:
    for root in requests.list_unwatched_roots(store):
        where = "" if root is None else f" of {root}"
        text = f"files{where} were asked for again, and no importer takes them up"
        yield _start_one(text, installation.start_line(root))
    held = [] if is_any_live else ledger.list_files(store, outcome=FileOutcome.HELD, limit=1)
    for file in held:
        text = "files are held, and no importer is running to let them in"
        yield _start_one(text, installation.start_line(file.root))


def _start_one(text: str, command: str) -> Finding:
    return Finding(SUBJECT, text, f"Start one: {command}", command, about=text)
