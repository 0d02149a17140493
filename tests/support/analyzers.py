"""Analyzers: small programs that read a file and write a resume, or do not."""

import sys
from pathlib import Path
from typing import Final

from tests.support.resumes import a_document

TELLS: Final = """
import json, os, resource, signal, subprocess, sys, tempfile, time
FILE = sys.argv[-1]
def tell(name, text):
    with open(os.path.join({folder!r}, name), "a") as file:
        file.write(str(text) + "\\n")
def fork_away():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            tell("pid", os.getpid())
            time.sleep(600)
        os._exit(0)
RESUME = {resume!r}
"""


def an_analyzer(folder: Path, code: str = "print(RESUME)") -> list[str]:
    """Return the command of an analyzer with this code.

    It may use FILE, RESUME (a valid one, as JSON), `tell(name, text)`, which adds a line to a file in the
    folder, and `fork_away()`, which starts a process of a session of its own that tells its `pid`.
    """
    program = folder / "analyze"
    begin = TELLS.format(folder=str(folder), resume=a_document().decode())
    program.write_text(f"#!{sys.executable}\n{begin}\n{code}\n")
    program.chmod(0o700)
    return [str(program), "{file}"]


def told(folder: Path, name: str) -> list[str]:
    """Return the lines that an analyzer has told under this name."""
    file = folder / name
    return file.read_text().splitlines() if file.exists() else []


def private_folders(temporary: Path) -> list[str]:
    """Return the analyzers' private folders in a folder for temporary files."""
    return [path.name for path in temporary.glob("resumes-analyzer-*")]
