"""Files with odd names, and what lies in an inbox and is nobody's resume."""

import contextlib
import os
import socket
from pathlib import Path

from tests.support.resumes import a_document

NAMES = [
    b"line\nend.json",
    "smile \N{GRINNING FACE}.json".encode(),
    b"l" * 250 + b".json",
    "\N{HIRAGANA LETTER A}".encode() * 83 + b".json",
    b"-rf.json",
    b";$(touch evil).json",
    "right \N{RIGHT-TO-LEFT OVERRIDE}nosj.json".encode(),
    b"bad\xff.json",
    b"back\\slash.json",
    b"esc\x1b[31m.json",
    b"quote'\".json",
    b"UPPER.JSON",
    b" .json",
    b"%s%n.json",
]

IN_A_SYSTEM_FOLDER = "@eaDir/cv.json"
NOT_FOR_US = [
    ".hidden.json",
    "._x.json",
    "x.json.tmp",
    "x.json.part",
    "x.json.crdownload",
    "x.json~",
    "x.json.filepart",
    "notes.txt",
    "no ending",
    IN_A_SYSTEM_FOLDER,
]


def drop_strangers(inbox: Path, outside: Path) -> set[str]:
    """Lays down what must not be imported; the names of it below ROOT."""
    secret = outside / "secret.json"
    secret.write_bytes(a_document("of somebody else"))
    (inbox / "link.json").symlink_to(secret)
    (inbox / "passwd.json").symlink_to("/etc/passwd")
    (inbox / "dangling.json").symlink_to(outside / "nothing")
    (inbox / "loop.json").symlink_to(inbox / "loop.json")
    (inbox / "folder").symlink_to(outside)
    os.mkfifo(inbox / "pipe.json")
    with contextlib.chdir(inbox), socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.json")  # a path from the root may be too long for one
    names = {path.name for path in inbox.iterdir()}
    for name in NOT_FOR_US:
        path = inbox / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(a_document(f"left in {name}"))
        names.add(name)
    (inbox / "posing.json").mkdir()
    return {f"{inbox.name}/{name}" for name in names}
