"""The proxies of docs/guides/proxies.md, each with its configuration as the page has it."""

import contextlib
import os
import re
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urljoin

import httpx
import pytest

from server.openapi import SWAGGER_UI
from tests.support.api.bombs import valid
from tests.support.api.builders import RESUMES, a_body
from tests.support.api.serving import Served, make_certificate, serve
from tests.support.pages import blocks
from tests.support.postgres import free_port
from tests.support.waiting import end, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.docs]

PAGE: Final = "docs/guides/proxies.md"
APACHE_MODULES: Final = Path("/usr/lib/apache2/modules")
BROWSER: Final = shutil.which("chromium")
IS_ROOT: Final = os.geteuid() == 0


class Proxy(NamedTuple):
    """A program, what surrounds the page's configuration, and how the program is started."""

    program: str
    place: str
    """Where the page has it listen."""
    listen: str
    """Where it listens here, by the port."""
    surround: Callable[[str, Path], str]
    command: list[str]
    """Behind the program; {} is the file."""


def for_nginx(page: str, folder: Path) -> str:
    """The server as a part of a whole configuration."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder / kind};\n" for kind in kinds)
    user = "user root;" if IS_ROOT else ""
    first = f"daemon off; pid {folder / 'pid'}; error_log {folder / 'errors'}; {user}\n"
    log = f"log_format brief '$request_uri $status'; access_log {folder / 'access'} brief;\n"
    there = f"location = /cv/try.html {{ default_type text/html; alias {folder / 'try.html'}; }}\n"
    page = page.replace("location /cv/", f"{there}location /cv/", 1)
    return first + "events {}\nhttp {\n" + log + temporary + page + "}\n"


def for_apache(page: str, folder: Path) -> str:
    """The host with the modules that the page names."""
    modules = ("mpm_event", "authz_core", "alias", "socache_shmcb", "ssl", "proxy", "proxy_http")
    lines = [f"LoadModule {name}_module {APACHE_MODULES}/mod_{name}.so" for name in modules]
    host = re.search(r"<VirtualHost ([^>]+)>", page)
    assert host is not None
    lines += [f"ServerRoot {folder}", f"PidFile {folder / 'pid'}", f"ErrorLog {folder / 'errors'}"]
    lines += [f"DefaultRuntimeDir {folder}", f"Listen {host[1]}", "ServerName 127.0.0.1"]
    lines += ["User nobody", "Group nogroup"] if IS_ROOT else []
    return "\n".join([*lines, page])


def for_caddy(page: str, folder: Path) -> str:
    """The site of a program that keeps nothing outside the folder."""
    options = ["admin off", "auto_https disable_redirects"]
    options.append(f"storage file_system {folder}")
    return "\n".join(["{", *options, "}", page])


PROXIES: Final = {
    "nginx": Proxy("nginx", "listen 443", "listen 127.0.0.1:{}", for_nginx, ["-c", "{}"]),
    "apache": Proxy("apache2", "*:443", "127.0.0.1:{}", for_apache, ["-DFOREGROUND", "-f", "{}"]),
    "haproxy": Proxy(
        "haproxy", "bind :443", "bind 127.0.0.1:{}", lambda page, _: page, ["-db", "-f", "{}"]
    ),
    "caddy": Proxy(
        "caddy",
        "resumes.example.com {",
        "https://127.0.0.1:{} {{",
        for_caddy,
        ["run", "--adapter", "caddyfile", "--config", "{}"],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service on loopback."""
    with serve(tmp_path_factory.mktemp("home")) as served:
        yield served


@contextlib.contextmanager
def proxied(repository: Path, folder: Path, name: str, served: Served) -> Iterator[httpx.Client]:
    """A client of the service behind the proxy."""
    proxy = PROXIES[name]
    program = shutil.which(proxy.program, path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip(f"{proxy.program} is not installed")
    (lines,) = [lines for _, lines in blocks((repository / PAGE).read_text(), name)]
    page = "\n".join([*lines, ""])
    port = free_port()
    for told, here in {
        proxy.place: proxy.listen.format(port),
        "127.0.0.1:8000": served.url.removeprefix("http://"),
        "/etc/ssl/resumes": str(folder),
    }.items():
        assert told in page
        page = page.replace(told, here)
    certificate = make_certificate(folder)
    for file in ("fullchain.pem", "privkey.pem", "both.pem"):
        shutil.copy(certificate, folder / file)
    (folder / "configuration").write_text(proxy.surround(page, folder))
    words = [word.format(folder / "configuration") for word in proxy.command]
    context = ssl.create_default_context(cafile=str(certificate))
    with (
        (folder / "said").open("wb") as said,
        subprocess.Popen(
            [program, *words],
            stdout=said,
            stderr=said,
            env={**os.environ, "XDG_CONFIG_HOME": str(folder)},
        ) as process,
        httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=context, timeout=60) as client,
    ):

        def is_up() -> bool:
            assert process.poll() is None, (folder / "said").read_text()
            with contextlib.suppress(httpx.TransportError):
                return client.get("/cv/healthz").status_code == 200
            return False

        try:
            wait_until(is_up)
            yield client
        finally:
            end(process)


