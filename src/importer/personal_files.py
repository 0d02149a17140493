"""A person's files in the outcome folders of a watched folder: finding and erasing them.

A file that contains only the person's resumes is removed together with its report. A bundle that
also contains other people's resumes is rewritten without the person and replaced atomically, and
the person's data is removed from its report. A bundle that cannot be rewritten stays and is listed.
Files that are still waiting are not touched: they are rejected when they are imported.
"""

import contextlib
import dataclasses
import gzip
import io
import json
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from importer import files, json_texts, unpack
from importer.files import split_extension
from importer.filing import MAX_REPORT_BYTES, load_report, report_path
from importer.json_texts import CannotUnpack
from importer.options import Limits
from importer.outcomes import judge
from resumes.analyzer import Format, Resume
from resumes.analyzer.strict_json import without_mark
from resumes.import_reasons import Reason
from resumes.output_files import drafted, flush, replace
from resumes.store.forgetting import Mentions, as_utf8, find_address
from resumes.store.forgotten import Subject, SubjectKind, subjects_of
from resumes.watched_folder import DONE, DUPLICATE, FAILED, HELD, HELD_NAME, end_of
from resumes.watched_names import (
    REPORT,
    find_extension,
    is_document,
    is_hidden,
    is_hidden_or_temporary,
)


class Action(StrEnum):
    ERASE = "erase"
    REWRITE = "rewrite"
    CANNOT = "cannot"
    """The file cannot be read or rewritten, and may contain the person's data."""


class PersonalFile(NamedTuple):
    """A file with a person's data. `theirs` contains the numbers of the person's resumes in a
    bundle, and `others` is the number of other resumes. `unread` counts members, such as pictures,
    that may also be the person's."""

    path: Path
    action: Action
    theirs: Collection[int] = ()
    others: int = 0
    unread: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Search:
    """Which files to find. `subjects` come from `forgotten.remember`, `documents` from
    `forgetting.find_documents`, and `digests` from `forgetting.find_digests`. `mentions` find files
    without a readable address."""

    subjects: Collection[Subject]
    mentions: Mentions
    format: Format
    limits: Limits
    documents: Mapping[str, bool]
    digests: Collection[bytes] = ()

    def is_theirs(self, body: bytes) -> bool:
        """Return whether these bytes are a resume of the person."""
        if self.digests and files.digest(body) in self.digests:
            return True  # the stored resume may have another name or address now
        address = find_address(body)
        by_content = any(one.kind is SubjectKind.DOCUMENT for one in self.subjects)
        if address is None:
            is_possible = self.mentions.are_in(body)
        else:
            is_possible = address in self.mentions.addresses
        if not is_possible and not by_content:
            return False
        verdict = judge(body, self.format)
        if isinstance(verdict, Resume):
            found = subjects_of(verdict.document, verdict.name)
            return not set(self.subjects).isdisjoint(found)
        return is_possible and self.mentions.are_in(body)


def find_files(root: Path, search: Search) -> Iterator[PersonalFile]:
    """Yield the person's files in the outcome folders below ROOT."""
    unreadable: list[OSError] = []
    for outcome in (DONE, DUPLICATE, FAILED, HELD):
        for folder, _, names in os.walk(root / outcome, onerror=unreadable.append):
            stems = {split_extension(name)[0] for name in names if not name.endswith(REPORT)}
            for name in sorted(names):
                path = Path(folder, name)
                if is_hidden_or_temporary(name) or not path.is_file() or path.is_symlink():
                    continue
                found = None
                if not name.endswith(REPORT):
                    found = _examine(path, search)
                elif name.removesuffix(REPORT) not in stems and search.mentions.may_be_in(
                    files.find_body(path, MAX_REPORT_BYTES)
                ):
                    found = PersonalFile(path, Action.ERASE)  # its file no longer exists
                if found is not None:
                    yield found
    for error in unreadable:
        if not isinstance(error, FileNotFoundError):
            yield PersonalFile(Path(error.filename), Action.CANNOT)


