"""Erasing all data about a person: the person's resumes, and traces of them in other tables.

Call `forgotten.remember` first, so that no resume of the person is added meanwhile. These functions
find everything that was committed before, and each call can be repeated.
"""

import contextlib
import itertools
import json
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec.json
import orjson
from sqlalchemy import ColumnElement, Executable, delete, func, or_, select, update
from sqlmodel import Session

from resumes.analyzer.person import find_email, folded_email
from resumes.errors import StoreIncompatible
from resumes.search.words import index_tokens
from resumes.store.entry import Entry
from resumes.store.erasing import erase
from resumes.store.forgotten import Subject, SubjectKind, is_forgotten, subjects_of
from resumes.store.identifiers import POSITION_DIGITS
from resumes.store.import_ledger import SOURCE_BYTES, nameless, parse_items
from resumes.store.schema import (
    accounts,
    documents,
    idempotency,
    imported_digests,
    imported_files,
    imported_items,
    replaced_resumes,
    resumes,
)
from resumes.store.search_engine import purge
from resumes.store.statements import iter_in_pages, looked_up, pk_equals
from resumes.store.store import Row, Store
from resumes.store.stored_resumes import COLUMNS, StoredResume
from resumes.text import folded
from resumes.watched_names import DOCUMENTS

PAGE_ROWS: Final = 500
"""The maximum number of rows in a read or a transaction, so that other writes do not wait long."""

MAX_INFLATED_BYTES: Final = 64 * 1024 * 1024
"""How much of a compressed file that cannot be unpacked is searched for the person."""

INFLATED_STEP_BYTES: Final = 1024
"""How much of a compressed file is inflated at once; of a damaged one, what precedes is searched."""

MAX_SOUGHT_CHARS: Final = 320
"""Files are searched for the words at the beginning of a longer name, and not for a longer address:
each character can cost a step at each byte of a file."""

_WORDS: Final = re.compile(r"[^\W_]+")
_SEPARATOR: Final = r"[\W_]*+"

_GZIP: Final = b"\x1f\x8b"
_ZIP: Final = b"PK\x03\x04"


class StoredPerson(NamedTuple):
    """A stored resume of a person who will be erased."""

    account_id: str
    stored: StoredResume

    @property
    def id(self) -> str:
        """Return the resume's ID."""
        return self.stored.entry.id

    @property
    def name(self) -> str | None:
        """Return the name on the resume."""
        return self.stored.entry.name

    @property
    def document(self) -> str:
        """Return the stored document, which is empty if it is missing."""
        return self.stored.document


class Mentions:
    """Finds texts that mention a person.

    A text mentions a person if it contains the ID of a resume, the words of a name in forward or
    reverse order, or an email address. If others may share the addresses (`is_shared`), these do
    not count.
    """

    def __init__(
        self,
        addresses: Iterable[str],
        names: Iterable[str] = (),
        ids: Iterable[str] = (),
        *,
        is_shared: bool = False,
    ) -> None:
        self.addresses = {folded_email(address) for address in addresses} - {""}
        every = [_words_of(name) for name in dict.fromkeys(names)]
        # A single word may be a common word.
        orders = [order for words in every if len(words) > 1 for order in (words, words[::-1])]
        found = () if is_shared else self.addresses
        shown = [address for address in found if len(address) <= MAX_SOUGHT_CHARS]
        # A file's name can contain them as a part of a word, but in a file they stand alone.
        self._pattern = _any_of(*ids, *map(re.escape, shown), *map(_SEPARATOR.join, orders))
        self._alone = _any_of(*ids, *map(_address_pattern, shown), *map(_name_pattern, orders))

    def __contains__(self, text: str | None) -> bool:
        return text is not None and self._pattern.search(folded(text)) is not None

    def are_in(self, content: bytes) -> bool:
        """Return whether the bytes, which may be compressed or JSON with escapes, mention the
        person."""
        # A zip archive contains names of files.
        pattern = self._pattern if content.startswith(_ZIP) else self._alone
        return any(pattern.search(text) for text in _iter_texts(content))

    def may_be_in(self, content: bytes) -> bool:
        """Return whether the bytes mention the person, perhaps as a part of a longer address, word
        or name of a file."""
        return any(self._pattern.search(text) for text in _iter_texts(content))

    def without(self, value: Any) -> Any:
        """Return a JSON value without the texts and list items that mention the person."""
        if isinstance(value, dict):
            return {name: self.without(each) for name, each in value.items()}
        if isinstance(value, list):
            return [each for each in value if self.without(each) == each]
        return None if isinstance(value, str) and value in self else value


