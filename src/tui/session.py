"""What the screens share for as long as the terminal UI runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from resumes.settings import Settings
from resumes.store.store import Store
from tui.deletions import Deletions
from tui.pdf_files import PdfFiles


@dataclass(slots=True)
class UiSession:
    """The store, the settings in force, and where the reader is.

    `account` is the name of the account whose resumes are shown; None means the first.
    `keys_account` is the one whose keys are shown, `imports_account` the one whose files are;
    None means all. `program` is how commands begin that are shown to be typed elsewhere.
    """

    store: Store
    read_only: bool = False
    account: str | None = None
    keys_account: str | None = None
    open_id: str | None = None
    """The resume to show first; None once it was."""

    imports_account: str | None = None
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
