"""Where a stored resume came from."""

from sqlalchemy import bindparam, select

from resumes.store.engine import Store
from resumes.store.identifiers import POSITION_DIGITS
from resumes.store.ledger import LAST, FileOutcome
from resumes.store.schema import imported_items
from resumes.store.statements import Prepared

# A claim is mostly made just before its resumes are, and its id begins with its time: looked
# for backwards from the resume's own, it is soon found without an index that imports pay for.
CLAIM_OF_RESUME = Prepared(
    select(imported_items.c.claim_id)
    .where(
        imported_items.c.account_id == bindparam("account_id"),
        imported_items.c.claim_id <= bindparam("before"),
        imported_items.c.resume_id == bindparam("resume_id"),
        imported_items.c.outcome == bindparam("outcome"),
    )
    .order_by(imported_items.c.claim_id.desc())
    .limit(1)
)


def find_claim(store: Store, account_id: str, resume_id: str) -> str | None:
    """The claim of the file that became this resume; None for one that came another way.

    Takes time that grows with the imports before it when there is none.
    """
    with store.read() as connection:
        row = CLAIM_OF_RESUME.run(
            connection,
            account_id=account_id,
            resume_id=resume_id,
            before=resume_id[:POSITION_DIGITS] + LAST,
            outcome=FileOutcome.DONE.value,
        ).fetchone()
    return None if row is None else str(row[0])