def _words_of(name: str) -> list[str]:
    text = folded(name)
    words = _WORDS.findall(text[:MAX_SOUGHT_CHARS])
    return words if len(text) <= MAX_SOUGHT_CHARS else words[:-1]


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns) or r"(?!)")


def _address_pattern(address: str) -> str:
    """Return a pattern for the address, but not for a longer one: `lee@x.co` in `ashlee@x.com`."""
    beginning = _beginning(re.escape(address), "[a-z0-9]", "[a-z0-9][._%+-]")
    return rf"{beginning}(?![.-]?[a-z0-9])"


def _name_pattern(words: Sequence[str]) -> str:
    """Return a pattern for these words, but not within others: `Li Na` in `Carolina`.

    An `s` may follow, as in the genitive."""
    first, *others = words
    return _SEPARATOR.join([_beginning(first, "[a-z]"), *others]) + r"(?!s?+[a-z])"


def _beginning(literal: str, *not_before: str) -> str:
    """Return a pattern for the literal, but not after these patterns.

    An escaped character may precede it: `\\n` in JSON, or `%20` in a URL."""
    alone = "".join(f"(?<!{each}{literal})" for each in not_before)
    escaped = rf"(?<=\\[bfnrt]{literal})|(?<=%[0-9a-f][0-9a-f]{literal})"
    return f"{literal}(?:{alone}|{escaped})"


def _iter_texts(content: bytes) -> Iterator[str]:
    """Yield the folded text of the content in each encoding, with and without escapes."""
    content = _inflated(content)
    for each in {content, as_utf8(content)}:
        text = each.decode(errors="replace")
        yield folded(text)
        if "\\u" in text:
            yield folded(_unescaped(text))


def _inflated(content: bytes) -> bytes:
    """Return what a gzip file contains, or its readable part; other content is returned as it is."""
    if not content.startswith(_GZIP):
        return content
    found, at = bytearray(), 0
    with contextlib.suppress(zlib.error):
        while at < len(content) and len(found) <= MAX_INFLATED_BYTES:
            stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
            while at < len(content) and len(found) <= MAX_INFLATED_BYTES and not stream.eof:
                step = content[at : at + INFLATED_STEP_BYTES]
                found += stream.decompress(step, MAX_INFLATED_BYTES - len(found) + 1)
                at += len(step) - len(stream.unused_data)  # another stream may follow
    return bytes(found)


def _unescaped(text: str) -> str:
    return re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)


def as_utf8(content: bytes) -> bytes:
    """Return JSON in UTF-16 or UTF-32, which is not imported, in UTF-8, and without a mark."""
    encoding = json.detect_encoding(content)
    return content if encoding == "utf-8" else content.decode(encoding, "replace").encode()


class _Header(msgspec.Struct):
    email: str | None = None


class _EitherFormat(msgspec.Struct):
    header: _Header = msgspec.field(default_factory=_Header)
    basics: _Header = msgspec.field(default_factory=_Header)


_decode: Final = msgspec.json.Decoder(_EitherFormat).decode


def find_address(body: bytes) -> str | None:
    """Return the folded email address in JSON that need not be a valid resume, or None."""
    with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = _decode(as_utf8(body))
        return folded_email(found.header.email or found.basics.email) or None
    return None


def find_resumes(
    store: Store, subjects: Collection[Subject], account_ids: Iterable[str]
) -> Iterator[StoredPerson]:
    """Yield the subjects' resumes in these accounts. This reads all documents of the accounts."""
    wanted = set(subjects)
    for account_id in account_ids:
        for found in _iter_stored(store, account_id):
            if wanted.intersection(subjects_of(found.document, found.name)):
                yield found


def _iter_stored(store: Store, account_id: str) -> Iterator[StoredPerson]:
    document = looked_up(documents.c.document, documents, account_id, resumes.c.id)
    statement = select(*COLUMNS, document.label("document"))
    page = statement.where(resumes.c.account_id == account_id)
    for row in iter_in_pages(store.fetch, page, [resumes.c.id], page_rows=PAGE_ROWS):
        *entry, text = row
        yield StoredPerson(account_id, StoredResume(Entry._make(entry), text or ""))