def _examine(path: Path, search: Search) -> PersonalFile | None:
    try:
        content = files.load(path, max(search.limits.max_bytes, search.limits.max_file_bytes))
    except FileNotFoundError:
        return None
    except OSError:
        return PersonalFile(path, Action.CANNOT)
    body = content.body
    if is_document(path.name):
        return _examine_document(path, body, search)
    if content.is_over_limit:
        return PersonalFile(path, Action.CANNOT)  # only its beginning was read
    if not unpack.is_bundle(path.name, body):
        if not search.is_theirs(body):
            return None
        return PersonalFile(path, Action.CANNOT if _is_unread_bundle(body) else Action.ERASE)
    try:
        opened = unpack.unpack(path.name, body, search.limits)
        theirs, others, is_unread = [], 0, opened.skipped.count > 0
        for part in opened.parts:
            is_unread |= part.refusal is not None
            if search.is_theirs(part.body):
                theirs.append(part.number)
            else:
                others += 1
    except CannotUnpack as error:
        if error.refusal.reason is Reason.TOO_LARGE and body.startswith(json_texts.COMPRESSED):
            return PersonalFile(path, Action.CANNOT)
        return _listed(path, body, search)
    unread = 0
    if is_unread and body.startswith(json_texts.ZIP_MAGICS):
        unread = _count_unread(body, search, has_theirs=bool(theirs))
    elif is_unread:
        unread = int(search.mentions.may_be_in(body))
    if not theirs:
        return PersonalFile(path, Action.CANNOT) if unread else None
    action = Action.REWRITE if others or unread else Action.ERASE
    return PersonalFile(path, action, theirs, others, unread)


def _count_unread(body: bytes, search: Search, *, has_theirs: bool) -> int:
    """Return how many members of a zip archive may be the person's, but contain no readable JSON.

    A member may be if its name or content mentions the person, or if it is too large to be
    searched. In an archive with resumes of the person, so may all pictures, documents, nested
    archives and the like.
    """
    archive, members, _ = unpack.open_archive(body, search.limits)
    to_read = {id(member.info): member for member in members if member.obstacle is None}
    count, left_bytes = 0, search.limits.max_file_bytes
    for info in archive.infolist():
        if info.is_dir():
            continue
        if member := to_read.get(id(info)):
            with contextlib.suppress(CannotUnpack):
                content = unpack.read_member(archive, member)
                is_by_line = member.extension in unpack.LINES
                parts = json_texts.unpack_content(content, search.limits, is_by_line=is_by_line)
                if all(part.refusal is None for part in parts):
                    continue
        name, content = unpack.decoded(info, info.filename), b""
        is_possible = info.file_size > left_bytes
        if not is_possible:
            left_bytes -= info.file_size
            del info.CRC  # without it, a damaged member is read, too
            with contextlib.suppress(*unpack.DAMAGED):
                content = archive.read(info)
        is_unread_type = find_extension(name) in (None, ".zip")
        is_possible |= has_theirs and is_unread_type and not any(map(is_hidden, name.split("/")))
        if is_possible or name in search.mentions or search.mentions.may_be_in(content):
            count += 1
    return count


def _is_unread_bundle(body: bytes) -> bool:
    """Return whether a file that is not read as a bundle may contain several resumes: it is
    compressed despite its name, contains an array in UTF-16, or lines of which the first is damaged.
    """
    if body.startswith(json_texts.COMPRESSED):
        return True
    text = as_utf8(body)
    return json_texts.is_json_bundle(text) or b"\n{" in text.lstrip()


def _examine_document(path: Path, body: bytes, search: Search) -> PersonalFile | None:
    """Return the document if the ledger, or else its name or text, attributes it to the person."""
    if files.digest(body) in search.digests:
        return PersonalFile(path, Action.ERASE)  # a newer version has replaced its resume
    held = HELD_NAME.fullmatch(path.name)
    is_theirs = search.documents.get(held[1][-8:] if held else end_of(path.name))
    if is_theirs is None:
        return _listed(path, body, search)
    return PersonalFile(path, Action.ERASE) if is_theirs else None


