"""What the screens share for as long as the terminal UI runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from resumes.settings import Settings
from resumes.store.store import Store
from tui.deletions import Deletions
from tui.keys import Target
from tui.pdf_files import PdfFiles


class TrailStep(NamedTuple):
    """A link that was followed: from which mode, and where that was, as the title line says it."""

    mode: str
    path: tuple[str, ...]


@dataclass(slots=True)
class UiSession:
    """The store, the settings in force, and where the reader is.

    `accounts` has the name of the account that each mode shows; None, or none, means all, or of
    resumes the first. `program` is how commands begin that are shown to be typed elsewhere.
    """

    store: Store
    read_only: bool = False
    accounts: dict[str, str | None] = field(default_factory=dict)
    link: Target | None = None
    """What the list that is shown next is to show; None once it did."""

    trail: list[TrailStep] = field(default_factory=list)
    """The links that led here, each from another mode."""

    settings: Settings = field(default_factory=Settings)
    program: str = "resumes"
    deletions: Deletions = field(default_factory=Deletions)
    refresh_s: float | None = None
    """How often what is seen is read again; None is each screen's own choice."""

    pdfs: PdfFiles = field(init=False)

    def __post_init__(self) -> None:
        self.pdfs = PdfFiles(self.settings.format, self.settings.home)

    def close(self) -> None:
        """Remove what was made for this session alone; the store stays open."""
        self.pdfs.close()

    @property
    def keymap(self) -> Mapping[str, str]:
        """The keys of the user's own, by the ids of actions."""
        return self.settings.keymap