def mentions_of(subjects: Collection[Subject], found: Iterable[StoredPerson]) -> Mentions:
    """Return a finder of texts that mention the subjects, whose resumes are `found`."""
    found = [*found]
    addresses = [each.value.decode() for each in subjects if each.kind is SubjectKind.EMAIL]
    addresses += [find_email(each.document) or "" for each in found]
    return Mentions(
        addresses,
        (each.name for each in found if each.name),
        (each.id for each in found),
        is_shared=not any(each.kind is SubjectKind.EMAIL for each in subjects),
    )


def find_documents(
    store: Store,
    account_ids: Iterable[str],
    resume_ids: Collection[str],
    is_theirs: Callable[[bytes], bool],
) -> dict[str, bool]:
    """Return which documents of these accounts belong to the person.

    The keys are the ends of the claims' IDs, which are in the documents' file names. If a document
    was imported, its resume determines whether it belongs to the person, otherwise the analyzer's
    output. A document whose resume was deleted before is left out, because nothing tells whose it is.
    """
    found: dict[str, bool] = {}
    name = imported_files.c.name
    of_documents = or_(*(name.ilike(f"%{ending}") for ending in DOCUMENTS))
    columns = imported_files.c["claim_id", "name", "resume_id", "source"]
    for account_id in account_ids:
        stored = looked_up(resumes.c.id, resumes, account_id, imported_files.c.resume_id)
        page = select(*columns, stored.label("stored_id")).where(
            imported_files.c.account_id == account_id, of_documents
        )
        rows = iter_in_pages(store.fetch, page, [imported_files.c.claim_id], page_rows=PAGE_ROWS)
        for row in rows:
            # True if an earlier call cleared the row, but could not remove the file.
            was_erased = (
                row.resume_id is not None
                and row.stored_id is None
                and row.name == nameless(row.name)
            )
            if was_erased or row.stored_id is not None or row.source:
                is_known = was_erased or row.resume_id in resume_ids
                is_found = is_known or bool(row.source and is_theirs(row.source))
                # Of long output, the ledger may lack the part with the address.
                if is_found or len(row.source or b"") < SOURCE_BYTES:
                    found[row.claim_id[-8:]] = is_found
    return found


def find_owners(store: Store, ending: str) -> set[str]:
    """Return the IDs of the accounts with a claim whose ID has these random digits at its end."""
    is_it = func.substr(imported_files.c.claim_id, POSITION_DIGITS + 1) == ending
    owners = store.fetch(select(imported_files.c.account_id).where(is_it))
    return {account_id for (account_id,) in owners}


def find_digests(
    store: Store, account_ids: Iterable[str], resume_ids: Collection[str]
) -> set[bytes]:
    """Return the digests of the imported JSON from which these resumes were made.

    They identify the person's files even if the resumes have been corrected since. Digests from
    which other resumes of these accounts were made, too, are left out: those resumes are kept.
    """
    account_ids, table = [*account_ids], imported_digests

    def find(column: ColumnElement[Any], values: Collection[Any]) -> Iterator[Row]:
        for account_id, part in itertools.product(account_ids, _parts(sorted(values))):
            of_account = table.c.account_id == account_id
            yield from store.fetch(
                select(*table.c["digest", "resume_id"]).where(of_account, column.in_(part))
            )

    found = {digest for digest, _ in find(table.c.resume_id, resume_ids)}
    kept = {digest for digest, made in find(table.c.digest, found) if made not in resume_ids}
    return found - kept


def _parts(values: Sequence[Any]) -> list[Sequence[Any]]:
    return [values[start : start + PAGE_ROWS] for start in range(0, len(values), PAGE_ROWS)]


def forget_resumes(store: Store, account_id: str, resume_ids: Sequence[str]) -> int:
    """Erase the resumes, their ledger data and their Idempotency-Keys; return their number."""
    erased = 0
    for ids in _parts(resume_ids):
        erased += store.write(partial(_forget, account_id, ids), account_id=account_id)
    return erased


def _forget(account_id: str, ids: Sequence[str], session: Session) -> int:
    of_ids = imported_files.c.account_id == account_id, imported_files.c.resume_id.in_(ids)
    connection = session.connection()
    for row in connection.execute(select(*imported_files.c["claim_id", "name"]).where(*of_ids)):
        # The claim is kept, so that recovery does not import its file again.
        connection.execute(
            update(imported_files)
            .where(pk_equals(imported_files, account_id, row.claim_id))
            .values(name=nameless(row.name), message=None, path=None, source=None, items=None)
        )
    bundles = select(imported_items.c.claim_id).where(
        imported_items.c.account_id == account_id, imported_items.c.resume_id.in_(ids)
    )
    of_bundles = imported_files.c.account_id == account_id, imported_files.c.claim_id.in_(bundles)
    connection.execute(update(imported_files).where(*of_bundles).values(source=None))
    for table in (idempotency, replaced_resumes):
        these = table.c.account_id == account_id, table.c.resume_id.in_(ids)
        connection.execute(delete(table).where(*these))
    return erase(session, account_id, ids)


