"""The table of what is fuzzed."""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.fuzz.changing import ChangeBytes, changed, changed_file, changed_request
from tests.fuzz.cursors import check_cursors
from tests.fuzz.dropped_files import check_dropped_file
from tests.fuzz.http import check_http
from tests.fuzz.parsing import check_converting, check_parsing
from tests.fuzz.shown_text import check_shown_text

CORPUS: Final = Path(__file__).parent / "corpus"


@dataclass(frozen=True, slots=True)
class Target:
    """A check and what it is fed."""

    name: str

    check: Callable[[bytes], None]
    """Raises AssertionError, or whatever nobody declared."""

    max_bytes: int
    """The longest input that is tried."""

    change: Callable[[bytes, random.Random, ChangeBytes], bytes] | None = None
    """Changes an input by its format; None where one byte is as good as another."""

    @property
    def folder(self) -> Path:
        """Its inputs in the checkout: seeds, and what once failed, whose names begin `found`."""
        return CORPUS / self.name

    def iter_inputs(self) -> Iterator[Path]:
        """The files of the folder, in the order of their names."""
        yield from sorted(path for path in self.folder.iterdir() if path.is_file())


TARGETS: Final[Mapping[str, Target]] = {
    target.name: target
    for target in (
        Target("parsing", check_parsing, 48 * 1024, changed),
        Target("converting", check_converting, 48 * 1024, changed),
        Target("cursors", check_cursors, 512),
        Target("dropped_files", check_dropped_file, 96 * 1024, changed_file),
        Target("http", check_http, 4 * 1024, changed_request),
        Target("shown_text", check_shown_text, 1024),
    )
}
