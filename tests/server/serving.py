"""Servers in processes of their own, for what needs sockets and signals."""

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server.builders import RESUMES
from tests.stores import make_account
from tests.waiting import end
from tests.waiting import wait_until as wait_until


@contextmanager
def a_connection(url: str) -> Iterator[socket.socket]:
    """A connection to the server at a base address."""
    parts = httpx.URL(url)
    with socket.create_connection((parts.host, parts.port), timeout=60) as connection:
        yield connection


def read_all(connection: socket.socket) -> bytes:
    """Everything until the server closes the connection."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    return received


def make_certificate(folder: Path) -> Path:
    """A file with a certificate for 127.0.0.1 and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    path = folder / "cert.pem"
    command = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test"
    command += f" -addext subjectAltName=IP:127.0.0.1 -keyout {path} -out {folder / 'only.pem'}"
    subprocess.run([openssl, *command.split()], check=True, capture_output=True)
    path.write_text(path.read_text() + (folder / "only.pem").read_text())
    return path


SERVE = """
import json, sys
from pathlib import Path
from resumes.settings import Settings
from server import service

changes = json.loads(sys.argv[1])
cert = changes.pop("tls_cert", None)
settings = Settings(**changes)
service.run(
    settings,
    tls_cert=Path(cert) if cert else None,
    ready=lambda url: print(url, flush=True),
)
print("ended")
"""


@dataclass(frozen=True)
class Served:
    """A running server, and the key of its account "ada" on the business plan."""

    url: str
    key: str
    process: "subprocess.Popen[str]"


@contextmanager
def serve(home: Path, **settings: Any) -> Iterator[Served]:
    """A server in a process of its own, on a free port, with these settings."""
    key = make_account(settings.get("database") or home, "ada")
    changes = json.dumps({"home": str(home), "port": 0} | settings)
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, changes],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip().replace("0.0.0.0", "127.0.0.1")
            yield Served(url, key, process)
        finally:
            process.terminate()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
            end(process)


def a_head(served: Served, length: int, *more: str) -> bytes:
    """The head of a create with a body of this length."""
    lines = [f"POST {RESUMES} HTTP/1.1", "Host: resumes.test", f"Content-Length: {length}"]
    lines += [f"Authorization: Bearer {served.key}", "Content-Type: application/json", *more]
    return "\r\n".join([*lines, "", ""]).encode()
