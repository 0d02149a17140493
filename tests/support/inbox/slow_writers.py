"""Who writes a file piece by piece."""

import threading
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Pace:
    """How a writer writes, and how long the importer wants quiet. Seconds."""

    settle_s: float
    gap_s: float
    pause_s: float
    chunks: int = 20


def pause(seconds: float) -> None:
    """Nothing happens for so long, since the scenario says so."""
    threading.Event().wait(seconds)


def write_slowly(path: Path, content: bytes, pace: Pace, *, begins_with: int = 0) -> None:
    """The content is appended piece by piece, with one long pause in the middle."""
    size = -(-len(content) // pace.chunks)
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    with path.open("ab", buffering=0) as file:
        for number, piece in enumerate(pieces[begins_with:], begins_with):
            file.write(piece)
            pause(pace.pause_s if number == len(pieces) // 2 else pace.gap_s)
