"""Resumes as clients write them, requests of the API with them, and what takes these, however it is run."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Protocol

from resumes.store import Store

MAX_BYTES = 4_096
"""The largest resume that the tested service accepts; the setting is its own."""


class Look(StrEnum):
    """What a resume has in it."""

    PLAIN = "plain"
    UNICODE = "unicode"
    WITH_HIDDEN_FIELDS = "with hidden fields"
    WITH_WARNINGS = "with warnings"
    IN_THREE_COLUMNS = "in three columns"
    AS_JSON_RESUME = "as JSON Resume"


@dataclass(frozen=True, slots=True)
class Body:
    """A resume as it is sent. Its number is in its name, so that none has the name of another."""

    number: int
    raw: bytes
    name: str
    title: str
    """What it is called in a list."""

    view: dict[str, Any] | None
    """What GET gives back; None for a JSON Resume, which only files may be."""

    warns: bool = False

    def __repr__(self) -> str:
        return f"<{self.name}>"


def a_body(number: int, look: Look) -> Body:
    """The resume of this number; one of another look has other bytes."""
    document, hidden = _document(number, look)
    sent = _with(document, hidden)
    raw = json.dumps(sent, ensure_ascii=False).encode()
    if look is Look.AS_JSON_RESUME:
        name = document["basics"]["name"]
        return Body(number, raw, name, title=name, view=None)
    name = document["header"]["name"]
    title = document.get("title", f"{name} Resume")
    return Body(number, raw, name, title, document, warns=look is Look.WITH_WARNINGS)


def _document(number: int, look: Look) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is shown of the resume, and what is sent besides."""
    header: dict[str, Any] = {"name": f"Person {number}", "email": "person@example.org"}
    text = {"column": 0, "items": [{"text": f"What {number} has done."}]}
    shown: dict[str, Any] = {"header": header, "sections": {"summaries": text}}
    match look:
        case Look.PLAIN:
            return shown, {}
        case Look.UNICODE:
            header["name"] = f"Zoë 李雷 عمر 🙂 {number}"
            skills = {"column": 1, "order": 2.5, "items": [{"title": "Ω", "tags": ["ñ", "\\"]}]}
            sections = {"skills": skills, "educations": {"column": 0, "items": []}}
            return shown | {"sections": sections | {"summaries": text}, "title": "Ünï “cv”"}, {}
        case Look.WITH_HIDDEN_FIELDS:
            return shown, {"header": {"phone": "", "website": None}, "title": None}
        case Look.WITH_WARNINGS:
            header["hobby"] = "chess"
            return shown | {"nickname": "P"}, {"isImported": False}
        case Look.IN_THREE_COLUMNS:
            style = {"layout": "multicolumn", "colors": ["#112233"], "fontSize": 1.5}
            third = {"column": 2, "name": "Third", "items": [{"title": "Chess"}]}
            sections = {"summaries": text, "interests": third}
            return shown | {"sections": sections, "style": style, "title": f"CV {number}"}, {}
        case Look.AS_JSON_RESUME:
            return {"basics": {"name": header["name"], "summary": f"By {number}."}}, {}


def _with(document: dict[str, Any], hidden: dict[str, Any]) -> dict[str, Any]:
    merged = dict(document)
    for name, value in hidden.items():
        merged[name] = document[name] | value if isinstance(value, dict) else value
    return merged


RESUMES: Final = "/api/v1/resumes"


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the holder of a key."""

    method: str = "GET"
    path: str = RESUMES
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def headers_with(self, secret: str) -> dict[str, str]:
        """All its headers; its own replace those that every request has."""
        usual = {"Authorization": f"Bearer {secret}"}
        if self.method == "POST":
            usual["Content-Type"] = "application/json"
        return usual | dict(self.headers)


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, headers by names in small letters, and the JSON of the body."""

    status: int
    headers: Mapping[str, str]
    json: Any


def creating(body: bytes, once: str | None = None) -> Request:
    """Creates the resume, under an Idempotency-Key if one is given."""
    return Request("POST", body=body, headers={} if once is None else {"Idempotency-Key": once})


def listing(cursor: str, limit: int | None) -> Request:
    """A page; without a limit of the usual size."""
    query = f"cursor={cursor}" if limit is None else f"cursor={cursor}&limit={limit}"
    return Request(path=f"{RESUMES}?{query}")


