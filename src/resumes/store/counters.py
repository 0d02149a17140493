"""The accounts' counters, which quotas go by, held against the resumes that they stand for."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, func, select

from resumes.store.engine import Store
from resumes.store.schema import account_usage, accounts, resumes


@dataclass(frozen=True, slots=True)
class ResumeCounter:
    """What the counter of an account says, and how many resumes there were at that moment."""

    account: str
    resume_count: int
    rows: int

    @property
    def is_right(self) -> bool:
        """Whether both are the same; if not, it is a defect."""
        return self.resume_count == self.rows


_ROWS: Final = func.count(resumes.c.id)
_COUNTERS: Final = (
    select(accounts.c.name, account_usage.c.resume_count, _ROWS)
    .join(account_usage, account_usage.c.account_id == accounts.c.id)
    .outerjoin(resumes, resumes.c.account_id == accounts.c.id)
    .group_by(accounts.c.id, accounts.c.name, account_usage.c.resume_count)
)


def list_wrong(store: Store) -> list[ResumeCounter]:
    """The counters that are wrong, by the name of the account; empty proves every quota exact."""
    wrong = _COUNTERS.having(account_usage.c.resume_count != _ROWS).order_by(accounts.c.name)
    with store.read() as connection:
        return [ResumeCounter(*row) for row in connection.execute(wrong)]


def find_counter(connection: Connection, account_id: str) -> ResumeCounter | None:
    """The account's counter; None for an account that is not there, or has none."""
    row = connection.execute(_COUNTERS.where(accounts.c.id == account_id)).first()
    return None if row is None else ResumeCounter(*row)
