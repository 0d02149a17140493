"""`resumes db backup` and `resumes db restore`."""

import contextlib
from pathlib import Path

import click

from cli.commands import command
from cli.output import put, put_json, say
from cli.session import Session, make_home, pass_session
from cli.signals import sigterm_as_interrupt
from cli.steps import told_steps
from cli.text import safe_text
from resumes.text import counted


@command()
@click.argument("destination", metavar="DEST", type=click.Path(path_type=Path))
@click.option(
    "--keep",
    type=click.IntRange(1),
    metavar="N",
    help="Remove all but the N newest backups of the folder, when this one is verified.",
)
@pass_session
def backup(session: Session, destination: Path, keep: int | None) -> None:
    """Back the store up to one file, while it is in use.

    DEST is a file that is not there yet, or a folder, where it is named by the time. The file is a
    store in SQLite, whatever keeps the store that it was made of. Its path goes to standard output.
    """
    from resumes.store.transfer import backups

    with sigterm_as_interrupt(), session.store() as store, told_steps() as steps:
        made = backups.back_up(store, destination, keep=keep, watcher=steps)
    if session.as_json:
        put_json(
            {
                "path": str(made.path),
                "sizeBytes": made.size_bytes,
                "removed": [str(path) for path in made.removed],
            }
        )
        return
    put(safe_text(str(made.path)))
    removed = f", {counted(len(made.removed), 'older backup')} removed" if made.removed else ""
    say(f"Backed up and verified: {made.size_bytes / 1e6:,.1f} MB{removed}.")


@command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@pass_session
def restore(session: Session, file: Path) -> None:
    """Put a backup in the place of the store, which nobody may use.

    A store in a file is kept beside it. In PostgreSQL the database has to be empty. What came after
    the backup is not in it; ids go on above all that were given.
    """
    from resumes import watched_folder
    from resumes.store.transfer import restores

    settings = session.settings()
    if settings.database is None:
        make_home(settings.home)
    with sigterm_as_interrupt(), told_steps() as steps:
        restored = restores.restore(file, settings.database_url, watcher=steps)
    with contextlib.suppress(OSError):  # else the importer refuses the folder, and says what to do
        owner = watched_folder.Owner(restored.store_id, restored.label)
        watched_folder.replace_owner(settings.inbox, restored.kept_id, owner)
    if session.as_json:
        kept = restored.kept
        put_json(
            {
                "database": restored.label,
                "resumes": restored.resumes,
                "kept": None if kept is None else str(kept),
            }
        )
        return
    say(f"Restored {safe_text(restored.label)}: {counted(restored.resumes, 'resume')}.")
    if restored.kept is not None:
        say(f"The store that was there is {safe_text(str(restored.kept))}.")
    if not restored.is_kept_readable:
        say("It could not be read, so ids go on above the clock, not above the ids it gave.")
