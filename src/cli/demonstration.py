"""What a demo works with, and what it has done so far."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cli.session import Session

if TYPE_CHECKING:
    from importer.service import FileReport
    from resumes.settings import Settings

ACCOUNT = "demo"


@dataclass(slots=True)
class Demo:
    """What a demo has done so far. `secret` None: the account's key is not known here."""

    session: Session
    settings: "Settings"
    secret: str | None = None
    dropped: dict[str, bool] = field(default_factory=dict)
    """Names of samples that were dropped now, and whether each is a good one."""

    reports: list["FileReport"] = field(default_factory=list)

    @property
    def is_as_expected(self) -> bool:
        """Whether every good sample became a resume and every bad one was refused."""
        became = {Path(report.name).name: report.outcome for report in self.reports}
        return all(
            became.get(name) == ("done" if is_good else "failed")
            for name, is_good in self.dropped.items()
        )
