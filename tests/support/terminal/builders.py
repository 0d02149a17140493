"""Accounts, resumes and imported files with defaults, importers, and what an attacker would write."""

import asyncio
import functools
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from importer.loop import Importer
from importer.notices import Notices
from importer.options import Options
from resumes.analyzer import parse
from resumes.store import accounts, creation, import_history, import_ledger
from resumes.store.accounts import AccountInfo
from resumes.store.creation import Created, NewResume
from resumes.store.import_history import FileRow
from resumes.store.import_ledger import ClaimedFile, FileOutcome, Items, Verdict
from resumes.store.store import Store
from resumes.store.transfer.account_import import import_account
from tests.support.inbox.builders import drop, filed
from tests.support.store import builders as store_builders
from tests.support.store.builders import index_all

HOSTILE = "a[/b]c [@click=app.quit]x[/] \x1b]52;c;AAAA\x07\x9b2J\x1b[?1049l\u202ened\u2066\ufeff"
"""Breaks markup, quits at a click, writes the clipboard, clears the screen, turns text round."""


def an_account(store: Store, name: str = "ana", *, plan: str = "business") -> AccountInfo:
    return accounts.create_account(store, name, plan=plan)


def a_copy(store: Store, name: str, *, of: str = "ana") -> AccountInfo:
    """An account that was imported from the other's file, and has its IDs."""
    with tempfile.TemporaryDirectory() as folder:
        file = store_builders.exported(store, Path(folder) / "account.db", of)
        return import_account(store, file, name=name)[0]


def a_document(*, name: str = "Ada Lovelace", **members: Any) -> dict[str, Any]:
    return {"header": {"name": name}, "sections": {}, **members}


def a_section(section_type: str, *items: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """The `sections` of a document, with one in it."""
    return {section_type: {"column": 0, **fields, "items": list(items)}}


def stored(
    store: Store, *documents: Mapping[str, Any], account: str = "ana", is_indexed: bool = True
) -> list[str]:
    """The documents are resumes of the account, and can be found; their ids."""
    new = [NewResume(parse(json.dumps(document).encode())) for document in documents]
    outcomes = creation.create(store, accounts.get_account(store, account).id, new)
    if is_indexed:
        index_all(store)
    return [outcome.id for outcome in outcomes if isinstance(outcome, Created)]


def stored_many(store: Store, count: int, *, account: str = "ana") -> list[str]:
    """That many resumes titled `Number 0` and so on; their ids."""
    return stored(
        store, *(a_document(title=f"Number {number}") for number in range(count)), account=account
    )


def a_hostile_document() -> dict[str, Any]:
    """A resume in which every text is hostile."""
    return {
        "title": HOSTILE,
        "header": dict.fromkeys(
            ("name", "title", "email", "phone", "location", "website"), HOSTILE
        ),
        "sections": {
            **a_section(
                "experiences",
                {
                    "workplace": HOSTILE,
                    "position": HOSTILE,
                    "link": HOSTILE,
                    "description": f"{HOSTILE}\n{HOSTILE}",
                    "bullets": [HOSTILE, HOSTILE],
                },
                name=HOSTILE,
            ),
            **a_section("skills", {"title": HOSTILE, "tags": [HOSTILE, HOSTILE]}),
            **a_section("quotes", {"quote": HOSTILE, "author": HOSTILE}),
            **a_section("mytime", {"data": [{"title": HOSTILE, "value": 1}]}),
        },
    }


# Imported files.


ROOT = "/srv/inbox"


def an_id(digit: str) -> str:
    """The id of a file."""
    return digit * 24


def a_file(
    store: Store,
    claim_id: str = "1" * 24,
    outcome: FileOutcome = FileOutcome.FAILED,
    *,
    account: str = "ana",
    name: str | None = None,
    reason: str | None = "invalid_json",
    message: str | None = "Invalid JSON at byte 1: cut short",
    path: str | None = None,
    byte_offset: int | None = None,
    source: bytes = b"{",
    items: Items | None = None,
    root: str | None = ROOT,
) -> FileRow:
    """A file that came to this outcome is in the ledger; a done one has no reason."""
    claim = ClaimedFile(
        claim_id,
        name or f"{account}/cv-{claim_id[0]}.json",
        len(source),
        "2027-01-15T08:00:00.000Z",
        source,
        root=root,
        items=None if items is None else json.dumps(items.as_json()),
    )
    verdict = Verdict(outcome, reason, message, path, byte_offset)
    if outcome is FileOutcome.DONE:
        verdict = Verdict(outcome)
    owner = accounts.get_account(store, account)
    import_ledger.record(store, owner.id, claim, verdict)
    return import_history.get_file(store, claim_id)


an_importer = functools.partial(store_builders.an_importer, root=ROOT, waiting=0)
"""An importer on the folder, which says so now."""


class AnImporter:
    """An importer on a folder. Nothing happens but by `round`."""

    def __init__(self, store: Store, root: Path) -> None:
        self._root = root
        self._importer = Importer(
            store,
            root,
            Options(settle_s=0.0),
            on_file=lambda _: None,
            notices=Notices(lambda _: None),
        )

    async def round(self) -> None:
        """Whatever lies there, or was asked for, came to its end."""
        for _ in range(3):
            await asyncio.to_thread(self._importer.round)

    def drop(self, name: str, content: bytes) -> None:
        """The file lies in the inbox."""
        drop(self._root, name, content)

    @property
    def failed(self) -> Path:
        """The one file that failed, where it lies."""
        (path,) = filed(self._root, "_failed")
        return path

    def close(self) -> None:
        """The importer is gone."""
        self._importer.close()
