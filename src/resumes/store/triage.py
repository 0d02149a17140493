"""The ledger in the order in which people look at it: what asks for something comes first."""

from collections.abc import Sequence
from dataclasses import dataclass

from resumes.errors import InvalidArgument
from resumes.store.engine import Store
from resumes.store.identifiers import RESUME_ID
from resumes.store.ledger import (
    HAVE_REASONS,
    LAST,
    MOST_FILES,
    FileOutcome,
    FileRow,
    find_files,
    find_newest,
    find_owners,
)

ORDER = (FileOutcome.FAILED, FileOutcome.HELD, FileOutcome.DUPLICATE, FileOutcome.DONE)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the order: after the file of this claim, among those of its outcome."""

    outcome: FileOutcome
    claim_id: str

    def __str__(self) -> str:
        return f"{self.outcome}:{self.claim_id}"


@dataclass(frozen=True, slots=True)
class FilePage:
    """Files in order. `next` is where to go on; None when nothing follows."""

    files: Sequence[FileRow]
    next: Place | None


def place_of(file: FileRow) -> Place:
    """Where the file stands, as long as it has this outcome."""
    return Place(file.outcome, file.claim_id)


def parse_place(text: str) -> Place:
    """The place that `str` wrote: `failed:000660cd7eecf8906663e3fc`. Raises InvalidArgument."""
    outcome, _, claim_id = text.partition(":")
    if outcome not in set(FileOutcome) or not RESUME_ID.fullmatch(claim_id):
        raise InvalidArgument(
            f'Invalid place "{text[:80]}": use what the list ended with, an outcome and the id '
            "of a file with a colon between them"
        )
    return Place(FileOutcome(outcome), claim_id)


def list_by_outcome(
    store: Store,
    *,
    account_id: str | None = None,
    outcome: FileOutcome | None = None,
    reason: str | None = None,
    after: Place | None = None,
    limit: int = 100,
) -> FilePage:
    """Failed files, then held ones, duplicates, done ones; the newest of each first.

    Of one account or all, of one outcome or any; 1 to 1,000 of them. A file whose outcome changes
    between two pages may be on both or on neither.
    """
    size = max(1, min(limit, MOST_FILES))
    ids: list[tuple[str, str]] = []
    with store.read() as connection:
        owners = find_owners(connection, account_id)
        for one in _outcomes_after(outcome, reason, after):
            starts_within = after is not None and after.outcome is one
            ids += find_newest(
                connection,
                [(owner, one) for owner in owners],
                reason=reason,
                before=after.claim_id if after is not None and starts_within else LAST,
                limit=size + 1 - len(ids),
            )
            if len(ids) > size:
                break
        files = find_files(connection, owners, ids[:size])
    return FilePage(files, place_of(files[-1]) if files and len(ids) > size else None)


def _outcomes_after(
    outcome: FileOutcome | None, reason: str | None, after: Place | None
) -> Sequence[FileOutcome]:
    """Those that are asked for and not passed yet, in order."""
    left = ORDER if after is None else ORDER[ORDER.index(after.outcome) :]
    known = left if reason is None else [one for one in left if one in HAVE_REASONS]
    return [one for one in known if outcome in (None, one)]
