"""PDFs of resumes that name what is none of theirs."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from resumes.analyzer.schema import LAYOUTS
from resumes.rendering.child import FOLDER
from resumes.rendering.fonts import font_folders
from tests.chaos.campaign import Figures
from tests.chaos.strace import traced
from tests.support.api import load
from tests.support.api.load import RESUMES, Answer, a_request
from tests.support.api.scenes import Scene, Server
from tests.support.documents import with_section
from tests.support.pdfs import SAMPLES
from tests.support.waiting import drawing_children

HOSTILE: Final = (
    '#read("/etc/passwd")', '#image("/etc/hostname")', '#include "/proc/self/environ"', "$x$",
    '#import "@preview/cetz:0.3.0": *', "file:///etc/passwd", "/etc/passwd", "../../../../etc/passwd",
)  # fmt: skip


def create(scene: Scene, server: Server, document: Any) -> str:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    answer = load.call(server.url, a_request(scene.key, "POST", body=body))
    assert answer.status == 201, answer.body
    resume_id: str = answer.json["id"]
    return resume_id


def draw(scene: Scene, server: Server, resume_id: str, layout: str = "double") -> Answer:
    path = f"{RESUMES}/{resume_id}/pdf?layout={layout}"
    return load.call(server.url, a_request(scene.key, path=path))


def drawing_child(server: Server) -> int | None:
    """Return the process that draws for the server; None while there is none."""
    return next(iter(drawing_children(server.process.pid)), None)


@pytest.mark.chaos(
    38,
    fault="a PDF is rendered from fields that contain file names, package names and URLs",
    promise="the renderer opens no sockets, and no files except its template and fonts",
)
def test_the_renderer_opens_only_its_template_and_fonts(tmp_path: Path, figures: Figures) -> None:
    """A client requests PDFs in all layouts, for each sample resume and for resumes with Typst
    functions and paths in every field. Meanwhile, strace records the renderer's file and network
    calls."""
    scene, calls = Scene(tmp_path / "home", tmp_path / "logs"), tmp_path / "calls"
    documents: list[Any] = [path.read_bytes() for path in SAMPLES.values()]
    for text in HOSTILE:
        item = dict.fromkeys(("position", "workplace", "link", "companyLogo", "text"), text)
        document = with_section("experiences", item)
        document["header"] = dict.fromkeys(("name", "title", "website", "photo"), text)
        documents.append(document)
    with scene.served() as server:
        ids = [create(scene, server, document) for document in documents]
        assert draw(scene, server, ids[0]).status == 200
        child = drawing_child(server)
        assert child is not None
        with traced(child, "%file,%network", calls):
            drawn = [draw(scene, server, one, layout) for one in ids for layout in LAYOUTS]
        assert drawing_child(server) == child
    written = calls.read_text(errors="replace")
    opened = re.findall(r' open(?:at|at2)?\((?:AT_FDCWD, )?"([^"]*)"[^=]*= \d', written)
    own = (FOLDER, *font_folders(scene.home))
    others = [path for path in opened if not any(Path(path).is_relative_to(one) for one in own)]
    sockets = re.findall(r" (?:socket|connect|bind|send\w*|recv\w*)\(", written)
    figures["PDFs"] = sum(answer.status == 200 for answer in drawn)
    figures["files_opened"] = len(opened)
    figures["of_them_unexpected"] = len(others)
    figures["sockets_opened"] = len(sockets)
    assert {answer.status for answer in drawn} == {200}
    assert others == []
    assert sockets == []
