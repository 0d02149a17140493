"""The page that describes the API, and what it loads (docs/api.md, Description)."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from resumes.errors import ErrorCode
from server.docs_page import ASSETS, SWAGGER_UI
from server.openapi import document_bytes
from server.request import STATUSES
from tests.support.api.builders import Client
from tests.support.api.serving import Place

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
TYPES = {
    "": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json",
}  # fmt: skip
"""Those that a browser insists on, by the suffix of the path."""
PATHS = [
    "/openapi.json", "/docs", "/docs/docs.js", "/docs/docs.css",
    f"/docs/{SWAGGER_UI}/swagger-ui-bundle.js", f"/docs/{SWAGGER_UI}/swagger-ui.css",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_what_describes_the_api_needs_no_key_and_can_only_be_got(client: Client, path: str) -> None:
    for _ in range(2):
        answer = client.request("GET", path, headers=[])
        assert answer.status_code == 200
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Type"].startswith(TYPES[Path(path).suffix])
        assert int(answer.headers["Content-Length"]) == len(answer.content) > 0
        # A browser keeps only what has a version in its path.
        assert ("immutable" in answer.headers["Cache-Control"]) == (SWAGGER_UI in path)
    head = client.request("HEAD", path, headers=[])
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["Content-Length"] == answer.headers["Content-Length"]
    for method in ("POST", "OPTIONS"):
        refused = client.request(method, path, headers=[])
        assert (refused.status_code, refused.headers["Allow"]) == (405, "GET")


def test_the_root_says_where_the_description_is(client: Client) -> None:
    where = client.request("GET", "/", headers=[]).json()
    assert set(where.values()) == {"/docs", "/openapi.json"} <= {*PATHS}


def test_the_document_is_that_of_the_format_that_is_accepted(client: Client) -> None:
    assert client.request("GET", "/openapi.json").content == document_bytes()


def test_the_page_may_load_nothing_but_what_the_service_has(client: Client) -> None:
    answer = client.request("GET", "/docs", headers=[])

    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert not re.search(r"<script>|<style|\s(style|on\w+)=", answer.text)  # which it holds back
    loaded = {f"/{path}" for path in re.findall('(?:src|href)="([^"#]+)', answer.text)}
    assert loaded - {"/data:,"} == {*PATHS} - {"/docs"}


def test_the_licences_of_what_is_not_ours_lie_beside_it() -> None:
    for name in ("LICENSE", "NOTICE", "swagger-ui-bundle.js.LICENSE.txt"):
        assert (ASSETS / SWAGGER_UI / name).read_text(encoding="utf-8")
    assert SWAGGER_UI in (ASSETS / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
def test_a_browser_shows_every_operation_with_no_way_to_anywhere_else(
    place: Place, tmp_path: Path
) -> None:
    # given a browser that can resolve no name and reach nothing but this machine
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu"]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"]
    command += [f"--user-data-dir={tmp_path}", "--disable-background-networking"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=20000", "--dump-dom"]
    # when it has loaded the page
    run = subprocess.run(
        [*command, f"{place.url}/docs"], capture_output=True, text=True, timeout=90, check=False
    )
    # then the operations of the document are on it, and the policy has held nothing back
    for operation in ("listResumes", "createResume", "getResume", "deleteResume"):
        assert f'id="operations-Resumes-{operation}"' in run.stdout, run.stderr
    assert "CONSOLE" not in run.stderr


def test_every_error_has_a_status() -> None:
    assert set(STATUSES) == set(ErrorCode)
    assert all(400 <= status < 600 for status in STATUSES.values())
