"""`resumes keys`: create, list, revoke and rotate API keys. A new key is shown once."""

import os
import stat
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from cli.errors import Failed
from cli.groups import YES, confirm, group
from cli.output import Column, instant, put, put_json, put_table, say
from cli.session import Session, pass_session
from resumes import durations, output_files
from resumes.errors import Conflict, ResumesError
from resumes.store import Store, api_keys
from resumes.store.accounts import get_account
from resumes.store.api_keys import ACCESS, KeyInfo, NewKey


def show_once_or_revoke(store: Store, new: NewKey, show: Callable[[str], None]) -> None:
    """Show the key and mark it as shown. If it cannot be shown, revoke it and raise Failed. If it
    cannot be marked, raise Failed but keep it valid.

    The key is already stored. `show` is called with its text, and must return only after the text
    has been flushed.
    """
    try:
        show(new.secret)
    except OSError as error:
        api_keys.revoke_unshown_key(store, new)
        raise Failed(
            f"The new key could not be shown ({error.strerror or error}), so it was revoked; "
            "try again"
        ) from error
    except BaseException:
        api_keys.revoke_unshown_key(store, new)
        raise
    try:
        api_keys.mark_shown(store, new.id)
    except ResumesError as error:  # the message would imply that nothing was done
        raise Failed(
            f"The new key {new.id} was shown and works, but could not be recorded as shown. Use it, or "
            f"revoke it with `resumes keys revoke {new.id}`"
        ) from error


COLUMNS = (
    Column("id", lambda key: key.id),
    Column("account", lambda key: key.account, is_flexible=True),
    Column("name", lambda key: key.name or "-", is_flexible=True),
    Column("key", lambda key: key.masked),
    Column("access", lambda key: ACCESS[key.is_read_only]),
    Column("state", lambda key: api_keys.describe_state(key, instant)),
    Column("last used (UTC)", lambda key: instant(key.last_used_at)),
)
SAVE_IT = "Save the key now: it cannot be shown again."


@group()
def keys() -> None:
    """Create and revoke API keys."""


@keys.command()
@click.argument("account")
@click.option("--name", metavar="TEXT", default="", help="Name that describes the key's purpose.")
@click.option(
    "--expires",
    type=durations.parse_expiry,
    metavar="30d|12h|2027-01-31",
    help="Time until the key expires, or the date when it expires (at 00:00 UTC). [default: never]",
)
@click.option("--read-only", is_flag=True, help="Allow only GET and HEAD requests with the key.")
@pass_session
def create(
    session: Session, account: str, name: str, expires: timedelta | datetime | None, read_only: bool
) -> None:
    """Create an API key for ACCOUNT and print the key.

    The key cannot be shown again.
    """
    with session.store() as store:
        lifetime = None if expires is None else durations.until(expires, now_us=store.clock())
        new = api_keys.create_key(
            store, account, name=name, lifetime=lifetime, is_read_only=read_only
        )
        show_once_or_revoke(store, new, lambda secret: _show(session, new, secret))
        info = api_keys.get_key(store, new.id)
        owner = get_account(store, account)
    expiry = f" (expires {instant(info.expires_at)} UTC)" if info.expires_at else ""
    kind = "read-only key" if read_only else "key"
    say(f'Created {kind} {new.id} for account "{account}"{expiry}.')
    say(SAVE_IT)
    if not owner.api_listing:
        line = session.command_line("accounts", "set-plan", account, "PLAN")
        can = "" if read_only else "can create and delete resumes, but "
        say(
            f'Plan "{owner.plan}" has no API listing: requests {can}get 403 for lists, resumes and PDFs. '
            f"To change the plan: {line}"
        )


@keys.command("list")
@click.argument("account", required=False)
@pass_session
def list_(session: Session, account: str | None) -> None:
    """List all keys, or only the keys of ACCOUNT."""
    with session.store() as store:
        known = api_keys.list_keys(store, account=account)
        if account is not None and not known:
            get_account(store, account)  # reject an account that is being deleted
    if session.as_json:
        put_json({"keys": [as_json(key) for key in known]})
    elif known:
        put_table(COLUMNS, known)
    else:
        line = session.command_line("keys", "create", account or "ACCOUNT")
        say(f"No keys yet. Create one: {line}")


