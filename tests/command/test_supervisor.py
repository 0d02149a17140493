"""What remains of `up` when its services run."""

import re
import sys
from pathlib import Path

import pytest

from tests.command.conftest import CommandLine
from tests.command.test_services import started, stop


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_supervisor_has_none_of_the_libraries_of_what_it_supervises(run: CommandLine) -> None:
    process, _ = started(run)
    mapped = Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8")
    said = stop(process)

    assert "/python" in mapped
    assert not re.findall("pydantic|sqlalchemy|sqlite|uvloop|watchfiles", mapped)
    assert "Stopping." in said
