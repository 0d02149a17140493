"""Documents to send, short ways to have them parsed, and the table of docs/format.md."""

import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import strategies as st

from resumes.analyzer import DEFAULT_FORMAT, Format, Resume, parse, public_json, whole_json
from resumes.analyzer.schema import LAYOUTS, SECTION_TYPES
from resumes.errors import InvalidResume, Issue

CORPUS: Final = Path(__file__).parents[3] / "shared" / "corpus" / "analyzer-fake.tar.gz"
"""337 resumes that are not part of the project; absent in most places."""

PAGE: Final = (Path(__file__).parents[2] / "docs" / "format.md").read_text("utf-8")

DATE_RANGE: Final = {
    "fromYear": "number",
    "fromMonth": "month",
    "toYear": "number",
    "toMonth": "month",
    "isOngoing": "flag",
}
SLICE: Final = {"title": "text", "value": "number"}
HEADER: Final = {
    field: "text"
    for row in re.findall(r"^\| `header` \|([^|]+)\|", PAGE, re.MULTILINE)
    for field in re.findall(r"`(\w+)`", row)
}
"""The fields of the header, all of them texts, as the page has them."""
STYLE: Final = {
    "layout": "layout",
    "colors": "colours",
    "fontBody": "body font",
    "fontHeading": "heading font",
    "fontSize": "0 to 4",
    "hideBranding": "flag",
    "isLetterSize": "flag",
    "marginOption": "0 to 4",
    "pageMarginOption": "0 to 5",
    "columnLayoutOption": "0 to 3",
    "lineHeightOption": "0 to 2",
    "headerExtraSpacing": "0 to 4",
}

_ROW = re.compile(r"\| `(\w+)` \| ([\w ]+) \| (`\w+`.*) \|\n")
_FIELD = re.compile(r"`(\w+)`(?: \(([^)]*)\))?(?:, |$)")


def _kind(words: str) -> str:
    return {
        "": "text",
        "array of objects with a string `title` and a number `value`": "slices",
    }.get(words, words.removeprefix("number, "))


SECTIONS: Final = {
    name: {field: _kind(words) for field, words in _FIELD.findall(fields)}
    for name, _, fields in _ROW.findall(PAGE.partition("## Sections")[2].partition("### Dates")[0])
}
"""The fields of an item by section type, and what kind of value each holds, as the page has it."""

HEADINGS: Final = {name: heading for name, heading, _ in _ROW.findall(PAGE) if name in SECTIONS}


def a_document(**members: Any) -> dict[str, Any]:
    """A small valid document; a member given replaces the default one."""
    return {"header": {"name": "Ada Lovelace"}, "sections": {}, **members}


PEOPLE: Final = (
    ("Þórarinn Großweiß", "thor.gross@post.example", "+354 555 0142", "https://grossweiss.example"),
    ("Siobhán O'Shaughnessy", "oshaughnessy@post.example", "086-555-0142", "shaughnessy.example"),
    ("İbrahim Çağlayangül", "i@caglayangul.example", "+90 (532) 555 01 42", "çağlayangül.example"),
    ("Дарья Кузьмичёва", "kuzmicheva@post.example", "8 (916) 555-01-42", "кузьмичёва.example"),
    ("أميرة الخوارزمي", "amira@khawarizmi.example", "٠٧٩٥٥٥٥٠١٤٢", "khawarizmi.example"),
    ("אביגיל בן־שושן", "avigail@post.example", "054-555-0142", "https://benshushan.example/cv"),
    ("प्रियंवदा चतुर्वेदी", "priyamvada@post.example", "+91 98555 50142", "chaturvedi.example"),
)
"""Names, email addresses, phone numbers and websites that are hard to find in a text."""


def person(known: tuple[str, str, str, str]) -> dict[str, Any]:
    """A document whose texts say who it is about, in several spellings."""
    name, email, phone, website = known
    handle = max(name.split(), key=len)
    texts = [
        f"{name} is {name.upper()}, also {name.replace(' ', '')} and {handle}s.",
        f"Write to {email.upper()} or <{email.replace('@', ' (at) ')}>; see {website}/x.",
        f"github.com/{handle}1815, https://x.example/in/{name.replace(' ', '-')}",
        f"Call {phone} or " + re.sub(r"[^\d+]", "", phone),
    ]
    items = [
        {"position": text, "workplace": text, "description": text, "bullets": [text]}
        for text in texts
    ]
    document = with_section("experiences", *items, name=f"What {name} did")
    header = {"name": name, "email": email, "phone": phone, "website": website}
    return document | {"header": header, "title": f"{name}: CV"}


def secrets_of(document: Mapping[str, Any]) -> list[str]:
    """What an anonymous resume must not say, as the header writes it."""
    header = document["header"]
    said = [header.get(field) or "" for field in ("name", "email", "phone", "website")]
    words = [word for word in re.split(r"[\s־]", said[0]) if len(word) > 3]
    return [text for each in (*said, *words) if len(text := re.sub("^https?://", "", each)) > 2]


