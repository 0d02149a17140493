"""A small disk of its own, that can be filled, taken away and put back. Needs root."""

import contextlib
import ctypes
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
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


class Ext4:
    """An ext4 file system in a file, in a mount namespace of its own as a `Disk` is."""

    def __init__(self, disk: Disk, image: Path, path: Path) -> None:
        self.path = path
        self._disk = disk
        self._image = image
        self._run("mkfs.ext4", "-q", "-F", str(image))
        self.mount()

    @property
    def enter(self) -> list[str]:
        """What goes before a command that is to see it at its path."""
        return self._disk.enter

    def seen(self, path: Path) -> Path:
        """Return the path outside of the namespace, as `Disk.seen` does."""
        return self._disk.seen(path)

    def mount(self) -> None:
        """Mount it at its path."""
        self._run("mount", "-o", "loop,errors=remount-ro", str(self._image), str(self.path))

    def fail(self) -> None:
        """Make it meet an error: it takes no writes until it is checked and mounted anew."""
        lines = self._run("losetup", "--associated", str(self._image)).splitlines()
        device = Path(lines[0].partition(b":")[0].decode()).name
        Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("test")

    def repair(self) -> None:
        """Unmount, check and mount it, as an administrator does. Nobody may be using it."""
        self._run("umount", str(self.path))
        checked = subprocess.run(
            ["e2fsck", "-f", "-y", str(self._image)], capture_output=True, check=False
        )
        assert checked.returncode in (0, 1), checked.stdout  # 1: errors were corrected
        self.mount()

    def _run(self, *command: str) -> bytes:
        done = subprocess.run([*self.enter, *command], check=True, capture_output=True)
        return done.stdout


@contextlib.contextmanager
def an_ext4(folder: Path, size_bytes: int) -> Iterator[Ext4]:
    """Mount one at `folder/ext4` for the block; skip the test where that is impossible."""
    if not all(map(shutil.which, ("mkfs.ext4", "e2fsck", "losetup"))):
        pytest.skip("e2fsprogs and losetup are needed to have an ext4 in a file")
    folder.mkdir(parents=True, exist_ok=True)
    path, image = folder / "ext4", folder / "image"
    path.mkdir()
    with image.open("wb") as file:
        file.truncate(size_bytes)
    with a_disk(folder / "unused", 4_096) as disk:
        try:
            made = Ext4(disk, image, path)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no ext4 can be mounted here: {error.stderr!r}")
        yield made


_CLONE_NEWNS = 0x20000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18


class Mounts:
    """What is mounted for a thread alone."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        if self._libc.unshare(_CLONE_NEWNS) != 0:
            pytest.skip("no mount namespace can be made here")
        self._mount("none", Path("/"), None, _MS_REC | _MS_PRIVATE)

    def mount(self, path: Path, size_bytes: int = 1 << 20) -> Path:
        """An empty disk is there, at a path that is made."""
        path.mkdir(parents=True, exist_ok=True)
        self._mount("none", path, "tmpfs", 0, f"size={size_bytes}")
        return path

    def bind(self, source: Path, path: Path) -> None:
        """A folder is seen at another path too, which is made."""
        path.mkdir(parents=True, exist_ok=True)
        self._mount(str(source), path, None, _MS_BIND)

    def _mount(
        self, source: str, path: Path, kind: str | None, flags: int, options: str | None = None
    ) -> None:
        texts = [None if one is None else os.fsencode(one) for one in (source, path, kind, options)]
        self._check(self._libc.mount(*texts[:3], ctypes.c_ulong(flags), texts[3]))

    def _check(self, status: int) -> None:
        if status != 0:
            pytest.skip(f"nothing can be mounted here: {os.strerror(ctypes.get_errno())}")


def with_mounts(act: Callable[[Mounts], None]) -> None:
    """The test goes on in a thread that can mount disks which nobody else sees; they go with it.
    Skips the test where there can be none."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            act(Mounts())
        except BaseException as error:  # noqa: BLE001 - a skip is none of Exception
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
