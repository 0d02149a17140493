"""Create books: several resumes in one PDF, with a title page and a table of contents.

The resumes are rendered one at a time, so a book needs no more memory than its longest resume. The
first pages are rendered last, since they list the other page numbers. `_Joiner` joins all into one
tagged PDF.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from resumes.analyzer import Format, load_stored
from resumes.rendering.fonts import fallbacks
from resumes.rendering.page import PageOptions, Paper, compose, style_of
from resumes.rendering.renderer import Rendered, Renderer
from resumes.store.entry import Entry as ListEntry
from resumes.store.stored_resumes import StoredResume

MAX_RESUMES: Final = 500
_LINK: Final = "https://book.invalid/"
"""The prefix of the links in the table of contents; the resume's index follows."""


class Entry(NamedTuple):
    """A resume in a book. The table of contents shows `name`."""

    name: str
    page: int
    resume: ListEntry


class Book:
    """A book, to which `draw` adds resumes. `lines` are shown below the title."""

    def __init__(
        self,
        title: str,
        lines: Sequence[str],
        choice: PageOptions,
        brand: Mapping[str, Any] | None = None,
    ) -> None:
        self.entries = list[Entry]()
        self._brand = brand if choice.has_brand else None
        self._title, self._lines, self._choice = title, lines, choice
        self._parts = list[bytes]()
        self._next_page = 1
        self._is_conforming = True

    def draw(self, renderer: Renderer, resume: StoredResume, accepted: Format) -> Rendered:
        """Render and add the resume. Raises TooLong and RenderingFailed; then nothing is added."""
        alias = f"Candidate {len(self.entries) + 1}" if self._choice.is_anonymous else None
        choice = replace(self._choice, first_page=self._next_page, alias=alias)
        document = load_stored(resume.document)
        page = compose(document, resume.entry.id, choice, accepted, resume.first_month, self._brand)
        rendered = renderer.render_branded(page)
        self.entries.append(Entry(page["header"]["name"], self._next_page, resume.entry))
        self._parts.append(rendered.body)
        self._next_page += len(_Source(rendered.body).pages)
        self._is_conforming &= rendered.missing is None
        return rendered

    def finish(self, renderer: Renderer) -> bytes:
        """Return the book. Raises RenderingFailed."""
        style = style_of({}, "en")
        front = {
            "file_type": "book",
            "is_conforming": self._is_conforming,
            "title": self._title,
            "lines": self._lines,
            "paper": "us-letter" if self._choice.paper is Paper.LETTER else "a4",
            "accent": style["accent"],
            "fonts": [style["body"], *fallbacks("en")],
            "link": _LINK,
            "brand": self._brand,
            "entries": [{"name": entry.name, "page": entry.page} for entry in self.entries],
        }
        joiner = _Joiner()
        pages = [joiner.add(part)[0] for part in self._parts]
        targets = [*zip(pages, (entry.page for entry in self.entries), strict=True)]
        return joiner.finish(renderer.render_branded(front).body, targets)


# Joining PDFs
#
# Typst writes all objects at the top level of the file and in the order of their numbers, with one
# list of the pages and one list of the marked content. Only PDFs by Typst are joined, so no library
# is needed: assertions fail for a PDF by another program.

_PAGES, _TREE, _DOCUMENT, _OUTLINES, _CATALOG, _METADATA, _INFO = range(1, 8)
"""The numbers of the objects that occur only once in a book."""

_TOKEN: Final = re.compile(
    rb"\\.|[()]|(?P<object>\d+) 0 R|/(?P<key>StructParents?) (?P<number>\d+)"
    rb"|/A<</Type/Action/S/URI/URI\(%b(?P<target>\d+)\)>>|/Contents\(%b(?P<words>\d+)\)"
    % (2 * (re.escape(_LINK.encode()),)),
    re.DOTALL,
)