def with_section(section_type: str, *items: Any, **fields: Any) -> dict[str, Any]:
    """A document with one section; `fields` are further fields of that section."""
    return a_document(sections={section_type: {"column": 0, **fields, "items": list(items)}})


def admitting(*section_types: str) -> Format:
    return Format(extra_section_types=frozenset(section_types))


def parsed(document: Any, accepted: Format = DEFAULT_FORMAT) -> Resume:
    return parse(json.dumps(document).encode(), accepted)


def public_view(document: str | bytes, accepted: Format = DEFAULT_FORMAT) -> dict[str, Any]:
    """What clients get of a stored document."""
    view: dict[str, Any] = json.loads(public_json(document, accepted))
    return view


def whole_view(document: str | bytes) -> dict[str, Any]:
    """What a stored document is shown as in whole."""
    view: dict[str, Any] = json.loads(whole_json(document))
    return view


def whole(document: Any, accepted: Format = DEFAULT_FORMAT) -> Any:
    return whole_view(parsed(document, accepted).document)


def stored_item(section_type: str, item: dict[str, Any]) -> Any:
    return whole(with_section(section_type, item))["sections"][section_type]["items"][0]


def view_of(document: Any, accepted: Format = DEFAULT_FORMAT) -> dict[str, Any]:
    return public_view(parsed(document, accepted).document, accepted)


def listed(issues: Any) -> list[tuple[str, str]]:
    """Each issue with its path and its message."""
    return [(issue.path, issue.message) for issue in issues]


def warnings_of(document: Any, accepted: Format = DEFAULT_FORMAT) -> list[tuple[str, str]]:
    return listed(parsed(document, accepted).warnings)


def issues_of(document: Any, accepted: Format = DEFAULT_FORMAT) -> tuple[Issue, ...]:
    with pytest.raises(InvalidResume) as refusal:
        parsed(document, accepted)
    assert refusal.value.message == refusal.value.issues[0].message
    return tuple(refusal.value.issues)


def refusals_of(document: Any, accepted: Format = DEFAULT_FORMAT) -> list[str]:
    return [issue.message for issue in issues_of(document, accepted)]


# What hypothesis makes of the table.

TEXTS: Final = st.sampled_from(["", " ", "x", "Zoë", "\u202e", "star", "a, b"]) | st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5
)
NUMBERS: Final = (
    st.integers(-1, 12)
    | st.integers(1990, 2030)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
UNKNOWN: Final = st.none() | st.lists(st.integers(0, 3), max_size=2) | st.just({"record": 1})


def values_of(kind: str, texts: st.SearchStrategy[str] = TEXTS) -> st.SearchStrategy[Any]:
    """Whatever a field of this kind may hold, odd values as well."""
    if kind == "flag":
        return st.booleans()
    if kind == "layout":
        return st.sampled_from([*LAYOUTS])
    if kind == "colours":
        colours = st.sampled_from(["#000", "#008CFF", "#12345678"])
        return st.lists(st.none() | colours, max_size=3)
    if kind == "texts":
        return st.lists(st.none() | texts, max_size=3)
    if kind == "slices":
        return st.lists(st.none() | objects_of(SLICE, texts), max_size=3)
    if kind == "dateRange":
        return objects_of(DATE_RANGE, texts)
    return NUMBERS if kind in ("number", "month") or " to " in kind else texts


def objects_of(
    fields: dict[str, str], texts: st.SearchStrategy[str] = TEXTS
) -> st.SearchStrategy[dict[str, Any]]:
    known = {name: st.none() | values_of(kind, texts) for name, kind in fields.items()}
    return st.fixed_dictionaries({}, optional={**known, "unknown": UNKNOWN, "record": UNKNOWN})


def sections_of(name: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"column": st.sampled_from([0, 1, 1.0])},
        optional={
            "order": st.none() | NUMBERS,
            "name": TEXTS,
            "items": st.none() | st.lists(objects_of(SECTIONS[name]), max_size=2),
            "layoutMode": UNKNOWN,
        },
    )


DOCUMENTS = st.fixed_dictionaries(
    {
        "header": objects_of(HEADER),
        "sections": st.fixed_dictionaries(
            {}, optional={name: sections_of(name) for name in SECTIONS}
        ),
    },
    optional={"title": st.none() | TEXTS, "style": st.none() | objects_of(STYLE)},
)


def iter_files(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The name and content of each file of an archive."""
    with tarfile.open(archive) as opened:
        for member in filter(tarfile.TarInfo.isfile, opened):
            content = opened.extractfile(member)
            assert content is not None
            yield Path(member.name).name, content.read()


def with_each_field(section_type: str) -> dict[str, Any]:
    """A resume with an item for each field of the type, which has that field alone."""
    dates = {"fromYear": 2001, "fromMonth": 1, "isOngoing": True}
    odd = {"bullets": ["x"], "tags": ["x"], "data": [{"title": "x", "value": 1}]}
    odd |= {"dateRange": dates, "level": 2, "pieces": 3}
    fields = SECTION_TYPES[section_type].fields
    return with_section(section_type, *({field: odd.get(field, "x")} for field in fields))
