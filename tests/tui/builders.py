"""Accounts and resumes with defaults, and what an attacker would write."""

import json
from collections.abc import Mapping
from typing import Any

from resumes.analyzer import parse
from resumes.store import accounts, creating
from resumes.store.accounts import AccountInfo
from resumes.store.creating import Created, NewResume
from resumes.store.engine import Store
from resumes.store.listing import Entry

HOSTILE = "a[/b]c [@click=app.quit]x[/] \x1b]52;c;AAAA\x07\x9b2J\x1b[?1049l\u202ened\u2066\ufeff"
"""Breaks markup, quits at a click, writes the clipboard, clears the screen, turns text round."""


def an_account(store: Store, name: str = "ana", *, plan: str = "business") -> AccountInfo:
    return accounts.create_account(store, name, plan=plan)


def a_document(*, name: str = "Ada Lovelace", **members: Any) -> dict[str, Any]:
    return {"header": {"name": name}, "sections": {}, **members}


def a_section(section_type: str, *items: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """The `sections` of a document, with one in it."""
    return {section_type: {"column": 0, **fields, "items": list(items)}}


def an_entry(**fields: str | None) -> Entry:
    known: dict[str, Any] = {
        "id": "0" * 24,
        "title": None,
        "name": "Ada Lovelace",
        "filename": "AdaLovelaceResume.pdf",
        "created_at": "2026-01-31T09:00:00.000Z",
        "updated_at": "2026-01-31T09:00:00.000Z",
    }
    return Entry(**(known | fields))


def stored(store: Store, *documents: Mapping[str, Any], account: str = "ana") -> list[str]:
    """The documents are resumes of the account; their ids."""
    new = [NewResume(parse(json.dumps(document).encode())) for document in documents]
    outcomes = creating.create(store, accounts.get_account(store, account).id, new)
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
