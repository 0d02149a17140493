"""What was asked of the service and what it answered, as checkers need it."""

from dataclasses import dataclass, field
from threading import Lock


@dataclass(frozen=True, slots=True)
class Answer:
    """One request. Times are on the monotonic clock."""

    process: int
    """Which API process was asked, from 0."""

    method: str
    asked_s: float
    answered_s: float
    status: int | None
    """None: the connection broke, or nothing came."""

    error: str | None = None
    """The message of an error."""

    @property
    def is_create(self) -> bool:
        """Whether it has created something, or said again what it had."""
        return self.method == "POST" and self.status == 201


@dataclass(slots=True)
class Creation:
    """A resume that was sent, as often as it took. Its marker is its Idempotency-Key, and the name
    of the person in it."""

    marker: str
    ids: list[str] = field(default_factory=list)
    """What each 201 said: the same id each time, if all is well."""

    refusals: list[int] = field(default_factory=list)
    """Statuses that say that sending it again is of no use."""


@dataclass(slots=True)
class Walk:
    """The pages that a client saw that followed the cursor."""

    process: int
    acknowledged_before: frozenset[str]
    """Ids that somebody was told before the walk began."""

    ids: list[str] = field(default_factory=list)
    is_finished: bool = False
    """Whether it came to the last page. Unfinished ones say nothing of what they did not reach."""


class History:
    """One account's. Threads may add to it at the same time."""

    def __init__(self, account: str) -> None:
        self.account = account
        self.answers: list[Answer] = []
        self.creations: dict[str, Creation] = {}
        self.dropped: list[str] = []
        """The markers of files that were dropped, each once."""

        self.done: set[str] = set()
        """Those of them that the importer has put away as done."""

        self.walks: list[Walk] = []
        self._acknowledged: set[str] = set()
        self._lock = Lock()

    def add(self, answer: Answer) -> None:
        """It is known."""
        with self._lock:
            self.answers.append(answer)

    def answers_since(self, moment_s: float) -> list[Answer]:
        """Those that were asked for at this moment or later."""
        with self._lock:
            return [answer for answer in self.answers if answer.asked_s >= moment_s]

    def begin(self, marker: str) -> Creation:
        """A resume with this marker is about to be sent."""
        with self._lock:
            creation = self.creations[marker] = Creation(marker)
            return creation

    def acknowledge(self, creation: Creation, resume_id: str) -> None:
        """The client was told that it is stored."""
        with self._lock:
            creation.ids.append(resume_id)
            self._acknowledged.add(resume_id)

    def begin_walk(self, process: int) -> Walk:
        """A client begins with the first page."""
        with self._lock:
            walk = Walk(process, frozenset(self._acknowledged))
            self.walks.append(walk)
            return walk
