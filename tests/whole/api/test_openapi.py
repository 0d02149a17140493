"""Schemathesis asks a served process whatever its OpenAPI document allows, and what it does not."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from resumes.store import accounts, api_keys, plans
from resumes.store.plans import PlanChange
from tests.support.api.serving import serve
from tests.support.stores import open_home

HOOKS = Path(__file__).parents[2] / "support" / "api" / "schemathesis_hooks.py"
SEED = 20260131
CONFIG = """
hooks = {hooks}
seed = {seed}

[generation]
# U+0000 is JSON, and refused in any text and key; a schema would have to say so of each.
allow-x00 = false
database = "none"

[auth.wfc]
path = {users}
peers = ["ada", "bob"]

[checks.positive_data_acceptance]
# Beside success only what an id that is none gets, and an If-Match that is none.
expected-statuses = [200, 201, 304, 404, 412]

[checks.negative_data_rejection]
# A text that is too long for its field may be too long for a body as well.
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429, "5xx"]

[[operations]]
# Without an analyzer nothing is there, for any method.
include-path = "/api/v1/resumes/upload"
phases.coverage.enabled = false
"""

SHORT = """
[[operations]]
# Goes through the fields of all section types one by one, which takes most of the time;
# tests/api/test_openapi.py compares their schema with the service without a connection.
include-name = "POST /api/v1/resumes"
phases.coverage.enabled = false
"""


@dataclass(frozen=True)
class Asked:
    """A served process and where schemathesis finds what it needs to ask it."""

    url: str
    folder: Path

    def run(self, *, max_examples: int, limit_s: float, more: str = "") -> str:
        """What schemathesis has to say, with `more` configuration. It must find nothing wrong."""
        with (self.folder / "schemathesis.toml").open("a") as configuration:
            configuration.write(more)
        program = "import schemathesis.cli as cli; cli.schemathesis()"
        command = [sys.executable, "-c", program, "--config-file", "schemathesis.toml"]
        command += ["--no-color", "run", f"{self.url}/openapi.json", "-n", str(max_examples)]
        run = subprocess.run(
            [*command, "--checks", "all", "--continue-on-failure"],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    """A served process with two accounts that may do everything, for good."""
    home, folder = tmp_path / "home", tmp_path / "schemathesis"
    home.mkdir()
    folder.mkdir()
    with open_home(home) as store:
        plans.set_plan_limits(store, PlanChange("business", max_resumes=None))
        accounts.create_account(store, "bob", plan="business")
        bob = api_keys.create_key(store, "bob").secret
    with serve(home, rate_limit=False) as served:
        write_configuration(folder, {"ada": served.key, "bob": bob})
        yield Asked(served.url, folder)


def write_configuration(folder: Path, key_of: dict[str, str]) -> None:
    users = [
        {"name": name, "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {key}"}]}
        for name, key in key_of.items()
    ]
    (folder / "users.json").write_text(json.dumps({"auth": users}))
    texts = {"hooks": json.dumps(str(HOOKS)), "users": json.dumps(str(folder / "users.json"))}
    (folder / "schemathesis.toml").write_text(CONFIG.format(seed=SEED, **texts))


def cases_of(report: str) -> int:
    """How many requests were made up."""
    found = re.search(r"([0-9,]+) generated", report)
    assert found is not None, report
    return int(found[1].replace(",", ""))


@pytest.mark.slow
def test_the_service_does_what_its_document_says(asked: Asked) -> None:
    report = asked.run(max_examples=20, limit_s=300, more=SHORT)
    assert cases_of(report) > 300


@pytest.mark.campaign(minutes=5)
def test_twenty_thousand_requests_find_nothing_that_the_document_does_not_say(asked: Asked) -> None:
    report = asked.run(max_examples=1_500, limit_s=3_000)
    assert cases_of(report) >= 20_000
