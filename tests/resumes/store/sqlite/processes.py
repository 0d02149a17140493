"""Python in a process of its own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path


def run_python(code: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The code, run to its end from the root of the checkout."""
    root = Path(__file__).parents[4]
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        env={**os.environ, "PYTHONPATH": str(root)},
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
