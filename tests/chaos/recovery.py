"""How soon a server is itself again once what it lacked is there."""

from dataclasses import dataclass

from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.chaos.checker import Found
from tests.support.api import full_disks, load
from tests.support.api.load import Client


@dataclass(slots=True)
class Recovery:
    """Knows when the room that was gone was there again, by the monotonic clock."""

    began_s: float = 0.0

    def took_s(self, writers: list[Client]) -> float:
        """From then to the first resume that was acknowledged."""
        ends_s = [one.ended_s for one in load.attempts_of(writers) if one.id]
        return min(end_s for end_s in ends_s if end_s > self.began_s) - self.began_s


def note(figures: Figures, writers: list[Client], recovery: Recovery, found: Found) -> None:
    """What the clients saw, and what is there of it."""
    figures["acknowledged"] = load.acknowledged(writers)
    figures["answers_503"] = len(full_disks.refusals(writers))
    figures["of_them_unknown"] = sum(map(checker.is_unknown, load.attempts_of(writers)))
    figures["recovery_s"] = recovery.took_s(writers)
    figures["lost"], figures["refused_and_stored"] = found.lost, found.uninvited
