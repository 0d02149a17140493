"""The importers that are running: whether all goes well, and how to start one."""

import socket
from collections.abc import Iterator

from resumes.health.ages import span
from resumes.health.findings import Finding, notice
from resumes.health.installation import Installation
from resumes.store import importers, ledger, requests
from resumes.store.engine import Store
from resumes.store.importers import SeenImporter, State
from resumes.store.ledger import FileOutcome
from resumes.text import counted

REMEMBERED_H = importers.REMEMBERED.total_seconds() / 3_600
HELD_FILES = 100
"""Of the files that are held, so many are asked for their folders, the newest."""


def iter_importer_findings(
    installation: Installation, store: Store, *, host: str | None = None
) -> Iterator[Finding]:
    """How each importer fares, and whether files wait that none will take up.

    `host` is the name of this machine, asked of the system unless it is given.
    """
    seen = importers.list_importers(store)
    watched = {one.importer.root for one in seen if one.is_live}
    for one in seen:
        if one.is_live:
            yield _live(one)
        elif one.importer.root in watched:
            yield Finding("importer", f"{_silence(one)}; another one watches it", about=_about(one))
        elif _is_of_here(installation, store, one, host or socket.gethostname()):
            command = installation.start_line()
            remedy = f"If it has ended: {command}"
            yield Finding("importer", _silence(one), remedy, command, about=_about(one))
        else:
            yield _silent_elsewhere(one)
    waiting = list(_iter_waiting(installation, store, is_any_live=bool(watched)))
    yield from waiting
    if not seen and not waiting:
        yield Finding("importer", f"none is running; `{installation.start_line()}` starts one")


def _live(seen: SeenImporter) -> Finding:
    importer = seen.importer
    said = ". ".join(finding.sentence.rstrip(".") for finding in importer.findings)
    text = f"watches {importer.root} (process {importer.pid} on {importer.host})"
    if importer.waiting:
        text += f", {counted(importer.waiting, 'file')} waiting"
    if importer.state is State.DEGRADED:
        remedy = said or "It is not well; its log says more"
        return Finding("importer", text, remedy, about=importer.id)
    return Finding("importer", f"{text}. {said}" if said else text, about=importer.id)


def _about(seen: SeenImporter) -> str:
    return seen.importer.id


def _silence(seen: SeenImporter) -> str:
    importer = seen.importer
    return (
        f"process {importer.pid} on {importer.host}, which watched {importer.root}, "
        f"has said nothing for {span(seen.age_s)}"
    )


def _is_of_here(installation: Installation, store: Store, seen: SeenImporter, host: str) -> bool:
    """Whether `up` here would watch what the importer watched. The store in a file is of one
    machine, though its name may have changed, as a container's does."""
    is_this_machine = store.path is not None or seen.importer.host == host
    return is_this_machine and installation.watches(seen.importer.root)


def _silent_elsewhere(seen: SeenImporter) -> Finding:
    return notice(
        "importer",
        _silence(seen),
        "If it should run, start it again where it ran. If it is gone for good there is nothing to "
        f"do: it is forgotten after {REMEMBERED_H:.0f} hours without a word",
        about=_about(seen),
    )


def _iter_waiting(
    installation: Installation, store: Store, *, is_any_live: bool
) -> Iterator[Finding]:
    for root in requests.list_unwatched_roots(store):
        where = "" if root is None else f" of {root}"
        text = f"files{where} were asked for again, and no importer takes them up"
        yield _missing(installation, root, text)
    held = [] if is_any_live else _list_held_roots(store)
    for root in sorted(held, key=lambda root: (not installation.watches(root), root or ""))[:1]:
        text = "files are held, and no importer is running to let them in"
        yield _missing(installation, root, text)


def _list_held_roots(store: Store) -> set[str | None]:
    files = ledger.list_files(store, outcome=FileOutcome.HELD, limit=HELD_FILES)
    return {file.root for file in files}


def _missing(installation: Installation, root: str | None, text: str) -> Finding:
    if installation.watches(root):
        command = installation.start_line()
        return Finding("importer", text, f"Start one: {command}", command, about=text)
    how = installation.how_to_watch(root)
    return notice("importer", text, f"{how[0].upper()}{how[1:]}", about=text)
