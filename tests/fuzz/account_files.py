"""Any bytes, as the file of an account that somebody else has written, imported into a real store.

The last line, with the counts and the digest of all before it, is added here: otherwise nothing but
what was written by us would ever be looked at.
"""

import atexit
import hashlib
import io
import shutil
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final

import orjson

from resumes.analyzer import shown_view, stored_warnings, to_jsonresume
from resumes.errors import Conflict, InvalidArgument, InvalidJson, NotFound, ResumesError
from resumes.store import Store, accounts, import_history, integrity, open_store, stored_resumes
from resumes.store.account_archive.archive import import_account, iter_lines
from resumes.store.account_archive.file_format import DOCUMENT, ArchiveReader, ArchiveRow, RowKind
from resumes.store.accounts import AccountInfo
from resumes.text import is_harmless
from tests.fuzz.declared import bounded

NAME: Final = "fuzzed"


def check_account_file(lines: bytes) -> None:
    """It is refused and nothing is stored, or the account is sound, can be looked at, and is
    exported as it came."""
    store = _store()
    whole = with_end(lines)
    account = _import(store, whole)
    if isinstance(account, ResumesError):
        assert is_harmless(account.message)
        assert accounts.list_accounts(store, closed_too=True) == []
        return
    try:
        _check_sound(store)
        _look_at_all(store, account)
        again = b"".join(iter_lines(store, account, with_keys=True))
        assert _rows(again) == _rows(whole)
    finally:
        accounts.delete_account(store, NAME, with_resumes=True)


def _import(store: Store, export: bytes) -> AccountInfo | ResumesError:
    try:
        with bounded(len(export)):
            return import_account(store, io.BytesIO(export), name=NAME)[0]
    except (InvalidJson, InvalidArgument, NotFound, Conflict) as error:
        return error


def with_end(lines: bytes) -> bytes:
    """The lines, and a last one that says what these are."""
    if not lines.endswith(b"\n"):
        lines += b"\n"
    found = Counter(_kind(line) for line in lines.split(b"\n"))
    counts = {kind.value: found[kind] for kind in RowKind}
    end = {"kind": "end", "counts": counts, "sha256": hashlib.sha256(lines).hexdigest()}
    return lines + orjson.dumps(end, option=orjson.OPT_APPEND_NEWLINE)


def _kind(line: bytes) -> RowKind | None:
    head, found, _ = line.partition(DOCUMENT)
    try:
        return RowKind(orjson.loads(head + b"}" if found else head)["kind"])
    except (ValueError, TypeError, KeyError):
        return None


def _rows(export: bytes) -> list[ArchiveRow]:
    return list(ArchiveReader(io.BytesIO(export)))


def _check_sound(store: Store) -> None:
    flaws = [*integrity.iter_damage(store)]
    for account in integrity.iter_accounts(store):
        flaws += account.flaws
    assert flaws == []


def _look_at_all(store: Store, account: AccountInfo) -> None:
    """Everything that is shown of an account can be."""
    for entry in stored_resumes.list_page(
        store, account.id, limit=stored_resumes.MAX_LIMIT
    ).entries:
        document = stored_resumes.get_resume(store, account.id, entry.id).document
        to_jsonresume(shown_view(document))
        stored_warnings(document)
    for file in import_history.list_files(store, account_id=account.id):
        assert import_history.get_file(store, file.claim_id) == file
        import_history.find_source(store, file)


@cache
def _store() -> Store:
    folder = Path(tempfile.mkdtemp(prefix="resumes-fuzz-"))
    store = open_store(f"sqlite:///{folder / 'resumes.db'}")
    # The last registered is the first to be called.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(store.close)
    return store
