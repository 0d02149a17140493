"""Who runs what refuses to be run by root, and what that user can reach."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.postgres import UNPRIVILEGED

from benchmarks.cluster.processes import CannotRun

USER: Final[Mapping[str, Any]] = (
    {"user": UNPRIVILEGED, "group": "nogroup", "extra_groups": ()} if os.geteuid() == 0 else {}
)
"""That user, as `subprocess.Popen` takes it; empty when we are not root: then it is ourselves."""


def give_away(folder: Path) -> Path:
    """The folder, made, is that user's."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if USER:
        shutil.chown(folder, UNPRIVILEGED)
    return folder


def open_python() -> str:
    """A Python of our version that the user can run. Raises CannotRun when there is none."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    own = Path(sys.executable).resolve()
    for path in (own, *(Path(folder, version) for folder in ("/usr/local/bin", "/usr/bin"))):
        if path.exists() and _is_open(path):
            return str(path)
    raise CannotRun(
        f"PostgreSQL does not run as root, and {UNPRIVILEGED} cannot run {own}: "
        f"install {version} where everybody can, or run this as another user"
    )


def open_site(site: Path, folder: Path) -> Path:
    """A folder of Python packages that the user can read: this one, or a copy of it in `folder`."""
    if _is_open(site):
        return site
    copy = folder / "site"
    shutil.copytree(site, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def _is_open(path: Path) -> bool:
    path = path.resolve()
    return not USER or all(one.stat().st_mode & 0o001 for one in (path, *path.parents))
