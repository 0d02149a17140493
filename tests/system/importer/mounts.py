"""A small disk of its own, that can be filled, taken away and put back. Needs root."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


class Disk:
    """A tmpfs at a path, in a mount namespace that only those see who are told to enter it."""

    def __init__(self, path: Path, size_bytes: int, holder: "subprocess.Popen[bytes]") -> None:
        self._path = path
        self._size_bytes = size_bytes
        self._holder = holder

    @property
    def enter(self) -> list[str]:
        """What goes before a command that is to see the disk at its path."""
        return ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--"]

    def seen(self, path: Path) -> Path:
        """The path by which this process, from outside, reaches what lies at a path inside."""
        return Path(f"/proc/{self._holder.pid}/root{path}")

    def mount(self) -> None:
        """An empty disk is there."""
        options = f"size={self._size_bytes}"
        self._run("mount", "-t", "tmpfs", "-o", options, "none", str(self._path))

    def unmount(self) -> None:
        """The disk is gone from its path, whoever uses it."""
        self._run("umount", "--lazy", str(self._path))

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """There is not a byte left on the disk during the block."""
        filler = self.seen(self._path) / ".filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(b"x" * 4_096):
                pass
        try:
            yield
        finally:
            filler.unlink()

    def _run(self, *command: str) -> None:
        subprocess.run([*self.enter, *command], check=True, capture_output=True)


@contextlib.contextmanager
def a_disk(path: Path, size_bytes: int) -> Iterator[Disk]:
    """A disk at the path, which is made; skips the test where there can be none."""
    path.mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "mount"))):
        pytest.skip("only root can mount a disk, with unshare and nsenter")
    with subprocess.Popen(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo; exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        disk = Disk(path, size_bytes, holder)
        try:
            if not holder.stdout.readline():
                pytest.skip("no mount namespace can be made here")
            try:
                disk.mount()
            except subprocess.CalledProcessError:
                pytest.skip("nothing can be mounted here")
            yield disk
        finally:
            holder.stdin.close()
