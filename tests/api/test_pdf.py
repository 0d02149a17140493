"""Resumes as PDF, and as Word documents, over HTTP (docs/api.md, PDF)."""

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import httpx
import pypdf
import pytest

from resumes.analyzer.schema import LAYOUTS
from resumes.rendering import Renderer
from tests.support.api.bombs import valid
from tests.support.api.builders import RESUMES, Client, a_resume, error_of
from tests.support.api.serving import Place, serve_here
from tests.support.pdfs import Pdf
from tests.support.waiting import drawing_children, wait_until


def get(
    client: Client, resume_id: str, query: str = "", *, kind: str = "pdf", **headers: str
) -> httpx.Response:
    given = {"Authorization": f"Bearer {client.key}"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    path = f"{RESUMES}/{resume_id}/{kind}" + (f"?{query}" if query else "")
    return client.request("GET", path, headers=given)


def created(client: Client, *names: str, **top_level: Any) -> str:
    resume_id: str = client.create(a_resume(*names, **top_level)).json()["id"]
    return resume_id


MEDIA_TYPES = {
    "pdf": "application/pdf",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}


def text_of(answer: httpx.Response, kind: str) -> str:
    """All that the file says, with its properties."""
    if kind == "pdf":
        pdf = Pdf(answer.content)
        return f"{pdf.text} {pdf.reader.metadata}"
    with zipfile.ZipFile(BytesIO(answer.content)) as archive:
        return "".join(archive.read(name).decode() for name in archive.namelist())


def width_of(answer: httpx.Response) -> int:
    assert (answer.status_code, answer.content[:5]) == (200, b"%PDF-")
    width: float = pypdf.PdfReader(BytesIO(answer.content)).pages[0].mediabox.width
    return round(width)


@pytest.mark.parametrize(("kind", "media_type"), MEDIA_TYPES.items())
def test_success_is_the_bytes_of_a_file_under_the_name_of_the_list(
    client: Client, kind: str, media_type: str
) -> None:
    resume_id = created(client)

    answer = get(client, resume_id, kind=kind)

    assert answer.status_code == 200
    assert "Ada Example" in text_of(answer, kind)
    headers, name = dict(answer.headers), f"AdaExampleResume.{kind}"
    assert headers["content-type"] == media_type
    assert headers["content-length"] == str(len(answer.content))
    assert headers["content-disposition"] == (
        f"attachment; filename=\"{name}\"; filename*=UTF-8''{name}"
    )
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "private, no-cache"
    assert re.fullmatch('"[0-9a-f]{32}"', headers["etag"])
    assert headers["x-request-id"]
    assert get(client, resume_id, kind=kind).content == answer.content
    known = get(client, resume_id, kind=kind, If_None_Match=headers["etag"])
    assert (known.status_code, known.content, known.headers["etag"]) == (304, b"", headers["etag"])
    (other,) = MEDIA_TYPES.keys() - {kind}
    assert get(client, resume_id, kind=other).headers["etag"] != headers["etag"]
    metrics = client.request("GET", "/metrics").text
    assert re.search(rf'requests_total\{{operation="{kind}",status="200"\}} [1-9]', metrics)


@pytest.mark.parametrize("name", ["Åsa Björnhövda", "禹书瑶", 'A "B" \\ C; D', "Ada\r\nX: y"])
def test_any_name_is_a_file_name(client: Client, name: str) -> None:
    resume_id = created(client, name)
    (listed,) = client.page().json()["resumes"]

    said = get(client, resume_id).headers["content-disposition"]

    found = re.fullmatch(
        r"""attachment; filename="([\x20-\x7e]*)"; filename\*=UTF-8''(\S+)""", said
    )
    assert found is not None
    assert unquote(found[2]) == listed["filename"]
    assert found[1] == (listed["filename"] if listed["filename"].isascii() else "Resume.pdf")


def test_the_house_style_of_the_account_is_shown_unless_it_is_refused(
    client: Client, place: Place
) -> None:
    resume_id = created(client)
    plain = get(client, resume_id)
    folder = place.settings.home / "branding" / client.account
    folder.mkdir(parents=True)
    (folder / "branding.toml").write_text('name = "Example Service"', encoding="ascii")
    (folder / "logo.svg").write_text("no picture", encoding="ascii")

    branded = get(client, resume_id)

    assert "Example Service" in Pdf(branded.content).text
    assert branded.headers["etag"] != plain.headers["etag"]
    assert get(client, resume_id, if_none_match=branded.headers["etag"]).status_code == 304
    assert get(client, resume_id, "brand=false").content == plain.content
    assert "Unknown value for brand: 0" in get(client, resume_id, "brand=0").text
    other = place.client()
    assert "Example Service" not in Pdf(get(other, created(other)).content).text


def test_layout_paper_and_anonymous_are_chosen(client: Client) -> None:
    resume_id = created(client, style={"layout": "timeline", "isLetterSize": True})
    plain = get(client, resume_id)

    assert width_of(plain) == width_of(get(client, resume_id, "paper=letter")) == 612
    assert width_of(get(client, resume_id, "paper=a4&layout=single")) == 595
    assert get(client, resume_id, "layout=timeline").content == plain.content
    assert get(client, resume_id, "layout=classic").content != plain.content
    for kind in MEDIA_TYPES:
        plain = get(client, resume_id, kind=kind)
        hidden = get(client, resume_id, "anonymous=true", kind=kind)
        name = f"Candidate{resume_id[-3:].upper()}Resume.{kind}"
        assert name in hidden.headers["content-disposition"]
        assert hidden.headers["etag"] != plain.headers["etag"]
        assert f"Candidate {resume_id[-3:].upper()}" in text_of(hidden, kind)
        assert "Ada Example" not in text_of(hidden, kind)
        assert get(client, resume_id, "anonymous=false", kind=kind).content == plain.content


def test_a_wrong_query_is_400_also_of_what_is_not_there(client: Client) -> None:
    for query, message, *kind in (
        ("layout=fancy", "Unknown layout: fancy. Layouts: double, ivyleague,"),
        ("layout=", "Unknown layout: . Layouts:"),
        ("layout=Double", "Unknown layout: Double. Layouts:"),
        ("paper=a3", "Unknown paper: a3. Use a4 or letter"),
        ("paper", "Unknown paper: . Use a4 or letter"),
        ("anonymous=1", "Unknown value for anonymous: 1. Use true or false"),
        ("anonymous", "Unknown value for anonymous: . Use true or false"),
        ("size=3", "Unknown parameter: size. Use layout, paper, anonymous or brand"),
        ("layout=single&layout=double", "layout is repeated"),
        ("paper=a4&%70aper=a4", "paper is repeated"),
        ("layout=single", "Unknown parameter: layout. Use anonymous or brand", "docx"),
        ("anonymous=1", "Unknown value for anonymous: 1. Use true or false", "docx"),
    ):
        answer = get(client, "0" * 24, query, kind=kind[0] if kind else "pdf")

        assert answer.status_code == 400
        assert error_of(answer)["error"].startswith(message)


def test_a_child_is_started_for_the_first_pdf_outlives_signals_and_a_kill_and_ends_with_its_server(
    a_place: Callable[..., Place],
) -> None:
    others = drawing_children()
    place = a_place()
    client = place.client()
    resume_id = created(client)
    assert drawing_children() <= others  # none before the first PDF
    first = get(client, resume_id)
    (child,) = drawing_children() - others

    # Ctrl-C and the end of a terminal reach it, too.
    os.kill(child, signal.SIGINT)
    os.kill(child, signal.SIGHUP)
    assert get(client, resume_id, "paper=letter").status_code == 200
    assert drawing_children() - others == {child}
    os.kill(child, signal.SIGKILL)
    again = get(client, resume_id)
    assert (again.status_code, again.content) == (200, first.content)

    place.stop()

    wait_until(lambda: drawing_children() <= others)


def test_who_has_it_gets_304_and_nothing_is_drawn(
    stuck: Callable[..., tuple[Place, Client, str]],
) -> None:
    _, client, resume_id = stuck()
    tag = get(client, resume_id, If_None_Match="*").headers["etag"]
    bare = tag.strip('"')
    for known in (
        *(tag, f"W/{tag}", f'"x", W/{tag} , "y"', "*", f'"x",{tag}'),
        *(f'"{bare}-gzip"', f'W/"{bare}-gzip"', f'"x-gzip", "{bare}-br"'),
    ):
        answer = get(client, resume_id, If_None_Match=known)
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == tag
        assert answer.headers["cache-control"] == "private, no-cache"
        assert "content-type" not in answer.headers
    for child in drawing_children():
        os.kill(child, signal.SIGCONT)
    others = ('"x"', bare, "", f'"{bare}-x"', f'"gzip-{bare}"', f'"{bare[:-1]}-gzip"', '"a,*,b"')
    for other in others:
        assert get(client, resume_id, If_None_Match=other).status_code == 200


def test_no_pdf_is_kept_on_a_disk(
    a_place: Callable[..., Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    client = a_place().client()
    assert get(client, created(client)).content[:5] == b"%PDF-"

    # In a process of its own: to close a file of the store here would end its locks.
    search = ["grep", "-rl", "%PDF-", str(tmp_path)]
    found = subprocess.run(search, capture_output=True, text=True, check=False)

    assert (found.returncode, found.stdout, found.stderr) == (1, "", "")


def test_the_tag_is_another_for_another_resume_choice_or_template(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = created(client), created(client)
    queries = ("", "layout=single", "paper=letter", "anonymous=true")
    tags = [get(client, mine, query).headers["etag"] for query in queries]
    tags.append(get(client, other).headers["etag"])
    monkeypatch.setattr("server.rendering_route.version", lambda folders: b"another template")
    tags.append(get(client, mine).headers["etag"])

    assert len(set(tags)) == len(tags)
    assert get(client, mine, If_None_Match=tags[0]).status_code == 200


@pytest.mark.parametrize("kind", ["pdf", "docx"])
def test_without_a_key_it_is_401_by_another_method_405_and_without_reading_403(
    client: Client, free_client: Client, kind: str
) -> None:
    resume_id = created(free_client)
    path = f"{RESUMES}/{resume_id}/{kind}"

    assert client.request("GET", path, headers=[]).status_code == 401
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        answer = client.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    for query in ("", "layout=fancy"):
        refused = get(free_client, resume_id, query, kind=kind)
        assert error_of(refused) == {"error": "API access requires a business plan", "status": 403}


def test_what_is_not_there_or_another_accounts_is_404(client: Client, place: Place) -> None:
    other = place.client()
    foreign = created(other)
    gone = created(client)
    client.delete(gone)

    for resume_id in (foreign, gone, "0" * 24, "x"):
        for kind in ("pdf", "docx"):
            assert get(client, resume_id, kind=kind).status_code == 404
    assert get(client, "upload", kind="docx").status_code == 404
    assert error_of(get(client, foreign))["error"] == "Resume not found"
    assert client.request("GET", f"{RESUMES}/{foreign}/pdf/x").status_code == 404
    assert client.request("GET", f"{RESUMES}//pdf").status_code == 404


@pytest.mark.parametrize(("kind", "what"), [("pdf", "PDF"), ("docx", "Word document")])
def test_what_has_too_much_text_is_422(client: Client, kind: str, what: str) -> None:
    resume_id = client.create(body := valid(1024 * 1024)).json()["id"]

    answer = get(client, resume_id, kind=kind)

    assert client.get(resume_id).json() == json.loads(body)
    assert answer.status_code == 422
    assert re.fullmatch(
        rf"Too long for a {what}: the resume has [\d,]+ characters; the limit is 200,000",
        error_of(answer)["error"],
    )


def test_with_a_character_that_no_font_has_it_is_tagged_and_the_log_names_the_resume_alone(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    resume_id = created(client, "Ada \U0003fff0 Lovelace")  # which no font will ever have

    pdf = Pdf(get(client, resume_id).content)

    assert b"pdfuaid" not in pdf.streams
    assert b"/Marked true" in pdf.body
    assert pdf.elements()[0].tag == "H1"
    (line,) = [one for one in caplog.messages if "No installed font" in one]
    assert resume_id in line
    assert not re.search("\U0003fff0|3fff0|Lovelace", caplog.text)


@pytest.fixture
def stuck(a_place: Callable[..., Place]) -> Iterator[Callable[..., tuple[Place, Client, str]]]:
    """Makes a place with a resume whose child stands still; it goes on in the end."""
    others = drawing_children()

    def make(**changes: Any) -> tuple[Place, Client, str]:
        place = a_place(**changes)
        client = place.client()
        resume_id = created(client)
        assert get(client, resume_id).status_code == 200
        for child in drawing_children() - others:
            os.kill(child, signal.SIGSTOP)
        return place, client, resume_id

    yield make
    for child in drawing_children() - others:
        os.kill(child, signal.SIGCONT)


def test_what_takes_too_long_is_504_and_the_next_is_drawn(
    stuck: Callable[..., tuple[Place, Client, str]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = list[Renderer]()

    def make(folders: Sequence[Path], *, timeout_s: float) -> Renderer:
        assert timeout_s == 45
        made.append(Renderer(folders, timeout_s=timeout_s))
        return made[0]

    monkeypatch.setattr("server.app.Renderer", make)
    _, client, resume_id = stuck(pdf_timeout_s=45)
    made[0].timeout_s = 0.05

    answer = get(client, resume_id, "layout=single")

    assert error_of(answer) == {
        "error": "PDF generation timeout. Please try again later.",
        "status": 504,
    }
    request_id = answer.headers["X-Request-Id"]
    assert f"for request {request_id}: Rendering took longer than 0.05 s" in caplog.text
    made[0].timeout_s = 45
    assert get(client, resume_id, "layout=single").status_code == 200
    long_ago = SimpleNamespace(monotonic=lambda: time.monotonic() - 45)  # with all that waited
    monkeypatch.setattr("server.rendering_route.time", long_ago)
    assert get(client, resume_id, "layout=single").status_code == 504
    assert "Rendering did not start within 45 s" in caplog.text


def test_others_are_answered_while_one_is_drawn_and_pdfs_wait_for_their_turn(
    stuck: Callable[..., tuple[Place, Client, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, client, resume_id = stuck(pdf_timeout_s=120)
    tag = get(client, resume_id, If_None_Match="*").headers["etag"]
    too_long = client.create(valid(1024 * 1024)).json()["id"]
    others = drawing_children()
    answers = dict[str, httpx.Response]()

    def ask(query: str, which: str = resume_id) -> threading.Thread:
        def run() -> None:
            answers[query] = get(Client(place.url, client.key), which, query)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    class Share(float):
        """Counts the requests that wait for their turn."""

        waiting = 0

        def __mul__(self, timeout_s: float) -> float:
            Share.waiting += 1
            return float(self) * timeout_s

    monkeypatch.setattr("server.rendering_route.WAIT_SHARE", Share(0.75))
    threads = [ask(f"layout={layout}") for layout in LAYOUTS]
    threads.append(ask("paper=letter", too_long))
    wait_until(lambda: Share.waiting == len(threads))
    monkeypatch.setattr("server.rendering_route.WAIT_SHARE", 0.001)

    refused = get(client, resume_id, "paper=a4")

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert error_of(refused)["error"].startswith("Too many PDFs are being generated")
    assert get(client, resume_id, If_None_Match=tag).status_code == 304
    assert [get(client, each).status_code for each in ("0" * 24, too_long)] == [404, 503]
    assert client.get(resume_id).status_code == client.page().status_code == 200
    assert client.create(a_resume()).status_code == 201
    assert not answers
    for child in others:  # one of an earlier test may have ended
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGCONT)
    for thread in threads:
        thread.join(60)
    assert answers.pop("paper=letter").status_code == 422
    assert [answer.status_code for answer in answers.values()] == [200] * len(LAYOUTS)


def test_the_tag_is_another_when_other_section_types_are_admitted(tmp_path: Path) -> None:
    resume = a_resume(sections={"hobbies": {"column": 0, "items": [{"what": "Chess"}]}})
    hobbies = frozenset({"hobbies"})
    with serve_here(tmp_path, extra_section_types=hobbies) as place:
        key, url = place.key("ada"), place.settings.database
        client = Client(place.url, key)
        resume_id = client.create(resume).json()["id"]
        first = get(client, resume_id)
    with serve_here(tmp_path, url, extra_section_types=frozenset()) as place:
        client = Client(place.url, key)
        second = get(client, resume_id)
    assert first.content != second.content
    assert first.headers["etag"] != second.headers["etag"]
