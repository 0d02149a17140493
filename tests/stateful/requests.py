"""Resumes as clients write them, and requests of the API with them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

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
        if self.body:
            usual["Content-Type"] = "application/json"
        return usual | dict(self.headers)


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, headers by names in small letters, and the JSON of the body."""

    status: int
    headers: Mapping[str, str]
    json: Any


def creating(body: bytes, once: str | None = None, label: str | None = None) -> Request:
    """Creates the resume, under an Idempotency-Key if one is given, and with the label."""
    path = RESUMES if label is None else f"{RESUMES}?label={label}"
    return Request("POST", path, body, {} if once is None else {"Idempotency-Key": once})


def listing(cursor: str, limit: int | None) -> Request:
    """A page; without a limit of the usual size."""
    query = f"cursor={cursor}" if limit is None else f"cursor={cursor}&limit={limit}"
    return Request(path=f"{RESUMES}?{query}")


def of_label(label: str) -> Request:
    """The resumes of a label."""
    return Request(path=f"{RESUMES}?limit=100&label={label}")


def of_one(method: str, resume_id: str, body: bytes = b"", **headers: str) -> Request:
    """Shows a resume, updates or deletes it."""
    return Request(method, f"{RESUMES}/{resume_id}", body, headers)
