"""What the rules need of the product, however it is run."""

from pathlib import Path
from typing import Protocol

from resumes.store import Store
from tests.stateful.requests import Answer, Request


class Reach(Protocol):
    """One installation: a store, an API over it, and a watched folder."""

    root: Path
    """The watched folder."""

    @property
    def store(self) -> Store:
        """The store as it is open now, for what people do at the command line."""

    def now_us(self) -> int:
        """The time as the product has it."""

    def pass_s(self, seconds: float) -> None:
        """So much later it is, or the clock was set back; where it is real, nothing is done."""

    def ask(self, request: Request, secret: str) -> Answer:
        """The answer of the API to the holder of this key."""

    def lose(self, request: Request, secret: str, *, is_late: bool) -> None:
        """The request was sent, and the server ended before anybody had its answer.

        `is_late`: when there was an answer. Another server is there now.
        """

    def drain(self) -> None:
        """An importer took all that it could, and ended."""

    def drain_killed(self, at: int) -> None:
        """An importer was killed on its way, later the larger `at` is; or had ended before."""

    def copy_store(self) -> None:
        """The store was copied to a new place, and all of the service uses that one."""

    def back_up(self) -> Path:
        """The store of this moment is in a file."""

    def restore(self, backup: Path) -> bool:
        """All of the service uses the store that is in the file; whether in its old place, so that
        ids go on above those that were given there."""

    def restart(self) -> None:
        """The server ended in good order, and is there again."""
