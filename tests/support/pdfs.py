"""PDFs as other programs read them, and the texts of a resume that are looked for in them."""

import functools
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import pypdf
import pytest
from pypdf.generic import ContentStream, DictionaryObject

from resumes.analyzer import parse, shown_view
from resumes.analyzer.schema import LAYOUTS, SECTION_TYPES
from tests.support.documents import HEADER

ROOT: Final = Path(__file__).parents[2]
SAMPLES: Final = {path.stem: path for path in sorted((ROOT / "sample_data").glob("*.json"))}

EACH_SAMPLE: Final = [
    pytest.param(
        name, marks=() if re.search("^all-26-|-(ar|de|hi|ja|uk)$", name) else pytest.mark.slow
    )
    for name in SAMPLES
]
EACH_LAYOUT: Final = [
    pytest.param(name, marks=() if name in ("double", "timeline") else pytest.mark.slow)
    for name in LAYOUTS
]
"""For a test of all of them, of which those most unlike each other are drawn for each change."""

CJK: Final = frozenset(
    name
    for name, path in SAMPLES.items()
    if re.search(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]", path.read_text("utf-8"))
)
"""The samples with a character that the package has no font for."""


def find_cjk_fonts() -> list[Path]:
    """Return the system's fonts that docs/pdf.md names for Chinese, Japanese and Korean."""
    return sorted(Path("/usr/share/fonts").rglob("NotoSansCJK*"))


def add_cjk_font(home: Path) -> None:
    """One of them is in the folder of a home for the user's own."""
    (home / "fonts").mkdir()
    (font, *_) = [one for one in find_cjk_fonts() if "-Regular" in one.name]
    (home / "fonts" / font.name).symlink_to(font)


def require_fonts(sample: str) -> None:
    """Skip the test of a sample that no font here can show."""
    if sample in CJK and not find_cjk_fonts():
        pytest.skip("no CJK font is installed: apt install fonts-noto-cjk")


def load(path: Path) -> dict[str, Any]:
    """The document of a file, as it is stored."""
    return as_stored(path.read_bytes())


def as_stored(body: bytes) -> dict[str, Any]:
    document: dict[str, Any] = orjson.loads(parse(body).document)
    return document


# What is looked for


def absent(texts: list[str], found: str) -> list[str]:
    """Those that are not in what was found."""
    folded = fold(found)
    return [text for text in texts if fold(text) not in folded]


class Section(NamedTuple):
    """A section as a reader meets it."""

    heading: str
    texts: list[str]


_NOT_SHOWN: Final = frozenset({"companyLogo", "image", "icon"})


def header_of(document: Mapping[str, Any]) -> list[str]:
    """The texts at the head of a resume."""
    header = document["header"]
    shown = {field: header[field] for field in HEADER if _is_text(header.get(field))}
    return [_bare(text) if field == "website" else text for field, text in shown.items()]


def sections_of(document: Mapping[str, Any]) -> list[Section]:
    """The sections in reading order, the main column first; those with nothing to read left out."""
    sections = shown_view(orjson.dumps(document))["sections"]

    def place(name: str) -> tuple[float, bool, float]:
        order = sections[name].get("order")
        return sections[name]["column"], order is None, order or 0

    found = []
    for name in sorted(sections, key=place):
        texts = [text for item in sections[name]["items"] for text in _iter_texts(item)]
        if texts:
            heading = sections[name].get("name") or ""
            found.append(
                Section(heading if _is_text(heading) else SECTION_TYPES[name].heading, texts)
            )
    return found


def texts_of(document: Mapping[str, Any]) -> list[str]:
    """Every text that a reader of the resume has to find."""
    return [*header_of(document), *(text for each in sections_of(document) for text in (each.heading, *each.texts))]  # fmt: skip


def _is_text(value: object) -> bool:
    return isinstance(value, str) and fold(value) != ""


def _bare(url: str) -> str:
    return re.sub(r"^https?://(www\.)?", "", url).rstrip("/")


