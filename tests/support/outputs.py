"""Where programs write to, and a server that writes there."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.programs import command


@contextmanager
def serving(
    home: Path, *flags: str, **options: Any
) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """`resumes serve` with its address; its standard error is as the options say."""
    with subprocess.Popen(
        command(home, "serve", "--json", "--port", "0", *flags),
        stdout=subprocess.PIPE,
        text=True,
        **options,
    ) as program:
        try:
            assert program.stdout is not None
            yield json.loads(program.stdout.readline())["url"], program
        finally:
            program.terminate()
            program.wait(60)


def closed_pipe() -> int:
    """The writing end of a pipe whose other end is closed."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def full_pipe() -> int:
    """The writing end of a pipe that is full and that nobody reads; its other end stays open."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"x" * 65536)
    except BlockingIOError:
        os.set_blocking(writing, True)
    os.set_inheritable(reading, False)
    return writing
