"""`resumes db copy` and `resumes db reopen`: a store moves to another engine, or does not."""

import shlex
from typing import TYPE_CHECKING

import click

from cli.commands import command
from cli.output import Column, put_json, put_table, say
from cli.session import Session, pass_session, program
from cli.steps import told_steps
from cli.text import safe_text

if TYPE_CHECKING:
    from resumes.store.transfer.rows import TableDigest

COLUMNS = (Column("TABLE"), Column("ROWS", is_number=True), Column("SHA-256"))


@command()
@click.argument("source_url", metavar="FROM")
@click.argument("target_url", metavar="TO")
@pass_session
def copy(session: Session, source_url: str, target_url: str) -> None:
    """Copy a store to another, and prove that both hold the same.

    FROM and TO are addresses such as sqlite:///PATH and postgresql://USER@HOST/NAME. TO is empty, or
    was left by a copy that was killed, which goes on. FROM takes no writes from the beginning on, and
    none after a copy that ended well; after one that failed it does.
    """
    from resumes.store import open_store
    from resumes.store.transfer import copies

    with open_store(source_url, upgrade=False) as source:
        copies.check_target(source, target_url)
        with open_store(target_url) as target, told_steps() as steps:
            digests = copies.copy(source, target, watcher=steps)
            labels = source.label, target.label
    _tell(session, labels, digests, way_back=reopening(source_url))


def reopening(url: str) -> str:
    """How to have a store at this address take writes again: a command to type, unless the address
    holds a secret, which is not repeated."""
    from resumes.store.addresses import find_without_secrets, parse_address

    if parse_address(url) == parse_address(shown := find_without_secrets(url) or ""):
        return f"`{shlex.join([program(), '--database', shown, 'db', 'reopen'])}`"
    return f"`{program()} db reopen`, with RESUMES_DATABASE set to its address and password"


def _tell(
    session: Session, labels: tuple[str, str], digests: list["TableDigest"], *, way_back: str
) -> None:
    source, target = map(safe_text, labels)
    if session.as_json:
        put_json(
            {
                "from": labels[0],
                "to": labels[1],
                "tables": [
                    {"name": one.name, "rows": one.rows, "sha256": one.sha256} for one in digests
                ],
            }
        )
    else:
        put_table(COLUMNS, [(one.name, f"{one.rows:,}", one.sha256) for one in digests])
    say(f"Both hold the same. Use {target} from now on, as --database or RESUMES_DATABASE.")
    say(
        f"{source} takes no more writes. To take it back, and leave what is written to the other "
        f"one behind: {safe_text(way_back)}"
    )


@command()
@pass_session
def reopen(session: Session) -> None:
    """Let a store that was being moved take writes again.

    What was written since to the store that it was moved to is not in this one.
    """
    from resumes.store import open_store
    from resumes.store.transfer import marks

    with open_store(session.settings().database_url, upgrade=False) as store:
        target = marks.reopen(store)
        label = safe_text(store.label)
    if session.as_json:
        put_json({"database": label, "movedTo": target})
    elif target is None:
        say(f"{label} was not being moved: it takes writes.")
    else:
        say(f"{label} takes writes again. It was being moved to {safe_text(target)}.")
