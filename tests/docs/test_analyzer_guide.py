"""What docs/guides/analyzer.md says, and the example analyzer."""

import json
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import httpx
import pypdf
import pytest

from tests.support.api.builders import RESUMES, Client, error_of
from tests.support.api.serving import Place, serve_here

pytestmark = pytest.mark.docs

REPOSITORY = Path(__file__).parents[2]
SAMPLE = REPOSITORY / "sample_data" / "java-developer-porto-compact-en.json"
EXAMPLE = (sys.executable, str(REPOSITORY / "docs" / "examples" / "analyzer.py"), "{file}")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server with the example as its analyzer."""
    with serve_here(tmp_path_factory.mktemp("home"), analyzer=EXAMPLE) as place:
        yield place


@pytest.fixture
def client(place: Place) -> Iterator[Client]:
    yield (client := place.client())
    client.close()


def upload(client: Client, content: bytes, name: str = "ada.pdf") -> httpx.Response:
    return client.request("POST", f"{RESUMES}/upload", files={"file": (name, content)})


def test_the_example_reads_the_pdf_of_a_sample(client: Client) -> None:
    sent = json.loads(SAMPLE.read_text())
    resume_id = client.create(sent).json()["id"]
    pdf = client.request("GET", f"{RESUMES}/{resume_id}/pdf?layout=single").content

    answer = upload(client, pdf)

    assert (answer.status_code, answer.json().keys()) == (200, {"id"})
    found = client.get(answer.json()["id"]).json()
    for name in ("name", "email", "phone"):
        assert found["header"][name] == sent["header"][name]
    [summary] = [
        item["text"]
        for item in found["sections"]["summaries"]["items"]
        if "quiet weekends" in item["text"]
    ]
    assert "Banco Moinho Novo" not in summary
    parts = {item["title"]: item["description"] for item in found["sections"]["customs"]["items"]}
    assert "Banco Moinho Novo" in parts["Experience"]
    assert parts.keys() >= {"Experience", "Education", "Skills"}


def test_the_example_says_what_it_cannot_read(client: Client) -> None:
    empty, locked = BytesIO(), BytesIO()
    with pypdf.PdfWriter() as writer:
        writer.add_blank_page(100, 100)
        writer.write(empty)
        writer.encrypt("secret", algorithm="RC4-128")
        writer.write(locked)
    for content, name, words in (
        (empty.getvalue(), "a.pdf", "The PDF has no text; it may be a scan"),
        (locked.getvalue(), "a.pdf", "The PDF has a password. Remove it, and send the file again"),
        (b"%PDF-1.7 damaged", "a.pdf", "The file is not a PDF, or is damaged"),
        (b"PK\3\4 Word", "a.docx", "This analyzer reads only PDFs. Send the resume as a PDF"),
    ):
        refused = error_of(upload(client, content, name))
        assert refused["status"] == 422
        assert refused["error"].endswith(words), refused