def _iter_texts(value: Any, field: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in _NOT_SHOWN and not (name == "maxGpa" and not value.get("gpa")):
                yield from _iter_texts(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _iter_texts(inner, field)
    elif _is_text(value):
        yield _bare(value) if field == "link" else value


def fold(text: str) -> str:
    """The letters and signs of a text alone: without blanks, line ends, hyphens, ligatures, case
    and characters that are not seen."""
    # By way of capitals: a layout in capitals writes the Turkish dotless i as I.
    capitals = unicodedata.normalize("NFKC", text).upper()
    whole = unicodedata.normalize("NFKC", capitals.casefold())
    return "".join(char for char in whole if unicodedata.category(char) not in _UNSEEN)


_UNSEEN: Final = {"Cc", "Cf", "Co", "Pd", "Zl", "Zp", "Zs"}

WORD: Final = re.compile(r"[^\W_]+")


def words_of(texts: list[str]) -> list[str]:
    """The words of texts, folded."""
    return [
        fold(word) for text in texts for word in WORD.findall(unicodedata.normalize("NFKC", text))
    ]


# What is found


class Element(NamedTuple):
    """An element of the tag tree, with all text below it."""

    tag: str
    text: str


_PAINTING: Final = {b"f", b"F", b"f*", b"S", b"s", b"B", b"B*", b"b", b"b*", b"sh", b"Do"}


class Pdf:
    """A PDF, read by pypdf."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.reader = pypdf.PdfReader(BytesIO(body))
        self.root: DictionaryObject = self.reader.root_object

    @property
    def text(self) -> str:
        """Its text as pypdf finds it."""
        return "\n".join(page.extract_text() for page in self.reader.pages)

    @property
    def links(self) -> list[str]:
        """The addresses that its links lead to; those within it left out."""
        found = []
        for page in self.reader.pages:
            for reference in page.get("/Annots", []):
                action = reference.get_object().get("/A", DictionaryObject()).get_object()
                found += [str(action["/URI"])] if "/URI" in action else []
        return found

    @property
    def streams(self) -> bytes:
        """All that is in it, unpacked."""
        parts = [self.body]
        count: Any = self.reader.trailer["/Size"]
        for number in range(1, count):
            found = self.reader.get_object(number)
            data = getattr(found, "get_data", None)
            parts.append(data() if data is not None else repr(found).encode())
        return b"\n".join(parts)

    @property
    def painted(self) -> list[list[str]]:
        """For each shape that is painted, the marks that it stands within."""
        found, marks = list[list[str]](), list[str]()
        for page in self.reader.pages:
            for operands, operator in ContentStream(page.get_contents(), self.reader).operations:
                if operator in (b"BDC", b"BMC"):
                    marks.append(str(operands[0]))
                elif operator == b"EMC":
                    marks.pop()
                elif operator in _PAINTING:
                    found.append([*marks])
        return found

    def elements(self) -> list[Element]:
        """The headings and what stands between them, in the order in which they are read aloud."""
        found: list[Element] = []
        self._walk(self.root["/StructTreeRoot"], None, found)
        return found

    def _walk(self, node: Any, page: Any, found: list[Element]) -> None:
        page = node.raw_get("/Pg") if "/Pg" in node else page
        kind = str(node.get("/S", ""))
        is_leaf = any(isinstance(kid, int) for kid in _kids(node))
        if is_leaf or kind in ("/H1", "/H2", "/P", "/LI", "/Link", "/Figure"):
            found.append(Element(kind[1:], self._text(node, page)))
            return
        for kid in _kids(node):
            self._walk(kid, page, found)

    def _text(self, node: Any, page: Any) -> str:
        if isinstance(node, int):
            return self._marked(page.idnum)[node]
        if node.get("/Type") == "/OBJR":
            return ""
        page = node.raw_get("/Pg") if "/Pg" in node else page
        if node.get("/Type") == "/MCR":
            return self._marked(page.idnum)[node["/MCID"]]
        return "".join(self._text(kid, page) for kid in _kids(node))

    @functools.cache  # noqa: B019  (a Pdf lives no longer than its test)
    def _marked(self, page_number: int) -> dict[int, str]:
        """The text of each marked piece of a page."""
        page = next(
            page for page in self.reader.pages
            if page.indirect_reference and page.indirect_reference.idnum == page_number
        )  # fmt: skip
        fonts = {
            name: _unicodes(font.get_object())
            for name, font in _resources(page).get("/Font", {}).items()
        }
        return _read_marked(ContentStream(page.get_contents(), self.reader), fonts)


def _resources(page: Any) -> Any:
    return page["/Resources"]


def _kids(node: Any) -> list[Any]:
    kids = node.get("/K", [])
    return [kid.get_object() for kid in kids] if isinstance(kids, list) else [kids]


def _read_marked(content: ContentStream, fonts: Mapping[str, Mapping[int, str]]) -> dict[int, str]:
    marked: dict[int, str] = {}
    open_pieces: list[tuple[int | None, bool]] = []
    font: Mapping[int, str] = {}
    for operands, operator in content.operations:
        number = next((one for one, _ in reversed(open_pieces) if one is not None), None)
        if operator in (b"BDC", b"BMC"):
            said = operands[1] if len(operands) > 1 else {}
            if "/ActualText" in said and number is not None:
                marked[number] = marked.get(number, "") + str(said["/ActualText"])
            own = said.get("/MCID")
            if own is not None:
                marked.setdefault(int(own), "")
            open_pieces.append((None if own is None else int(own), "/ActualText" in said))
        elif operator == b"EMC":
            open_pieces.pop()
        elif operator == b"Tf":
            font = fonts[operands[0]]
        elif operator in (b"Tj", b"TJ"):
            if number is None or any(is_said for _, is_said in open_pieces):
                continue
            parts = operands[0] if operator == b"TJ" else operands
            for part in parts:
                code = getattr(part, "original_bytes", None)
                if code is not None:
                    glyphs = zip(code[::2], code[1::2], strict=True)
                    marked[number] += "".join(font.get(256 * a + b, "\ufffd") for a, b in glyphs)
    return marked


def _unicodes(font: Any) -> dict[int, str]:
    """The characters by glyph, of a font that has glyphs of two bytes."""
    table = font["/ToUnicode"].get_object().get_data().decode("ascii")
    found = {}
    for block in re.findall(r"beginbfchar(.*?)endbfchar", table, re.DOTALL):
        for code, text in re.findall(r"<(\w+)>\s*<(\w+)>", block):
            found[int(code, 16)] = bytes.fromhex(text).decode("utf-16-be")
    return found


def read_with_pdftotext(body: bytes, *options: str) -> str:
    """Its text as pdftotext finds it. Skips the test without that."""
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed: apt install poppler-utils")
    done = subprocess.run(
        ["pdftotext", "-enc", "UTF-8", *options, "-", "-"],
        input=body,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode()