TRY: Final = """<!DOCTYPE html><html><body><div id="docs"></div>
<script src="docs/SWAGGER_UI/swagger-ui-bundle.js"></script><script>
SwaggerUIBundle({
  url: "openapi.json", dom_id: "#docs", validatorUrl: null, tryItOutEnabled: true, docExpansion: "full",
  onComplete: () => setTimeout(
    () => document.querySelectorAll(".opblock-get .execute").forEach((button) => button.click()), 1500
  ),
});
</script></body></html>"""
"""The description as /docs sets it up, and a visitor who executes each GET."""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
def test_what_is_tried_on_the_page_stays_below_the_prefix(
    repository: Path, tmp_path: Path, served: Served
) -> None:
    (tmp_path / "try.html").write_text(TRY.replace("SWAGGER_UI", SWAGGER_UI))
    command = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--ignore-certificate-errors", f"--user-data-dir={tmp_path / 'browser'}"]
    command += ["--virtual-time-budget=40000", "--disable-background-networking"]
    with proxied(repository, tmp_path, "nginx", served) as client:
        subprocess.run(
            [*command, f"{str(client.base_url).rstrip('/')}/cv/try.html"],
            capture_output=True,
            timeout=200,
            check=True,
        )
    asked = [line.split() for line in (tmp_path / "access").read_text().splitlines()]
    paths = {path.partition("?")[0]: status for path, status in asked}
    assert {f"/cv{RESUMES}": "401", "/cv/readyz": "200"}.items() <= paths.items()
    assert [path for path in paths if not path.startswith("/cv/")] in ([], ["/favicon.ico"])


@pytest.mark.parametrize("name", PROXIES)
def test_a_client_is_served_below_the_prefix(
    repository: Path, tmp_path: Path, served: Served, name: str
) -> None:
    own = {"Authorization": f"Bearer {served.key}"}
    json = own | {"Content-Type": "application/json"}
    large = valid(1_500_000)
    with proxied(repository, tmp_path, name, served) as client:
        # given a large resume, and one in chunks
        created = client.post(f"/cv{RESUMES}", content=large, headers=json)
        assert created.status_code == 201, created.text
        chunks = client.post(f"/cv{RESUMES}", content=iter([a_body()]), headers=json)
        assert chunks.status_code == 201, chunks.text
        # then they are listed, read and drawn
        listed = client.get(f"/cv{RESUMES}?limit=100", headers=own).json()["resumes"]
        ids = [created.json()["id"], chunks.json()["id"]]
        assert [entry["id"] for entry in listed][-2:] == ids
        pdf = client.get(f"/cv{RESUMES}/{ids[1]}/pdf?paper=a4", headers=own)
        assert (pdf.status_code, pdf.content[:5]) == (200, b"%PDF-")
        known = own | {"If-None-Match": pdf.headers["ETag"]}
        again = client.get(f"/cv{RESUMES}/{ids[1]}/pdf?paper=a4", headers=known)
        assert (again.status_code, again.content) == (304, b"")
        # and what is for the operator alone is not there
        for spelling in ("metrics", "./metrics", "%6detrics", "x/../metrics", "/metrics"):
            assert client.get(f"/cv/{spelling}").status_code == 404, spelling
        # and what is refused is told by the service
        for status, refused in {
            413: client.post(f"/cv{RESUMES}", content=b" " * 3_000_000, headers=json),
            400: client.get(f"/cv{RESUMES}?page=2", headers=own),
            401: client.get(f"/cv{RESUMES}", headers={"X-Request-Id": "mine"}),
            404: client.get("/cv/nothing"),
            405: client.options("/cv/healthz"),
        }.items():
            assert (refused.status_code, refused.json()["status"]) == (status, status)
        assert client.head("/cv/healthz").status_code == 200
        # and the description is complete, from both of its addresses
        redirected = client.get("/cv")
        assert redirected.status_code in (301, 302)
        assert redirected.headers["Location"].endswith("/cv/")
        root = client.get("/cv/")
        links = [urljoin(str(root.url), link) for link in root.json().values()]
        for path in ("/cv/docs", "/cv/docs/"):
            page = client.get(path)
            found = re.findall('(?:src|href)="([^"#:]+)"', page.text)
            assert len(found) >= 4
            links += [urljoin(str(page.url), link) for link in found]
        assert {client.get(link).status_code for link in links} == {200}
        # and nothing is served outside the prefix
        assert client.get(RESUMES, headers=own).status_code in (200, 404, 503)
        assert "resumes" not in client.get(RESUMES, headers=own).text
    for resume_id in ids:
        assert httpx.delete(f"{served.url}{RESUMES}/{resume_id}", headers=own).is_success
