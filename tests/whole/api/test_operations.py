"""Health, metrics and logs of served processes."""

import json
import os
import re
import signal
import ssl
from pathlib import Path

import httpx
import pytest

from tests.support.api.builders import RESUMES, a_resume
from tests.support.api.serving import Served, make_certificate, serve, wait_until
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
def test_each_of_two_workers_tells_what_all_have_counted_even_one_that_was_killed(
    tmp_path: Path,
) -> None:
    with serve(tmp_path, workers=2) as served:
        create(served, 20)
        assert [total(served.url, CREATED) for _ in range(10)] == [20] * 10
        assert "\nprocess_" not in httpx.get(f"{served.url}/metrics").text
        before = workers_of(served.process.pid)

        os.kill(before[0], signal.SIGKILL)
        wait_until(lambda: len(set(workers_of(served.process.pid)) - set(before)) == 1, within_s=30)
        create(served, 10)

        wait_until(lambda: total(served.url, CREATED) == 30)
        assert total(served.url, "resumes_requests_in_flight") == 1
    with serving(tmp_path) as again:
        assert total(again, CREATED) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [["serve"], ["serve", "--workers", "2"], ["watch"], ["up"]], ids=" ".join
)
def test_with_json_every_line_of_the_log_is_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    make_account(tmp_path, "ada")
    drop = tmp_path / "inbox" / "ada"
    drop.mkdir(parents=True, exist_ok=True)
    log = tmp_path / "log"
    serves = words[0] != "watch"
    flags = ["--port", "0", "--json"] if serves else []
    monkeypatch.setenv("RESUMES_HOST", "0.0.0.0")  # `up` has no option for it
    with (
        log.open("w") as errors,
        running(tmp_path, *words, *flags, "--log-format", "json", stderr=errors) as program,
    ):
        if serves:
            assert program.stdout is not None
            url = httpx.URL(json.loads(program.stdout.readline())["url"])
            for _ in range(4):
                httpx.get(f"http://127.0.0.1:{url.port}{RESUMES}")
        if words[0] != "serve":
            (drop / "one.json").write_text(json.dumps(a_resume()))
            wait_until(lambda: "one.json" in log.read_text(), within_s=60)
        program.terminate()
        assert program.wait(60) == 0

    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert all({"at", "level", "message"} <= line.keys() for line in lines)
    assert serves == any("without TLS" in line["message"] for line in lines)
    requests = [line["status"] for line in lines if line["logger"] == "resumes.access"]
    assert requests == ([401] * 4 if serves else [])


@pytest.mark.slow
def test_tls_is_served_with_a_certificate_and_a_key_in_files_of_their_own(tmp_path: Path) -> None:
    key = make_certificate(tmp_path)  # it is in there, too
    cert = key.with_name("only.pem")
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
