"""Programs that are bound by permissions, whoever starts them."""

import os
import shutil
import subprocess

import pytest


@pytest.fixture
def bounded() -> list[str]:
    """What goes before a command that is to be bound by permissions, also when root gives it."""
    if os.geteuid() != 0:
        return []
    drop = "-dac_override,-dac_read_search,-fowner,-lease"
    bound = ["setpriv", f"--bounding-set={drop}", f"--inh-caps={drop}"]
    if shutil.which("setpriv") is None or subprocess.run([*bound, "true"], check=False).returncode:
        pytest.skip("root ignores permissions, and setpriv cannot take that from a process here")
    return bound
