"""Where programs write to, and a server that writes there."""

import contextlib
import json
import os
import pty
import select
import subprocess
import threading
from collections.abc import Callable, Iterator
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


@contextmanager
def a_stuck_terminal() -> Iterator[tuple[int, Callable[[], None]]]:
    """A terminal that takes no more, as nobody reads it: a program that writes there waits. And what
    has it read until the block ends."""
    controller, terminal = pty.openpty()
    filling = os.open(os.ttyname(terminal), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    # Full, it soon has room again: the kernel takes what was written to the other end.
    while select.select([], [filling], [], 0.2)[1]:
        with contextlib.suppress(BlockingIOError):
            os.write(filling, b"x" * 1_024)
    os.close(filling)

    def read() -> None:
        with contextlib.suppress(OSError):  # all have closed the terminal
            while os.read(controller, 1_024):
                pass

    reader = threading.Thread(target=read)
    try:
        yield terminal, reader.start
    finally:
        os.close(terminal)
        if reader.ident is not None:
            reader.join(20)
        os.close(controller)


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