def forget_returned(store: Store) -> int:
    """Erase resumes of forgotten people that a backup has brought back, and return their number."""
    returned = []
    for (account_id,) in store.fetch(select(accounts.c.id)):
        for found in _iter_stored(store, account_id):
            with store.read() as connection:
                if is_forgotten(connection, account_id, found.document, found.name):
                    returned.append(found)
    for account_id in {found.account_id for found in returned}:
        theirs = [found for found in returned if found.account_id == account_id]
        forget_resumes(store, account_id, [found.id for found in theirs])
        clean_ledger(store, account_id, mentions_of((), theirs))
    clear_traces(store, returned)
    return len(returned)


def clear_traces(store: Store, erased: Iterable[StoredPerson]) -> bool:
    """Remove traces of erased resumes from index and log; return False if readers use the log."""
    tokens: set[str] = set()
    for each in erased:
        with contextlib.suppress(StoreIncompatible):  # a damaged resume was not indexed
            tokens |= index_tokens(each.document, title=None, name=each.name, label=None)
    purge(store, tokens)
    return store.clear_log()


def clean_ledger(store: Store, account_id: str, mentions: Mentions) -> int:
    """Erase mentions of the person in the account's ledger; return the number of changed rows."""
    columns = imported_files.c["claim_id", "name", "message", "path", "source", "items"]
    page = select(*columns).where(
        imported_files.c.account_id == account_id,
        # `forget_resumes` clears done files with one resume, unless the resume was deleted before.
        or_(
            imported_files.c.source.is_not(None),
            imported_files.c["items"].is_not(None),
            looked_up(resumes.c.id, resumes, account_id, imported_files.c.resume_id).is_(None),
        ),
    )
    changed = 0
    rows = iter_in_pages(store.fetch, page, [imported_files.c.claim_id], page_rows=PAGE_ROWS)
    for row in rows:
        address = find_address(row.source or b"")
        if address is not None and address not in mentions.addresses:
            continue  # another person, who may have the same name
        is_in_source = bool(row.source) and mentions.are_in(row.source)
        is_bundle = row.items is not None and parse_items(row.items).total > 0
        is_theirs = is_in_source and not is_bundle
        new = {
            "name": nameless(row.name) if is_theirs or row.name in mentions else row.name,
            "message": None if is_theirs or row.message in mentions else row.message,
            "path": None if is_theirs or row.path in mentions else row.path,
            "source": None if is_in_source else row.source,
            "items": None if is_theirs else _without(row.items, mentions),
        }
        if any(new[name] != getattr(row, name) for name in new):
            this = pk_equals(imported_files, account_id, row.claim_id)
            change = update(imported_files).where(this).values(new)
            store.write(partial(_execute, change), account_id=account_id)
            changed += 1
    return changed


def _execute(change: Executable, session: Session) -> None:
    session.connection().execute(change)


def clean_items(store: Store, account_id: str, claim_id: str, numbers: Collection[int]) -> None:
    """Erase the items' problems and the file's excerpt, perhaps compressed, in the ledger."""
    this = pk_equals(imported_files, account_id, claim_id)
    for (text,) in store.fetch(select(imported_files.c["items"]).where(this)):
        new = _without(text, Mentions(()), numbers)
        change = update(imported_files).where(this).values(items=new, source=None)
        store.write(partial(_execute, change), account_id=account_id)


def _without(text: str | None, mentions: Mentions, numbers: Collection[int] = ()) -> str | None:
    if text is None or (text not in mentions and not numbers):
        return text
    items = parse_items(text)
    kept = [
        each for each in items.problems if each.item not in numbers and str(each) not in mentions
    ]
    analysis = items.analysis
    if analysis is not None and analysis.said in mentions:
        analysis = replace(analysis, said="")
    new = replace(items, problems=tuple(kept), analysis=analysis)
    return text if new == items else orjson.dumps(new.as_json()).decode()