def _listed(path: Path, body: bytes, search: Search) -> PersonalFile | None:
    """Return the file to be listed if its name or content may mention the person."""
    is_named = path.name in search.mentions or search.mentions.may_be_in(body)
    return PersonalFile(path, Action.CANNOT) if is_named else None


def erase_file(file: PersonalFile, search: Search) -> None:
    """Erase the person from the file and its report. Raises OSError, and CannotUnpack for a bundle
    that cannot be rewritten."""
    path, report = file.path, report_path(file.path)
    if file.action is Action.ERASE:
        report.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
    elif file.action is Action.REWRITE:
        content = _without(path, search)
        # Change the report first: afterwards, the items to remove from it are unknown.
        if found := load_report(report):
            # No file has this SHA-256, so a retry starts from the beginning.
            items = found.get("items") or ()
            kept = [each for each in items if each.get("item") not in file.theirs]
            new = search.mentions.without(found | {"items": kept, "sha256": ""})
            text = json.dumps(new, indent=2, ensure_ascii=False)
            _replace(report, text.encode() + b"\n")
        _replace(path, content)
    flush(path.parent)


def _replace(path: Path, content: bytes) -> None:
    with drafted(path, replace) as draft:
        draft.write(content)
        draft.flush()
        shutil.copystat(path, draft.name)


# Bundles


def _without(path: Path, search: Search) -> bytes:
    body = files.load(path, max(search.limits.max_bytes, search.limits.max_file_bytes)).body
    extension = find_extension(path.name) or ""
    if body.startswith(json_texts.ZIP_MAGICS):
        return _zip_without(body, search)
    is_by_line = extension in unpack.LINES
    if body.startswith(json_texts.GZIP_MAGIC):
        content = unpack.gunzip(body, search.limits)
        return gzip.compress(_text_without(content, search, is_by_line=is_by_line), mtime=0)
    return _text_without(body, search, is_by_line=is_by_line)


def _text_without(content: bytes, search: Search, *, is_by_line: bool) -> bytes:
    """Return the lines, array or resume without the person, or no bytes if nothing else remains."""
    parts = [*json_texts.unpack_content(content, search.limits, is_by_line=is_by_line)]
    kept = [part for part in parts if not search.is_theirs(part.body)]
    if len(kept) == len(parts):
        return content
    for part in kept:
        if part.refusal is not None:
            raise json_texts.invalid_archive(part.refusal.message)
    content = without_mark(content)
    if is_by_line or json_texts.looks_like_lines(content):
        return b"".join(part.body + b"\n" for part in kept)
    return b"[" + b",\n".join(part.body for part in kept) + b"]\n" if kept else b""


def _zip_without(body: bytes, search: Search) -> bytes:
    archive, members, _ = unpack.open_archive(body, search.limits)
    if sum(info.file_size for info in archive.infolist()) > search.limits.max_file_bytes:
        raise json_texts.file_too_large(search.limits)
    to_read = {id(member.info): member for member in members if member.obstacle is None}
    new = io.BytesIO()
    with ZipFile(new, "w") as target:
        for info in archive.infolist():
            try:
                content = archive.read(info)
            except unpack.DAMAGED:  # or encrypted
                raise json_texts.invalid_archive("A member of it cannot be read") from None
            if info.is_dir() and unpack.decoded(info, info.filename) in search.mentions:
                continue
            if member := to_read.get(id(info)):
                is_by_line = member.extension in unpack.LINES
                with contextlib.suppress(CannotUnpack):  # not JSON, so nothing in it was imported
                    content = _text_without(content, search, is_by_line=is_by_line)
                if not content:
                    continue
            target.writestr(info, content)
    return new.getvalue()
