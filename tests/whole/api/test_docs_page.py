"""The docs page as a browser has it: all that it needs comes from the service itself."""

import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest

from tests.support.api.serving import Served, serve

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


class Named(HTMLParser):
    """What a page names to be loaded, and the scripts and styles that it holds itself."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.inline: list[str] = []
        self._is_inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._is_inside = tag in ("script", "style")
        self.inline += [name for name in given if name.startswith("on") or name == "style"]
        for name in ("src", "href"):
            address = given.get(name)
            if address is not None and not address.startswith("data:"):
                self.addresses.append(address)

    def handle_endtag(self, tag: str) -> None:
        self._is_inside = False

    def handle_data(self, data: str) -> None:
        if self._is_inside and data.strip():
            self.inline.append(data)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("home")) as served:
        yield served


@pytest.mark.slow
def test_everything_that_the_page_names_is_served_with_it(served: Served) -> None:
    page = httpx.get(f"{served.url}/docs")
    named = Named(page.text)
    assert len(named.addresses) >= 4
    assert not named.inline
    for address in named.addresses:
        found = httpx.get(urljoin(f"{served.url}/docs", address))
        assert found.status_code == 200, address
        assert found.content
        assert urljoin(f"{served.url}/docs", address).startswith(served.url)


@pytest.mark.slow
def test_the_types_of_what_is_served_are_those_that_a_browser_insists_on(served: Served) -> None:
    types = {".js": "text/javascript", ".css": "text/css", ".json": "application/json"}
    for address in Named(httpx.get(f"{served.url}/docs").text).addresses:
        found = httpx.get(f"{served.url}/{address}")
        assert found.headers["Content-Type"].startswith(types[Path(address).suffix])


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
def test_a_browser_shows_every_operation_with_no_way_to_anywhere_else(
    served: Served, tmp_path: Path
) -> None:
    # given a browser that can resolve no name and reach nothing but this machine
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu"]
    command += ["--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"]
    command += [f"--user-data-dir={tmp_path}", "--disable-background-networking"]
    command += ["--enable-logging=stderr", "--virtual-time-budget=20000", "--dump-dom"]
    # when it has loaded the page
    run = subprocess.run(
        [*command, f"{served.url}/docs"], capture_output=True, text=True, timeout=90, check=False
    )
    # then the operations of the document are on it, and the policy has held nothing back
    for operation in ("listResumes", "createResume", "getResume", "deleteResume"):
        assert f'id="operations-Resumes-{operation}"' in run.stdout, run.stderr
    assert "CONSOLE" not in run.stderr
