"""Requests of accounts, and waiting for what becomes of them."""

from dataclasses import dataclass

from tests.waiting import wait_until as wait_until


@dataclass(frozen=True)
class Of:
    """A request of an account."""

    account_id: str
    number: int = 0
