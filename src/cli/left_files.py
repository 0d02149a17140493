"""The files that a dry run leaves where they are: the first by name with the reason, then a count."""

from typing import TYPE_CHECKING

from cli.outcomes import line
from cli.output import put_json_line, say
from cli.progress import Meter
from cli.session import Session

if TYPE_CHECKING:
    from importer.service import Ignored

MOST = 20
"""So many are named to people; as JSON all are."""

OUTCOME = "ignored"


class LeftFiles:
    """Tells what is left, beside what a meter tells."""

    def __init__(self, session: Session, meter: Meter) -> None:
        self._session = session
        self._meter = meter
        self._count = 0

    def tell(self, one: "Ignored") -> None:
        """The file has its line, or is counted."""
        self._count += 1
        if self._session.as_json:
            put_json_line(_as_json(one))
        elif self._count <= MOST:
            self._meter.tell(OUTCOME, one.name, one.why.sentence)

    def close(self) -> None:
        """Those without a line are told by their number."""
        if self._count > MOST and not self._session.as_json:
            say(line(OUTCOME, f"and {self._count - MOST:,} more"))


def _as_json(one: "Ignored") -> dict[str, str | int | None]:
    """In the shape of a file that came to an end."""
    return {
        "account": None,
        "name": one.name,
        "outcome": OUTCOME,
        "reason": one.why.value,
        "message": one.why.sentence,
        "filedAs": None,
        "resumeId": None,
        "warnings": 0,
    }
