"""What goes over the wire of a terminal while somebody looks at everything."""

import re
import sys

from resumes.store.store import Store
from tests.support.terminal.console import PROGRAM, SEQUENCES, console

KEYS = (
    (b"\r", "created "),
    (b"\t", '"header"'),
    (b"\t", "No source file"),
    (b"\t", "Created in ana"),
    (b"\x1b", "enter Open"),
    (b"2", "OUTCOME"),
    (b"\r", "esc Back"),
    (b"\x1b", "enter Open"),
    (b"5", "STATE"),
    (b"\r", "Key details"),
    (b"\x1b", "enter Open"),
    (b"D", "Revoke this key?"),
    (b"\x1b", "enter Open"),
    (b"6", "SQLite"),
    (b"1", "AGE"),
    (b"d", "Press u to undo"),
)
"""What is typed, and what is then seen. Once all the screens, and a dialog or message of each."""


def looked_at(store: Store) -> tuple[set[str], str]:
    """What kinds of sequences, and which text, were sent while everything was looked at."""
    with console([sys.executable, "-c", PROGRAM, store.url], size=(120, 40)) as screen:
        screen.shows("AGE", "Source")
        for keys, text in KEYS:
            screen.types(keys)
            screen.shows(text)
        screen.types(b"uq")
        assert screen.ends() == 0
        return taken_apart(screen.wire)


def taken_apart(wire: bytes) -> tuple[set[str], str]:
    """The kinds of sequences, and the text that is left without them and without line ends."""
    kinds, text = set(), ""
    sent, at = wire.decode("utf-8"), 0
    while at < len(sent):
        found = SEQUENCES.match(sent, at)
        assert found is not None, sent[at : at + 40]
        at = found.end()
        if found["text"]:
            text += found["text"]
        elif found["control"]:
            kinds.add(repr(found["control"]))
        elif found["final"]:
            kinds.add(kind_of(found))
        else:
            command = found["command"]
            kinds.add(found[0][:2] if command is None else f"OSC {command.partition(';')[0]}")
    return kinds, text


def kind_of(found: re.Match[str]) -> str:
    """A control sequence without its numbers; those that set a mode with them."""
    parameters = found["parameters"]
    is_plain = found["final"] in "mH"
    return f"CSI {re.sub('[0-9;]', '', parameters) if is_plain else parameters} {found['final']}"
