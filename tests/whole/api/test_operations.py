"""Health, metrics and logs of served processes."""

import json
import os
import re
import shutil
import signal
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.support.api.builders import RESUMES, a_resume
from tests.support.api.serving import Served, serve, wait_until
from tests.support.programs import running, serving
from tests.support.stores import make_account
from tests.support.waiting import workers_of


def total(url: str, name: str) -> float:
    """A value of the metrics."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", httpx.get(f"{url}/metrics").text, re.MULTILINE)
    return float(found[1]) if found else 0.0


CREATED = 'resumes_requests_total{operation="create",status="201"}'


def create(served: Served, count: int) -> None:
    """Creates on connections of their own, so that each worker has some."""
    for _ in range(count):
        headers = {"Authorization": f"Bearer {served.key}"}
        assert httpx.post(served.url + RESUMES, json=a_resume(), headers=headers).is_success


@pytest.mark.slow
def test_each_of_two_workers_tells_what_both_have_counted(tmp_path: Path) -> None:
    with serve(tmp_path, workers=2) as served:
        create(served, 20)

        assert [total(served.url, CREATED) for _ in range(10)] == [20] * 10
        assert "\nprocess_" not in httpx.get(f"{served.url}/metrics").text
    with serving(tmp_path) as again:
        assert total(again, CREATED) == 0


@pytest.mark.slow
def test_what_a_killed_worker_has_counted_stays_and_its_successor_counts_on(tmp_path: Path) -> None:
    with serve(tmp_path, workers=2) as served:
        create(served, 10)
        before = workers_of(served.process.pid)

        os.kill(before[0], signal.SIGKILL)
        wait_until(lambda: len(set(workers_of(served.process.pid)) - set(before)) == 1, within_s=30)
        create(served, 10)

        wait_until(lambda: total(served.url, CREATED) == 20)
        assert total(served.url, "resumes_requests_in_flight") == 1


def test_a_server_is_alive_and_ready_and_counts_its_connections(tmp_path: Path) -> None:
    with serve(tmp_path) as served:
        assert httpx.get(f"{served.url}/healthz").json() == {"status": "ok"}
        assert httpx.get(f"{served.url}/readyz").json()["status"] == "ready"
        with httpx.Client(base_url=served.url) as one, httpx.Client(base_url=served.url) as other:
            assert one.get("/healthz").is_success
            text = other.get("/metrics").text
        assert "\nresumes_connections 2.0\n" in text


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["--workers", "2"]])
def test_with_json_every_line_of_the_log_is_json(tmp_path: Path, flags: list[str]) -> None:
    log = tmp_path / "log"
    with log.open("w") as errors:
        given = ["--log-format", "json", "--host", "0.0.0.0", *flags]
        with serving(tmp_path / "home", *given, stderr=errors) as url:
            port = httpx.URL(url).port
            for _ in range(4):
                httpx.get(f"http://127.0.0.1:{port}{RESUMES}")

    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert "without TLS" in lines[0]["message"]
    requests = [line for line in lines if line["logger"] == "resumes.access"]
    assert [line["status"] for line in requests] == [401] * 4


@pytest.mark.slow
def test_text_has_no_line_for_each_request_unless_asked_for(tmp_path: Path) -> None:
    said = {}
    for flag in ("--no-access-log", "--access-log"):
        log = tmp_path / flag
        with log.open("w") as errors, serving(tmp_path / "home", flag, stderr=errors) as url:
            httpx.get(url + RESUMES, headers={"X-Request-Id": "mine"})
        said[flag] = log.read_text()

    assert said["--no-access-log"] == ""
    assert "INFO resumes.access: request mine: GET other, status 401," in said["--access-log"]


@pytest.mark.slow
def test_tls_is_served_with_a_certificate_and_a_key_in_files_of_their_own(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test"
    words += f" -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {cert}"
    subprocess.run([openssl, *words.split()], check=True, capture_output=True)
    context = ssl.create_default_context(cafile=str(cert))
    home = tmp_path / "home"
    secret = make_account(home, "ada")
    log = tmp_path / "log"

    flags = ["--tls-cert", str(cert), "--tls-key", str(key), "--host", "0.0.0.0"]
    with log.open("w") as errors, serving(home, *flags, stderr=errors) as url:
        assert url.startswith("https://")
        secure = f"https://127.0.0.1:{httpx.URL(url).port}"
        with httpx.Client(verify=context, headers={"Authorization": f"Bearer {secret}"}) as client:
            assert client.post(secure + RESUMES, json=a_resume()).status_code == 201
            assert len(client.get(secure + RESUMES).json()["resumes"]) == 1
            assert client.get(f"{secure}/readyz").status_code == 200

    assert "without TLS" not in log.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("words", [["watch"], ["up", "--port", "0"]])
def test_with_json_the_importer_and_up_say_everything_in_json(
    tmp_path: Path, words: list[str]
) -> None:
    make_account(tmp_path, "ada")
    drop = tmp_path / "inbox" / "ada"
    drop.mkdir(parents=True, exist_ok=True)
    log = tmp_path / "log"
    with (
        log.open("w") as errors,
        running(tmp_path, *words, "--log-format", "json", stderr=errors) as program,
    ):
        (drop / "one.json").write_text(json.dumps(a_resume()))
        wait_until(lambda: "one.json" in log.read_text(), within_s=60)
        program.terminate()
        assert program.wait(30) == 0

    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["logger"] for line in lines} >= {"resumes.cli"}
    assert all({"at", "level", "message"} <= line.keys() for line in lines)
