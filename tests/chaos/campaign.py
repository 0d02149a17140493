"""The rows of the fault campaign, and the table of them in a page.

A row is a test: its marker says the fault and what is promised, the first line of its docstring how
the fault was injected, and `figures` what it measured. A test with parameters has a row for each.
"""

import importlib
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Final

Figures = dict[str, float]
"""What a row measured, by names that end in their unit where they have one: `lost`, `outage_s`."""

HEAD: Final = (
    "| # | fault | what is promised | how it was injected | result | test | seed |\n"
    "| --- | --- | --- | --- | --- | --- | --- |\n"
)
FAILED: Final = "**failed**"
"""What stands in place of the figures of a row whose test failed."""
FOLDER: Final = Path(__file__).parent
UNITS: Final = {
    "s": "s",
    "ms": "ms",
    "bytes": "bytes",
    "kb": "KB",
    "mb": "MB",
    "percent": "%",
    "kb/min": "KB/min",
    "ms/min": "ms/min",
    "/min": "/min",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A fault and what came of it. `figures` and `seed` are empty in a row that was not run."""

    number: int
    """Of the fault; tests of the same fault share it."""
    fault: str
    promise: str
    injected: str
    test: str
    """The module's file and the function, with the parameters in square brackets."""
    figures: str = ""
    seed: str = ""

    @property
    def function(self) -> str:
        """The test without its parameters."""
        return self.test.partition("[")[0]

    @property
    def order(self) -> tuple[int, str]:
        """Where the row stands."""
        return self.number, self.test

    @property
    def claim(self) -> tuple[int, str, str, str, str]:
        """All that the test's source says of itself."""
        return self.number, self.fault, self.promise, self.injected, self.function


def find_row(function: FunctionType, *, case: str = "") -> Row | None:
    """The row that a test function says it is; None of one that is no row. `case` is the part of
    the test's name that stands in square brackets, with them.

    Raises ValueError if it has the marker and no docstring.
    """
    for mark in getattr(function, "pytestmark", []):
        if mark.name == "chaos":
            injected = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")
            if not injected:
                raise ValueError(f"{function.__name__}: say in a docstring how the fault comes")
            test = f"{function.__module__.rpartition('.')[2]}.py::{function.__name__}{case}"
            return Row(mark.args[0], **mark.kwargs, injected=injected, test=test)
    return None


def iter_rows() -> Iterator[Row]:
    """The rows of all modules beside this one, without figures."""
    for path in sorted(FOLDER.glob("test_*.py")):
        module = importlib.import_module(f"tests.chaos.{path.stem}")
        for function in vars(module).values():
            if inspect.isfunction(function) and function.__module__ == module.__name__:
                row = find_row(function)
                if row is not None:
                    yield row


def written(figures: Mapping[str, float]) -> str:
    """The figures for people: `3 kills, 0 lost, outage 2.1 s`."""
    return ", ".join(_figure(name, value) for name, value in figures.items())


def _figure(name: str, value: float) -> str:
    number = f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"
    what, _, last = name.rpartition("_")
    if last in UNITS:
        space = " " if UNITS[last][0].isalpha() else ""
        return f"{what.replace('_', ' ')} {number}{space}{UNITS[last]}"
    return f"{number} {name.replace('_', ' ')}"


def parse_rows(page: str) -> list[Row]:
    """The rows of the table in a page; none if it has no such table."""
    _, found, rest = page.partition(HEAD)
    lines = rest[: _length(rest)].splitlines() if found else []
    return [_parse_row(line) for line in lines]


def merged(page: str, rows: Iterable[Row], claims: Iterable[Row]) -> str:
    """The page with these rows in its table. Of the others there those stay of which a test says
    the same still, in `claims`. Raises ValueError if the page has no table."""
    before, found, rest = page.partition(HEAD)
    if not found:
        raise ValueError(f"the page has no table: it begins with the line {HEAD.splitlines()[0]}")
    said = {row.claim for row in claims}
    table = {row.test: row for row in parse_rows(page) if row.claim in said}
    table |= {row.test: row for row in rows}
    lines = [_line(row) for row in sorted(table.values(), key=lambda row: row.order)]
    return before + HEAD + "".join(lines) + rest[_length(rest) :]


def _length(rest: str) -> int:
    """How much of what comes after the table's head belongs to the table."""
    lines = re.match(r"(\|.*\n)*", rest)
    return lines.end() if lines else 0


def _line(row: Row) -> str:
    cells = (row.fault, row.promise, row.injected, row.figures)
    texts = [text.replace("|", "\\|") for text in cells]
    return " ".join(["|", f"{row.number} |", *(f"{text} |" for text in texts)]) + (
        f" `{row.test}` | {row.seed} |\n"
    )


def _parse_row(line: str) -> Row:
    cells = re.split(r"(?<!\\)\|", line)[1:-1]
    texts = [cell.strip().replace("\\|", "|") for cell in cells]
    number, fault, promise, injected, figures, test, seed = texts
    return Row(int(number), fault, promise, injected, test.strip("`"), figures, seed)