def of_one(method: str, resume_id: str) -> Request:
    """Shows a resume, or deletes it."""
    return Request(method, f"{RESUMES}/{resume_id}")


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that is refused whatever is stored, with what its error begins with.

    `needs_listing`: on a plan without listing that is what is told of first.
    """

    status: int
    error: str
    request: Request
    needs_listing: bool = False


def _bad_resume(error: str, **top_level: Any) -> Refused:
    good: dict[str, Any] = {"header": {"name": "A"}, "sections": {}}
    document = {name: value for name, value in (good | top_level).items() if value is not _ABSENT}
    return Refused(400, error, creating(json.dumps(document).encode()))


def _bad_section(error: str, section_type: str = "skills", **section: Any) -> Refused:
    sections = {section_type: {"column": 0} | section}
    return _bad_resume(f'Invalid section "{section_type}": {error}', sections=sections)


def _bad_json(body: bytes, error: str = "Invalid JSON") -> Refused:
    return Refused(400, error, creating(body))


def _bad_headers(status: int, error: str = "", **headers: str) -> Refused:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    good = b'{"header": {}, "sections": {}}'
    return Refused(status, error, Request("POST", body=good, headers=named))


def _bad_query(query: str, error: str) -> Refused:
    return Refused(400, error, Request(path=f"{RESUMES}?{query}"), needs_listing=True)


_ABSENT: Final = object()
_NO_KEY: Final = "Invalid API key"
_NO_HEADER: Final = "Missing required field: header (must be an object)"
_YEAR: Final = {"dateRange": {"fromYear": "2020"}}

REFUSED: Final[Mapping[str, Refused]] = {
    "no header": _bad_resume(_NO_HEADER, header=_ABSENT),
    "header is null": _bad_resume(_NO_HEADER, header=None),
    "no sections": _bad_resume("Missing required field: sections", sections=_ABSENT),
    "email is a number": _bad_resume("Invalid field header.email", header={"email": 5}),
    "colour is a word": _bad_resume("Invalid field style.colors[0]", style={"colors": ["red"]}),
    "cover letter": _bad_resume("Cover letters cannot be created", type="Cover Letter"),
    "name is a number": _bad_section("name must be a string", "experiences", name=5),
    "year is a text": _bad_section(
        "items[0].dateRange.fromYear must be a number", "experiences", items=[_YEAR]
    ),
    "column is true": _bad_section("column", column=True),
    "third of two columns": _bad_section("column", column=2),
    "unknown section": _bad_section("unknown section type (did you mean educations", "education"),
    "cut short": _bad_json(b'{"header": {'),
    "byte order mark": _bad_json(b'{"header": {},\xef\xbb\xbf "sections": {}}'),
    "not UTF-8": _bad_json(b'{"header": {"name": "\xff"}, "sections": {}}'),
    "not a number": _bad_json(b'{"header": {}, "sections": {}, "x": NaN}'),
    "a key twice": _bad_json(b'{"header": {}, "header": {}, "sections": {}}'),
    "lone surrogate": _bad_json(b'{"header": {"name": "\\ud800"}, "sections": {}}'),
    "U+0000": _bad_json(b'{"header": {"name": "a\\u0000b"}, "sections": {}}'),
    "too deep": _bad_json(b'{"header": {}, "sections": {}, "x": %b1%b}' % (b"[" * 40, b"]" * 40)),
    "integer too large": _bad_json(b'{"header": {}, "sections": {}, "x": 9223372036854775808}'),
    "a list": _bad_json(b"[]", "The resume must be a JSON object"),
    "too large": Refused(413, "Resume too large", creating(b" " * (MAX_BYTES + 1))),
    "text": _bad_headers(415, Content_Type="text/plain"),
    "compressed": _bad_headers(415, Content_Encoding="gzip"),
    "key for once too long": _bad_headers(
        400, "Invalid Idempotency-Key", Idempotency_Key="k" * 256
    ),
    "key for once with a blank": _bad_headers(
        400, "Invalid Idempotency-Key", Idempotency_Key="a b"
    ),
    "no such key": _bad_headers(401, _NO_KEY, Authorization=f"Bearer enh_live_{'x' * 64}"),
    "malformed key": _bad_headers(401, _NO_KEY, Authorization="Bearer"),
    "limit is a word": _bad_query("limit=ten", "Invalid limit"),
    "two limits": _bad_query("limit=1&limit=2", "Invalid limit"),
    "malformed cursor": _bad_query("cursor=0", "Invalid cursor"),
    "malformed id": Refused(
        404, "Resume not found", Request(path=f"{RESUMES}/0"), needs_listing=True
    ),
    "no such method": Refused(405, "", Request("PUT", body=b"{}")),
    "no such path": Refused(404, "", Request(path="/api/v1/letters")),
}
"""By what is wrong with them."""


class Reach(Protocol):
    """One installation: a store, an API over it, and a watched folder."""

    root: Path
    """The watched folder."""

    @property
    def store(self) -> Store:
        """The store as it is open now, for what people do at the command line."""

    def now_us(self) -> int:
        """The time as the product has it."""

    def pass_s(self, seconds: float) -> None:
        """So much later it is, or the clock was set back; where it is real, nothing is done."""

    def ask(self, request: Request, secret: str) -> Answer:
        """The answer of the API to the holder of this key."""

    def lose(self, request: Request, secret: str, *, is_late: bool) -> None:
        """The request was sent, and the server ended before anybody had its answer.

        `is_late`: when there was an answer. Another server is there now.
        """

    def drain(self) -> None:
        """An importer took all that it could, and ended."""

    def drain_killed(self, at: int) -> None:
        """An importer was killed on its way, later the larger `at` is; or had ended before."""

    def copy_store(self) -> None:
        """The store was copied to a new place, and all of the service uses that one."""

    def back_up(self) -> Path:
        """The store of this moment is in a file."""

    def restore(self, backup: Path) -> bool:
        """All of the service uses the store that is in the file; whether in its old place, so that
        ids go on above those that were given there."""

    def restart(self) -> None:
        """The server ended in good order, and is there again."""
