"""The pages of the documentation: their links, their chapters, and what they have typed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROMPTS: Final = ("$ ", "# ")
ID: Final = re.compile(r"\b[0-9a-f]{24}\b")
FILE_ID: Final = re.compile(r"-[0-9a-f]{8}(?=[.\s])")
FIGURE: Final = re.compile(r"\b\d[\d,.]* (?=MB|resumes)")
INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d[:-]\d\d([:-]\d\d\.\d{3}Z)?)?")


@dataclass(frozen=True, slots=True)
class Step:
    """A command on a page, and what the page says that it prints. The line counts from 1."""

    page: str
    line: int
    prompt: str
    command: str
    printed: str

    @property
    def is_for_root(self) -> bool:
        """Whether the prompt is that of the machine's administrator."""
        return self.prompt == "# "

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.command}"


def all_pages(repository: Path) -> list[Path]:
    """Every page that a reader of this repository may come to."""
    folders = ("", "docs", "docs/guides", "docs/decisions")
    root = repository.resolve()
    return [page for folder in folders for page in sorted((root / folder).glob("*.md"))]


def steps(repository: Path, page: str) -> list[Step]:
    """What the page's `console` blocks have typed, in order."""
    found = []
    text = (repository / page).read_text(encoding="utf-8")
    for number, lines in blocks(text, "console"):
        starts = [at for at, line in enumerate(lines) if line.startswith(PROMPTS)]
        for at, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            typed = at + 1
            while lines[typed - 1].endswith("\\"):
                typed += 1
            command = "\n".join([lines[at][2:], *lines[at + 1 : typed]])
            printed = "\n".join(lines[typed:end])
            found.append(Step(page, number + at, lines[at][:2], command, printed))
    return found


def blocks(text: str, language: str) -> Iterator[tuple[int, list[str]]]:
    """The fenced blocks of a language, each with the number of its first line."""
    inside: list[str] | None = None
    begins, is_wanted = 0, False
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith("```"):
            if inside is not None:
                inside.append(line)
        elif inside is None:
            inside, begins, is_wanted = [], number + 1, line == f"```{language}"
        else:
            if is_wanted:
                yield begins, inside
            inside = None


def agrees(printed: str, said: str) -> bool:
    """Whether a page that says this is right about a command that printed that.

    `…` stands for anything. Ids, instants and figures are others each time, and white space may
    be laid out otherwise.
    """
    parts = [re.escape(_plain(part)) for part in said.split("…")]
    return re.fullmatch(".*".join(parts), _plain(printed), re.DOTALL) is not None


def _plain(text: str) -> str:
    for pattern in (INSTANT, ID, FILE_ID, FIGURE):
        text = pattern.sub("*", text)
    return "".join(text.split())


def anchors(page: Path) -> set[str]:
    """What a link to a chapter of the page may end with."""
    return {_anchor(title) for title, _ in _chapters(page)}


def chapter(page: Path, anchor: str) -> str:
    """The text of the page's chapter that a link with this end leads to, its title included."""
    (found,) = (title + text for title, text in _chapters(page) if _anchor(title) == anchor)
    return found


def _chapters(page: Path) -> list[tuple[str, str]]:
    text = page.read_text(encoding="utf-8")
    # What a shell shows may begin like a title.
    shell = re.compile(r"^```console$.*?^```$", re.MULTILINE | re.DOTALL)
    text = shell.sub(lambda block: block[0].replace("\n#", "\n $"), text)
    parts = re.split(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def _anchor(title: str) -> str:
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Where the page's links lead in this repository: a path, and the chapter or nothing."""
    text = re.sub(r"`[^`]*`", "", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        path, _, chapter = target.partition("#")
        yield (page.parent / path).resolve() if path else page, chapter
