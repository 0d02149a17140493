"""Where a dropped file lies now. The ledger does not keep that: it is looked for where files of
its outcome are put."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.claims import Claim
    from resumes.store.import_ledger import FileRow


@dataclass(frozen=True, slots=True)
class Place:
    """A file's place below a watched folder."""

    root: Path
    below: str

    @property
    def path(self) -> Path:
        """The file itself."""
        return self.root / self.below


def find_place(row: "FileRow", roots: Iterable[Path]) -> Place | None:
    """The first place below one of the folders where the file lies; None when it is in none."""
    from importer.filing import iter_places
    from importer.outcomes import conclusion_of

    belows = [*iter_places(_claim(row), conclusion_of(row))]
    places = (Place(root, below) for root in roots for below in belows)
    return next((place for place in places if os.path.lexists(place.path)), None)


def find_roots(row: "FileRow", inbox: Path) -> list[Path]:
    """The folders on this machine that it may lie in: the one that it was dropped in, and, should
    the home have been moved since, its inbox now."""
    # What was escaped in the ledger is no path any more.
    known = [Path(row.root)] if row.root and "\\" not in row.root else []
    return [root for root in dict.fromkeys([*known, inbox.absolute()]) if root.is_dir()]


def _claim(row: "FileRow") -> "Claim":
    from importer.claims import Claim

    claimed_at = datetime.fromisoformat(row.claimed_at)
    return Claim(
        id=row.claim_id,
        account_id=row.account_id,
        account=row.account,
        name=row.name,
        claimed_at_us=int(claimed_at.timestamp() * 1_000_000),
    )
