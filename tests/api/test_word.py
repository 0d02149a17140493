"""Resumes as Word documents over HTTP (docs/api.md, Word)."""

import re
import zipfile
from io import BytesIO

import httpx

from tests.support.api.bombs import valid
from tests.support.api.builders import RESUMES, Client, a_resume, error_of

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def get(client: Client, resume_id: str, query: str = "", **headers: str) -> httpx.Response:
    given = {"Authorization": f"Bearer {client.key}"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    return client.request("GET", f"{RESUMES}/{resume_id}/docx{query}", headers=given)


def created(client: Client, *names: str) -> str:
    resume_id: str = client.create(a_resume(*names)).json()["id"]
    return resume_id


def test_a_document_is_answered_as_a_pdf_is(client: Client) -> None:
    resume_id = created(client)

    answer = get(client, resume_id)

    with zipfile.ZipFile(BytesIO(answer.content)) as archive:
        assert b"Ada Example" in archive.read("word/document.xml")
    headers = answer.headers
    assert headers["content-type"] == MEDIA_TYPE
    assert headers["content-disposition"] == (
        "attachment; filename=\"AdaExampleResume.docx\"; filename*=UTF-8''AdaExampleResume.docx"
    )
    assert headers["cache-control"] == "private, no-cache"
    assert get(client, resume_id).content == answer.content
    known = get(client, resume_id, If_None_Match=headers["etag"])
    assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", headers["etag"])
    pdf = client.request("GET", f"{RESUMES}/{resume_id}/pdf")
    assert pdf.headers["etag"] != headers["etag"]
    foreign = get(client, created(client, "禹书瑶")).headers["content-disposition"]
    assert 'filename="Resume.docx"' in foreign
    metrics = client.request("GET", "/metrics").text
    assert re.search(r'requests_total\{operation="docx",status="200"\} [1-9]', metrics)


def test_an_anonymous_document_has_another_name_and_tag(client: Client) -> None:
    resume_id = created(client)

    hidden = get(client, resume_id, "?anonymous=true")

    alias = f"Candidate{resume_id[-3:].upper()}"
    assert f"{alias}Resume.docx" in hidden.headers["content-disposition"]
    assert hidden.headers["etag"] != get(client, resume_id).headers["etag"]
    with zipfile.ZipFile(BytesIO(hidden.content)) as archive:
        parts = [archive.read(name) for name in archive.namelist()]
    assert not any(b"Ada Example" in part for part in parts)
    assert get(client, resume_id, "?anonymous=false").content == get(client, resume_id).content


def test_what_cannot_be_answered_is_refused_as_for_a_pdf(
    client: Client, free_client: Client
) -> None:
    resume_id = created(client)
    for query, message in (
        ("?layout=single", "Unknown parameter: layout. Use anonymous or brand"),
        ("?anonymous=1", "Unknown value for anonymous: 1. Use true or false"),
    ):
        refused = get(client, "0" * 24, query)
        assert (refused.status_code, error_of(refused)["error"]) == (400, message)
    assert get(client, "0" * 24).status_code == 404
    assert client.request("GET", f"{RESUMES}/upload/docx").status_code == 404
    path = f"{RESUMES}/{resume_id}/docx"
    assert client.request("GET", path, headers=[]).status_code == 401
    answer = client.request("POST", path)
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    refused = get(free_client, created(free_client))
    assert error_of(refused)["error"] == "API access requires a business plan"
    too_long = get(client, client.create(valid(1024 * 1024)).json()["id"])
    assert too_long.status_code == 422
    assert error_of(too_long)["error"].startswith("Too long for a Word document: the resume has ")
