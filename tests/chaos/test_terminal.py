"""Text of strangers, on its way to a terminal."""

import random
from pathlib import Path
from typing import Final

import pytest

from resumes.store import open_store
from resumes.text import is_harmless
from tests.chaos.campaign import Figures
from tests.support.terminal.console import looked_at
from tests.support.terminal.hostility import WORST, fill

HONEST: Final = ["Ada", "Bo", "मृणालिनी"]
"""The last one is in a script with spacing marks, after which the cursor is placed again."""
ROUNDS: Final = 2
TEXTS: Final = 12
PIECES: Final = 5
PIECE: Final = 120
"""Characters of a piece, of which some make a text."""


@pytest.mark.chaos(
    32,
    fault="escape sequences, markup and odd characters in resumes, names and errors",
    promise="the terminal receives no escape sequences except those that are also used to display harmless data",
)
def test_no_untrusted_text_controls_a_terminal(
    tmp_path: Path, figures: Figures, seed: random.Random
) -> None:
    """The test fills every field that can hold untrusted text with random combinations of hostile
    strings, and a real terminal displays the result."""
    expected, _ = seen(tmp_path / "honest.db", HONEST)
    kinds: set[str] = set()
    text = ""
    for number in range(ROUNDS):
        more, drawn = seen(tmp_path / f"{number}.db", [a_text(seed) for _ in range(TEXTS)])
        kinds |= more
        text += drawn

    harmful = [char for char in text if not is_harmless(char)]
    figures["characters_drawn"] = len(text)
    figures["unexpected_sequences"] = len(kinds - expected)
    figures["control_characters"] = len(harmful)
    assert kinds <= expected
    assert not harmful


def a_text(chance: random.Random) -> str:
    """Pieces of the worst, one behind the other."""
    pieces = []
    for _ in range(PIECES):
        worst = chance.choice(WORST)
        at = chance.randrange(len(worst))
        pieces.append(worst[at : at + PIECE])
    return "".join(pieces)


def seen(path: Path, texts: list[str]) -> tuple[set[str], str]:
    """The kinds of sequences and the text that a terminal is sent for a store with these texts."""
    with open_store(f"sqlite:///{path}") as store:
        fill(store, texts)
        return looked_at(store)