class _Source:
    """The objects of a PDF by number, and the numbers of the objects that occur only once."""

    def __init__(self, pdf: bytes) -> None:
        table = pdf[int(pdf[pdf.rindex(b"startxref") :].split()[1]) :]
        count = int(table.split(None, 3)[2])
        places = [int(line[:10]) for line in table.split(b"\n")[3 : count + 2]]
        ends = [*places[1:], len(pdf) - len(table)]
        self.objects = dict[int, bytes]()
        for number, (begin, end) in enumerate(zip(places, ends, strict=True), 1):
            head, tail = b"%d 0 obj\n" % number, b"\nendobj"
            body = pdf[begin:end].rstrip()
            assert body.startswith(head)
            assert body.endswith(tail)
            self.objects[number] = body[len(head) : -len(tail)]
        trailer = table[table.rindex(b"trailer") :]
        self.info, self.catalog = _find(b"Info", trailer), _find(b"Root", trailer)
        catalog = self.objects[self.catalog]
        self.metadata, self.tree = _find(b"Metadata", catalog), _find(b"StructTreeRoot", catalog)
        self.root, self.outlines = _find(b"Pages", catalog), _find(b"Outlines", catalog)
        language = re.search(rb"/Lang\(([\w-]+)\)", catalog)
        assert language
        self.language = language[1]
        self.pages = _list(rb"/Kids\[(.*?)\]", self.objects[self.root])
        assert all(self.objects[page].startswith(b"<</Type/Page/") for page in self.pages)


def _find(name: bytes, dictionary: bytes) -> int:
    found = re.search(rb"/%b (\d+) 0 R" % name, dictionary)
    assert found
    return int(found[1])


def _list(pattern: bytes, dictionary: bytes) -> list[int]:
    found = re.search(pattern, dictionary)
    assert found
    return [int(number) for number in re.findall(rb"(\d+) 0 R", found[1])]


