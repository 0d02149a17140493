"""Reading resumes in a thread: a page of the list; a resume as text, JSON, source or history."""

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec.json

from resumes.analyzer import load_stored, stored_warnings, whole_json
from resumes.analyzer.readable import Line, Role, header_lines, section_lines
from resumes.analyzer.schema import LAYOUTS
from resumes.errors import NotFound
from resumes.rendering.page import DEFAULT_LAYOUT
from resumes.search.query import Query, hits, parse_query
from resumes.search.texts import EMAIL, LABEL, NAME, PLACE, TITLE, section_group
from resumes.settings import Settings
from resumes.store import accounts, import_history, import_ledger, search, stored_resumes
from resumes.store.accounts import AccountInfo
from resumes.store.entry import Entry
from resumes.store.store import Store
from resumes.store.stored_resumes import Sort, StoredResume
from resumes.store.versions import count_versions
from resumes.text import counted, escaped_json
from resumes.watched_folder import describe_root, find_source, opened
from tui.text import highlighted, joined, minute, safe, safe_lines
from tui.widgets.text_pane import Paragraph
from tui.widgets.window import PageRead, flipped

PAGE_SIZE = 100


def parse_search(text: str) -> Query | None:
    """Return the query in the filter of a list of resumes; None if there is nothing to search for yet.

    Its last word is a beginning, unless a blank follows.
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
    """Return where a text of a resume matches the query, as ranges of characters.

    `source` is the resume's field, the header's, or the type of the section; empty for a text that is
    not searched.
    """
    if not source:
        return ()
    return hits(text, query, _FIELD_GROUPS.get(source) or section_group(source))


def read_page(
    store: Store,
    *,
    account: AccountInfo | str | None,
    text: str,
    cursor: str,
    is_newest_first: bool = False,
) -> PageRead[Entry]:
    """Return the page after the cursor, of the resumes that match the filter or of all.

    `account` may be a name; None means the first one with resumes. The cursor is an ID, flipped if
    the newest come first. `about` is the account, None if there are none; the number of newest resumes
    that are not searched yet; and the result of `count_versions`.
    """
    if isinstance(account, str):
        account = accounts.get_account(store, account)
    elif account is None:
        if not (known := accounts.list_accounts(store)):
            return PageRead([], about=(None, 0, {}))
        account = next((account for account in known if account.resume_count), known[0])
    cursor = flipped(cursor) if is_newest_first else cursor
    unindexed = 0
    if parse_search(text) is not None:
        found = search.find_page(
            store,
            account.id,
            text,
            cursor=cursor,
            limit=PAGE_SIZE,
            is_newest_first=is_newest_first,
            is_typing=True,
        )
        page, unindexed = found
    else:
        sort = Sort.NEWEST if is_newest_first else Sort.OLDEST
        page = stored_resumes.list_sorted(store, account.id, sort, cursor=cursor, limit=PAGE_SIZE)
    following = flipped(page.cursor) if page.cursor and is_newest_first else page.cursor
    counts = count_versions(store, account.id, [entry.id for entry in page.entries])
    return PageRead(page.entries, following, about=(account, unindexed, counts))


KEY: Final = re.compile(r'"(?:[^"\\]|\\.)*"(?=: )')


def json_paragraphs(document: bytes) -> list[Paragraph]:
    """Return a paragraph for each line of the JSON document, indented."""
    text = msgspec.json.format(document, indent=2).decode()
    paragraphs = []
    # Line ends inside strings are escaped, so these are JSON's own.
    for line in text.split("\n"):
        inner = line.lstrip(" ")
        content = safe(escaped_json(inner))
        if key := KEY.match(content.plain):
            content = content.stylize("$text-primary", 0, key.end())
        paragraphs.append(Paragraph(content, mark=" " * (len(line) - len(inner))))
    return paragraphs


INDENT = "  "


def iter_history(store: Store, account: AccountInfo, stored: StoredResume) -> Iterator[Paragraph]:
    """Yield a paragraph for each event in order, then the warnings."""
    entry, file = stored.entry, None
    claim_id = import_ledger.find_claim(store, account.id, entry.id)
    if claim_id is not None:
        with contextlib.suppress(NotFound):  # dismissed
            file = import_history.get_file(store, claim_id, account_id=account.id)
            yield _event(file.claimed_at, f"Picked up {file.name}")
        folder = "" if file is None else f", folder {file.root or 'unknown'}"
        yield Paragraph(safe(f"file ID {claim_id}{folder}", "dim"), INDENT)
        how = f"Imported into {account.name}"
    else:
        how = f"Created in {account.name}. {NO_FILE}"
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


def source_paragraphs(
    store: Store, account: AccountInfo, stored: StoredResume, settings: Settings
) -> list[Paragraph]:
    """Return the name of the source file, and its text if it is still on this machine."""
    source = find_source(store, account.id, stored.entry.id, settings.inbox)
    if source is None:
        return [Paragraph(safe(f"{NO_FILE} See the JSON view."))]
    file, path = source.file, source.path
    if file is None:
        head = [Paragraph(safe(source.sentence, "bold"))]
    else:
        head = [Paragraph(safe(f"Source file: {file.name}, {file.size_bytes:,} bytes", "bold"))]
        if path is None:
            folder = describe_root(file) or "its folder"
            head.append(Paragraph(safe(f"It is no longer in {folder}.")))
    if path is None:
        return head
    flags, start = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, b""
    with contextlib.suppress(OSError), opened(path, flags) as descriptor:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            # Unlike os.read, a file object reads until it has this many bytes, or all.
            with os.fdopen(descriptor, "rb", closefd=False) as opened_file:
                start = opened_file.read(MAX_BYTES + 1)
    text = start[:MAX_BYTES].decode(errors="backslashreplace")
    lines = [Paragraph(line) for line in map(safe, safe_lines(text))]
    is_cut = len(start) > MAX_BYTES
    end = [Paragraph(safe(f"… first {MAX_BYTES:,} bytes only", "dim"))] if is_cut else []
    return [*head, Paragraph(safe(str(path), "dim")), Paragraph(safe("")), *lines, *end]


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
    """Return the displayed fields of the resume, in which the query's hits are highlighted, and the
    numbers of the person's versions, newest first, and of warnings."""
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
"""How much of a text is searched for hits, which takes long for megabytes."""


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


@dataclass(frozen=True, slots=True)
class Shown:
    """A resume laid out in one of the views."""

    entry: Entry
    view: View
    paragraphs: Sequence[Paragraph]


def show(
    store: Store,
    *,
    account: str,
    resume_id: str,
    view: View,
    settings: Settings,
    query: Query | None = None,
) -> Shown:
    """Return the stored resume laid out in the view. Raises NotFound.

    The text shows the hits of the query, with which the resume was found.
    """
    owner = accounts.get_account(store, account)
    stored = stored_resumes.get_resume(store, owner.id, resume_id)
    match view:
        case View.TEXT:
            versions = stored_resumes.list_versions(store, owner.id, resume_id)
            paragraphs = resume_paragraphs(stored, query, versions)
        case View.JSON:
            paragraphs = json_paragraphs(whole_json(stored.document))
        case View.SOURCE:
            paragraphs = source_paragraphs(store, owner, stored, settings)
        case View.HISTORY:
            paragraphs = list(iter_history(store, owner, stored))
    return Shown(stored.entry, view, paragraphs)
