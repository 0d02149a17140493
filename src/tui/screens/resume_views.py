"""Reading a page of the list of resumes, or a resume as text, JSON, source or history."""

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec.json

from resumes.analyzer import load_stored, stored_warnings, whole_json
from resumes.analyzer.readable import Line, Role, header_lines, section_lines
from resumes.analyzer.schema import LAYOUTS
from resumes.rendering.page import DEFAULT_LAYOUT
from resumes.search.query import Query, hits, parse_query
from resumes.search.texts import EMAIL, LABEL, NAME, PLACE, TITLE, section_group
from resumes.settings import Settings
from resumes.store import accounts, search, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.entry import Entry
from resumes.store.store import Store
from resumes.store.stored_resumes import StoredResume
from resumes.store.versions import count_versions
from resumes.text import counted, escaped_json
from resumes.watched_folder import SourceFile, find_source, opened
from tui.text import highlighted, joined, minute, safe, safe_lines
from tui.widgets.text_pane import Paragraph
from tui.widgets.window import PageRead, flipped

PAGE_SIZE = 100


def parse_search(text: str) -> Query | None:
    """Parse the filter of a list of resumes; return None if there is nothing to search for yet.

    The last word is treated as the beginning of a word, unless a space follows it.
    """
    query = parse_query(text, is_typing=True)
    return query if query.terms else None


_FIELD_GROUPS: Final = {
    "name": NAME,
    "email": EMAIL,
    "title": TITLE,
    "location": PLACE,
    "label": LABEL,
}


def find_hits(text: str, source: str, *, query: Query) -> Sequence[tuple[int, int]]:
    """Return the ranges of characters at which a text of a resume matches the query.

    `source` is the name of a field of the resume or its header, or a section type. It is empty for
    text that is not searched.
    """
    if not source:
        return ()
    return hits(text, query, _FIELD_GROUPS.get(source) or section_group(source))


def read_page(
    store: Store, *, name: str | None, text: str, cursor: str, is_newest_first: bool = False
) -> PageRead[Entry]:
    """Return a page of the account's resumes after the cursor; a filter limits it to matches.

    `name` is the account's name; None means the first account with resumes. The cursor is an ID,
    flipped if the newest resumes come first. `about` holds the account's name, or None if there are
    no accounts; how many of the newest resumes cannot be searched yet; and the result of
    `count_versions`. Raises NotFound.
    """
    if name is not None:
        account = accounts.get_account(store, name)
    elif known := accounts.list_accounts(store):
        account = next((account for account in known if account.resume_count), known[0])
    else:
        return PageRead([], about=(None, 0, {}))
    cursor = flipped(cursor) if is_newest_first else cursor
    wanted: dict[str, Any] = {
        "cursor": cursor,
        "limit": PAGE_SIZE,
        "is_newest_first": is_newest_first,
    }
    if parse_search(text) is None:
        page, unindexed = stored_resumes.list_page(store, account.id, **wanted), 0
    else:
        page, unindexed = search.find_page(store, account.id, text, is_typing=True, **wanted)
    following = flipped(page.cursor) if page.cursor and is_newest_first else page.cursor
    counts = count_versions(store, account.id, [entry.id for entry in page.entries])
    return PageRead(page.entries, following, about=(account.name, unindexed, counts))


KEY: Final = re.compile(r'"(?:[^"\\]|\\.)*"(?=: )')


def json_paragraphs(document: bytes) -> list[Paragraph]:
    """Return a paragraph for each line of the JSON document, indented."""
    text = msgspec.json.format(document, indent=2).decode()
    paragraphs = []
    # Line ends inside strings are escaped, so no string is split.
    for line in text.split("\n"):
        inner = line.lstrip(" ")
        content = safe(escaped_json(inner))
        if key := KEY.match(content.plain):
            content = content.stylize("$text-primary", 0, key.end())
        paragraphs.append(Paragraph(content, mark=" " * (len(line) - len(inner))))
    return paragraphs


INDENT = "  "


def iter_history(
    store: Store, account: AccountInfo, stored: StoredResume, source: SourceFile | None
) -> Iterator[Paragraph]:
    """Yield a paragraph for each event in order, then the warnings."""
    entry = stored.entry
    if source is None:
        how = f"Created in {account.name}. {NO_FILE}"
    else:
        how, folder = f"Imported into {account.name}", ""
        if source.file is not None:
            yield _event(source.file.claimed_at, f"Picked up {source.file.name}")
            folder = f", folder {source.file.root or 'unknown'}"
        yield Paragraph(safe(f"file ID {source.claim_id}{folder}", "dim"), INDENT)
    yield _event(entry.created_at, how)
    if entry.updated_at != entry.created_at:
        yield _event(entry.updated_at, "Changed")
    versions = stored_resumes.list_versions(store, account.id, entry.id)
    if versions:
        yield Paragraph(safe(""))
        count = counted(len(versions), "version")
        yield Paragraph(safe(f"{count} of this person's resume, newest first:"))
    for version in versions:
        mark = " (this one)" if version.id == entry.id else ""
        yield _event(version.created_at, f"{version.shown_title}{mark}")
        yield Paragraph(safe(version.id, "dim"), INDENT)
    yield Paragraph(safe(""))
    warnings = stored_warnings(stored.document, stored.first_month)
    style = "bold $text-warning" if warnings else ""
    yield Paragraph(safe(counted(len(warnings), "warning") if warnings else "No warnings.", style))
    for warning in warnings:
        yield Paragraph(safe(warning.message), f"{INDENT}! ")