class _Joiner:
    """Joins PDFs. Resumes are added first; `finish` puts the first pages in front of them."""

    def __init__(self) -> None:
        self._body = bytearray(b"%PDF-1.7\n%\x80\x80\x80\x80\n")
        self._places = dict[int, int]()
        self._base = _INFO
        """The number that is added to the object numbers of the next PDF."""

        self._key = 0
        """The next key in the list of marked content."""

        self._marked = list[bytes]()
        self._pages = list[list[int]]()
        self._documents = list[int]()
        self._titles = list[tuple[int, bytes]]()

    def add(self, pdf: bytes, targets: Sequence[tuple[int, int]] = ()) -> list[int]:
        """Add the PDF and return its page objects.

        `targets` has a page object and page number for each link in the table of contents. It is
        empty for resumes, whose own links are kept even if they look the same."""
        source = _Source(pdf)
        base, first_key = self._base, self._key
        once = {source.root: _PAGES, source.outlines: _OUTLINES, source.tree: _DOCUMENT}

        def moved(body: bytes) -> bytes:
            """Return the object with all references renumbered for the book."""
            depth = 0

            def replaced(found: re.Match[bytes]) -> bytes:
                nonlocal depth
                depth += (found[0] == b"(") - (found[0] == b")")
                if depth:  # a string, which may look like a reference
                    return found[0]
                if number := found["object"]:
                    return b"%d 0 R" % once.get(int(number), base + int(number))
                if found["key"]:
                    return b"/%b %d" % (found["key"], first_key + int(found["number"]))
                if targets and (place := found["target"]):
                    return b"/Dest[%d 0 R/Fit]" % targets[int(place)][0]
                if targets and (place := found["words"]):
                    return b"/Contents(Page %d)" % targets[int(place)][1]
                return found[0]

            if body.startswith(b"<</Length "):
                head, stream, rest = body.partition(b"\nstream\n")
                return _TOKEN.sub(replaced, head) + stream + rest
            return _TOKEN.sub(replaced, body)

        tree = source.objects[source.tree]
        [document] = _list(rb"/K\[(.*?)\]", tree)
        [title] = {_find(name, source.objects[source.outlines]) for name in (b"First", b"Last")}
        left_out = {*once, source.catalog, source.info, source.metadata}
        for number, body in source.objects.items():
            if number == title:
                self._titles.append((base + number, moved(body)))
            elif number == document:
                kind = b"<</Type/StructElem/S/Document"
                assert body.startswith(kind)
                language = b"<</Type/StructElem/S/Part/Lang(%b)" % source.language
                self._put(base + number, language + moved(body[len(kind) :]))
            elif number not in left_out:
                self._put(base + number, moved(body))
        marked = re.search(rb"/Nums\[(.*?)\]", tree)
        assert marked
        for key, number in re.findall(rb"(\d+) (\d+) 0 R", marked[1]):
            self._marked.append(b"%d %d 0 R" % (first_key + int(key), base + int(number)))
            self._key = first_key + int(key) + 1
        self._documents.append(base + document)
        self._pages.append([base + page for page in source.pages])
        self._base += len(source.objects)
        return self._pages[-1]

    def finish(self, front: bytes, targets: Sequence[tuple[int, int]]) -> bytes:
        """Add the first pages and return the book."""
        own = self.add(front, targets)
        self._pages.insert(0, self._pages.pop())
        self._documents.insert(0, self._documents.pop())
        self._titles.insert(0, self._titles.pop())
        source = _Source(front)
        roles = re.search(rb"/RoleMap<<.*?>>", source.objects[source.tree])
        assert roles
        pages = [page for part in self._pages for page in part]
        xml = (
            source.objects[source.metadata].partition(b"\nstream\n")[2].removesuffix(b"\nendstream")
        )
        xml = re.sub(rb"(?<=<xmpTPg:NPages>)\d+", b"%d" % len(pages), xml)
        numbers = [number for number, _ in self._titles]
        for place, (number, body) in enumerate(self._titles):
            others = b"/Prev %d 0 R" % numbers[place - 1] if place else b""
            if place + 1 < len(numbers):
                others += b"/Next %d 0 R" % numbers[place + 1]
            self._put(number, b"<<" + others + body.removeprefix(b"<<"))
        self._put(_PAGES, b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(pages), _references(pages)))
        self._put(
            _TREE,
            b"<</Type/StructTreeRoot%b/K[%b]/ParentTree<</Nums[%b]>>/ParentTreeNextKey %d>>"
            % (roles[0], _references([_DOCUMENT]), b" ".join(self._marked), self._key),
        )
        self._put(
            _DOCUMENT,
            b"<</Type/StructElem/S/Document/P %d 0 R/K[%b]>>"
            % (_TREE, _references(self._documents)),
        )
        self._put(
            _OUTLINES,
            b"<</Type/Outlines/First %d 0 R/Last %d 0 R/Count %d>>"
            % (numbers[0], numbers[-1], len(numbers)),
        )
        self._put(
            _METADATA,
            b"<</Length %d/Type/Metadata/Subtype/XML>>\nstream\n%b\nendstream" % (len(xml), xml),
        )
        # Number the first pages i, ii and so on, so that the resumes begin on page 1.
        self._put(
            _CATALOG,
            b"<</Type/Catalog/Pages %d 0 R/Metadata %d 0 R/Lang(%b)/StructTreeRoot %d 0 R"
            b"/MarkInfo<</Marked true/Suspects false>>/ViewerPreferences<</DisplayDocTitle true>>"
            b"/Outlines %d 0 R/PageLabels<</Nums[0<</S/r>>%d<</S/D>>]>>>>"
            % (_PAGES, _METADATA, source.language, _TREE, _OUTLINES, len(own)),
        )
        self._put(_INFO, source.objects[source.info])
        count, begin = max(self._places) + 1, len(self._body)
        table = [
            b"%010d 00000 n \n" % self._places[number]
            if number in self._places
            else b"0000000000 00000 f \n"
            for number in range(1, count)
        ]
        digest = hashlib.sha256(self._body).hexdigest()[:32].encode()
        self._body += b"xref\n0 %d\n0000000000 65535 f \n%b" % (count, b"".join(table))
        self._body += (
            b"trailer\n<</Size %d/Root %d 0 R/Info %d 0 R/ID[<%b><%b>]>>\nstartxref\n%d\n%%%%EOF\n"
            % (count, _CATALOG, _INFO, digest, digest, begin)
        )
        return bytes(self._body)

    def _put(self, number: int, body: bytes) -> None:
        self._places[number] = len(self._body)
        self._body += b"%d 0 obj\n%b\nendobj\n" % (number, body)


def _references(numbers: Iterable[int]) -> bytes:
    return b" ".join(b"%d 0 R" % number for number in numbers)
