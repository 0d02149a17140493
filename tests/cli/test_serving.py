"""`resumes serve`."""

import http.client
import json
import signal
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.cli.conftest import CommandLine, finish, start


def test_it_serves_until_it_is_asked_to_end(acme: CommandLine) -> None:
    process = start("--home", str(acme.home), "serve", "--port", "0", "--json")
    assert process.stdout is not None
    address = urlsplit(json.loads(process.stdout.readline())["url"])

    connection = http.client.HTTPConnection(address.hostname or "", address.port)
    connection.request("GET", "/api/v1/resumes")
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["error"]) == (401, "Invalid API key")
    connection.close()
    process.send_signal(signal.SIGINT)

    code, _, stderr = finish(process)
    assert (code, stderr) == (0, "")


def test_it_ends_with_the_process_that_started_it(acme: CommandLine) -> None:
    process = start(
        "--home", str(acme.home), "serve", "--port", "0", "--until-stdin-ends", "--json",
        stdin=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline()

    assert process.stdin is not None
    process.stdin.close()

    assert process.wait(60) == 0
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.close()


def test_people_are_told_where_it_listens(run: CommandLine) -> None:
    process = start("--home", str(run.home), "serve", "--port", "0")
    assert process.stderr is not None
    line = process.stderr.readline()
    process.terminate()

    assert line.startswith("The API listens at http://127.0.0.1:")
    assert finish(process)[0] == 0
    assert (run.home / "resumes.db").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--port", "70000"], 'Invalid --port "70000": use a whole number'),
        (["--workers", "0"], 'Invalid --workers "0": use a whole number from 1 to 64'),
        (["--tls-cert", "nowhere.pem"], "'nowhere.pem' does not exist"),
    ],
)
def test_a_bad_flag_is_told(run: CommandLine, words: list[str], message: str) -> None:
    assert message in run.fails(2, "serve", *words)


def test_a_tls_key_needs_its_certificate(run: CommandLine, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("x", encoding="ascii")

    assert "--tls-key needs --tls-cert" in run.fails(2, "serve", "--tls-key", str(key))
    assert "Cannot use the TLS files" in run.fails(2, "serve", "--tls-cert", str(key))
