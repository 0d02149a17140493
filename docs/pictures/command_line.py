"""The picture of the command line: what it prints of a home with the samples. draw.py calls it."""

import io
import os
import shlex
import shutil
from pathlib import Path
from typing import Final
from unittest.mock import patch

from click.testing import CliRunner
from rich.console import Console
from rich.text import Text

from cli.commands.demo import find_samples
from cli.main import resumes

WIDTH: Final = 118
DROPPED: Final = ("nurse-double-column-en.json", "student-double-column-uk.json")
REFUSED: Final = ("year-as-text.json",)
LISTS: Final = (
    "imports list --account demo --failed-first --limit 4",
    "list --account demo --limit 2",
)
"""Of what was imported while the clock stood still: these show ids."""

WATCH: Final = "watch --once --settle 0"
PLANS: Final = "plans list"


def picture(home: Path) -> str:
    """What people see of a few commands, as SVG."""
    lists = [shown(home, words) for words in LISTS]
    drop(home / "inbox" / "archive")
    parts = [shown(home, WATCH), *lists, shown(home, PLANS)]
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(Text("\n\n").join(parts))
    return console.export_svg(title="resumes")


def drop(folder: Path) -> None:
    """Two good samples and a bad one are in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for samples in find_samples():
        for sample in samples:
            if sample.name in (*DROPPED, *REFUSED):
                shutil.copy(str(sample), folder)


def shown(home: Path, words: str) -> Text:
    """The command as it is typed, and its output in colour."""
    line = ["--home", str(home), *shlex.split(words)]
    with patch.dict(os.environ, {"COLUMNS": str(WIDTH)}):
        result = CliRunner().invoke(resumes, line, prog_name="resumes", color=True)
    typed = Text.assemble(("$ ", "bold cyan"), (f"resumes {words}", "bold"))
    return Text("\n").join([typed, Text.from_ansi(result.output.rstrip())])
