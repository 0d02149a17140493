"""Who came first: new files of an account queue behind those that it holds (pitfalls I7)."""

from dataclasses import dataclass

from importer.claims import Claim
from importer.outcomes import Conclusion
from resumes.store.ledger import FileOutcome


@dataclass(frozen=True, slots=True)
class Queue:
    """The held files of an account: which came first, and what those who join are told."""

    first_claim_id: str
    message: str


class Queues:
    """The queues of all accounts, by account id."""

    def __init__(self) -> None:
        self.by_account: dict[str, Queue] = {}

    def note(self, claim: Claim, conclusion: Conclusion) -> None:
        """Files of the account that come later queue behind it, if it is held."""
        if conclusion.outcome is FileOutcome.HELD and conclusion.refusal is not None:
            # Of a file of several resumes: why, not how many of its own.
            held = (item.refusal for item in conclusion.items if item.outcome is FileOutcome.HELD)
            refusal = next((one for one in held if one is not None), conclusion.refusal)
            self.by_account.setdefault(claim.account_id, Queue(claim.id, refusal.message))

    def find(self, claim: Claim) -> str | None:
        """What a file is told that others of its account came before; None when none did."""
        queue = self.by_account.get(claim.account_id)
        return None if queue is None or claim.id < queue.first_claim_id else queue.message