@keys.command()
@click.argument("key_id", metavar="KEYID|-")
@YES
@pass_session
def revoke(session: Session, key_id: str, yes: bool) -> None:
    """Revoke the key KEYID.

    All servers stop accepting the key immediately. If you pass - instead of an ID, the command reads
    the key itself from standard input. Use this for a leaked key if you do not know its ID.
    """
    with session.store() as store:
        if key_id == "-":
            key_id = api_keys.find_key_id(store, _read_secret())
        key = api_keys.get_key(store, key_id)
        if not yes:
            confirm(f'Permanently revoke key {key.id} of account "{key.account}"?')
        api_keys.revoke_key(store, key_id)
        key = api_keys.get_key(store, key_id)
    session.answer(as_json(key), f'Revoked key {key.id} of account "{key.account}".')


@keys.command()
@click.argument("key_id", metavar="KEYID")
@click.option(
    "--grace",
    type=durations.parse_duration,
    default="24h",
    show_default=True,
    metavar="SPAN",
    help="Time for which the old key continues to work, from 0 to 7d.",
)
@pass_session
def rotate(session: Session, key_id: str, grace: timedelta) -> None:
    """Replace the key KEYID and print the new key.

    The new key cannot be shown again.
    """
    with session.store() as store:
        new = api_keys.rotate_key(store, key_id, grace=grace)
        show_once_or_revoke(store, new, lambda secret: _show(session, new, secret))
        old = api_keys.get_key(store, key_id)
    still = (
        f"works until {instant(old.expires_at)} UTC"
        if old.state is api_keys.KeyState.ACTIVE
        else "no longer works"
    )
    say(f'Created key {new.id} for account "{old.account}"; {key_id} {still}.')
    say(SAVE_IT)


def _read_secret() -> str:
    """Read the key from the first line of standard input; on a terminal, ask without echo."""
    if sys.stdin.isatty():
        return str(click.prompt("Key", hide_input=True, err=True)).strip()
    return sys.stdin.readline(MAX_KEY_BYTES).strip()


def _show(session: Session, new: NewKey, secret: str) -> None:
    if session.as_json:
        put_json({"id": new.id, "key": secret})
    else:
        put(secret)
    sys.stdout.flush()


def as_json(key: KeyInfo) -> dict[str, Any]:
    """Return the masked key as `--json` prints it. `shownAt` is null if it was never shown."""
    return {
        "id": key.id,
        "account": key.account,
        "name": key.name,
        "masked": key.masked,
        "readOnly": key.is_read_only,
        "state": key.state,
        "createdAt": key.created_at,
        "shownAt": key.shown_at,
        "lastUsedAt": key.last_used_at,
        "expiresAt": key.expires_at,
        "revokedAt": key.revoked_at,
        "replacedBy": key.replaced_by,
    }


NAME = "first key"
MAX_KEY_BYTES = 1_024
"""The maximum size of a key file, even if an editor added white space."""


def make_first_key(store: Store, account: str) -> NewKey | None:
    """Create the account's first key, and revoke a first key that was never shown.

    Return None if the account has or had any other key.
    """
    unseen = []
    for key in api_keys.list_keys(store, account=account):
        if key.name == NAME and key.shown_at is None:
            unseen.append(key)
        else:
            return None
    for key in unseen:
        api_keys.revoke_key(store, key.id)
    return api_keys.create_key(store, account, name=NAME)


def check_key_file(path: Path) -> None:
    """Raise Conflict if the path exists and is neither an earlier key nor an empty file."""
    if os.path.lexists(path) and read_key(path) is None:
        raise Conflict(
            f"{path} exists and is neither an earlier key nor an empty file. Move it elsewhere, then "
            "try again"
        )


def write_key(path: Path, secret: str) -> None:
    """Write the key to a file that only its owner can read, replacing an earlier key.

    Raises OSError, and Conflict if there is anything else at the path.
    """
    try:
        check_key_file(path)
    except Conflict as error:
        why = f"The new key could not be written, so it was revoked: {error.message}"
        raise Conflict(why) from None
    with output_files.drafted(path, output_files.replace) as file:
        file.write(f"{secret}\n".encode("ascii"))


def read_key(path: Path) -> str | None:
    """Return the stripped text of a regular file, or None if it cannot be a key file."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        with path.open("rb") as file:
            content = file.read(MAX_KEY_BYTES).decode("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return content if content == "" or api_keys.FORM.fullmatch(content) else None
