"""Keys that count, and that nobody can ever have seen."""

from collections.abc import Iterator
from datetime import timedelta

from resumes.clock import later
from resumes.health.findings import MAX_NAMED, Finding, notice
from resumes.health.installation import Installation
from resumes.store import keys
from resumes.store.engine import Store
from resumes.store.keys import KeyState
from resumes.text import counted

READING = timedelta(minutes=10)
"""A new key may be on somebody's screen for so long before it is said to have been shown."""


def iter_key_findings(installation: Installation, store: Store) -> Iterator[Finding]:
    """The keys that were made and never shown; they are of no use to anybody."""
    active = [key for key in keys.list_keys(store) if key.state is KeyState.ACTIVE]
    made_before = later(store.clock(), -READING)
    unseen = [key for key in active if key.shown_at is None and key.created_at < made_before]
    for key in unseen[:MAX_NAMED]:
        command = installation.command_line("keys", "revoke", key.id)
        yield notice(
            "keys",
            f"{key.id} of {key.account} was never shown, so nobody can use it",
            f"Revoke it and make another: {command}",
            command,
            about=key.id,
        )
    if len(unseen) > MAX_NAMED:
        command = installation.command_line("keys", "list")
        more = counted(len(unseen) - MAX_NAMED, "further key")
        yield notice(
            "keys", f"{more} never shown", f"{command} shows all", command, about="further"
        )
    if not unseen:
        yield Finding("keys", f"{counted(len(active), 'key')} in use or ready to be")