def _event(timestamp: str, text: str) -> Paragraph:
    return Paragraph(joined([safe(f"{minute(timestamp)} UTC  ", "dim"), safe(text)]))


MAX_BYTES: Final = 64 * 1024
NO_FILE: Final = "No source file is known: it came through the API or `resumes import`, or its file was replaced."


def source_paragraphs(source: SourceFile | None) -> list[Paragraph]:
    """Return what happened to the source file, and its text if it is still on this machine."""
    if source is None:
        return [Paragraph(safe(f"{NO_FILE} See the JSON view."))]
    head = Paragraph(safe(source.sentence, "bold"))
    if source.path is None:
        return [head]
    flags, start = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, b""
    with contextlib.suppress(OSError), opened(source.path, flags) as descriptor:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            # Unlike os.read, a file object reads until it has this many bytes or the file ends.
            with os.fdopen(descriptor, "rb", closefd=False) as opened_file:
                start = opened_file.read(MAX_BYTES + 1)
    text = start[:MAX_BYTES].decode(errors="backslashreplace")
    lines = [Paragraph(line) for line in map(safe, safe_lines(text))]
    is_cut = len(start) > MAX_BYTES
    end = [Paragraph(safe(f"… first {MAX_BYTES:,} bytes only", "dim"))] if is_cut else []
    return [head, Paragraph(safe("")), *lines, *end]


STYLES: Final = {
    Role.NAME: "bold $text-primary",
    Role.TITLE: "italic",
    Role.HEADING: "bold $text-accent",
    Role.LEAD: "bold",
    Role.TEXT: "",
    Role.DETAIL: "dim",
    Role.QUOTE: "italic",
}


def resume_paragraphs(
    stored: StoredResume, query: Query | None = None, versions: Sequence[Entry] = ()
) -> list[Paragraph]:
    """Return the displayed fields of the resume, with matches of the query highlighted, and the
    numbers of warnings and of `versions`, which are the person's resumes, newest first."""
    entry, document = stored.entry, load_stored(stored.document)
    layout = (document.get("style") or {}).get("layout") or DEFAULT_LAYOUT
    about = [
        safe(f"{entry.id} · created {minute(entry.created_at)} UTC", "dim"),
        *([safe(f"label {entry.label}", "dim")] if entry.label else ()),
        safe(f"{entry.filename} · layout {LAYOUTS.get(layout, layout)}", "dim"),
    ]
    if versions:
        newer = sum(version.id > entry.id for version in versions)
        place = f"version {len(versions) - newer} of {len(versions)}"
        about.append(safe(f"{place} of this person's resume (see History)", "dim"))
    if warnings := stored_warnings(stored.document, stored.first_month):
        count = counted(len(warnings), "warning")
        about.append(safe(f"! {count} (see History)", "$text-warning"))
    return [
        *_iter_paragraphs(header_lines(document), query),
        *map(Paragraph, about),
        *_iter_paragraphs(section_lines(document, stored.first_month), query),
    ]


MAX_MARKED_CHARS: Final = 200_000
"""How many characters of a resume are searched for matches; megabytes would take too long."""


def _iter_paragraphs(lines: Iterable[Line], query: Query | None) -> Iterator[Paragraph]:
    room = MAX_MARKED_CHARS
    for line in lines:
        parts = [safe(phrase.text, STYLES[phrase.role]) for phrase in line.phrases]
        if query is not None and room > 0:
            parts = [
                highlighted(part, find_hits(part.plain, phrase.source, query=query))
                for part, phrase in zip(parts, line.phrases, strict=True)
            ]
            room -= sum(map(len, parts))
        yield Paragraph(joined(parts, by=" · "), line.mark)


class View(StrEnum):
    """A view of a resume. The value is the label of its tab."""

    TEXT = "Text"
    JSON = "JSON"
    SOURCE = "Source"
    HISTORY = "History"


class ResumeRef(NamedTuple):
    """The account and the ID of a resume."""

    account: str
    resume_id: str

    def read(self, store: Store) -> tuple[AccountInfo, StoredResume]:
        """Return the account and the resume as they are stored. Raises NotFound."""
        owner = accounts.get_account(store, self.account)
        return owner, stored_resumes.get_resume(store, owner.id, self.resume_id)

    def find_source(self, store: Store, inbox: Path) -> SourceFile | None:
        """Return the file that the resume was imported from, if it is known. Raises NotFound."""
        owner = accounts.get_account(store, self.account)
        return find_source(store, owner.id, self.resume_id, inbox)


@dataclass(frozen=True, slots=True)
class Shown:
    """A resume laid out in one of the views."""

    entry: Entry
    view: View
    paragraphs: Sequence[Paragraph]


def show(
    store: Store, ref: ResumeRef, *, view: View, settings: Settings, query: Query | None = None
) -> Shown:
    """Return the stored resume laid out in the view. Raises NotFound.

    The text view highlights matches of `query`, with which the resume was found.
    """
    owner, stored = ref.read(store)
    match view:
        case View.TEXT:
            versions = stored_resumes.list_versions(store, owner.id, ref.resume_id)
            paragraphs = resume_paragraphs(stored, query, versions)
        case View.JSON:
            paragraphs = json_paragraphs(whole_json(stored.document))
        case View.SOURCE:
            paragraphs = source_paragraphs(ref.find_source(store, settings.inbox))
        case View.HISTORY:
            source = ref.find_source(store, settings.inbox)
            paragraphs = list(iter_history(store, owner, stored, source))
    return Shown(stored.entry, view, paragraphs)
