"""What the log is told of a disk that is full or fails: each thing once, until it is over."""

import logging

logger = logging.getLogger("resumes.store")


class Complaints:
    """What was told and is not over. One thread at a time may use it."""

    def __init__(self, over: str) -> None:
        self._over = over
        """What is told when all of it is over."""
        self._told: set[str] = set()

    def tell(self, what: str, cause: BaseException) -> None:
        """The log has a line on it, with the cause's words; none while the same is still told of."""
        sentence = f"{what}: {words_of(cause)}"
        if sentence not in self._told:
            self._told.add(sentence)
            logger.warning("%s", sentence)

    def end(self) -> None:
        """All of it is over, and would be told again. The log says so if anything was told."""
        if self._told:
            self._told.clear()
            logger.warning("%s", self._over)


def words_of(error: BaseException) -> str:
    """What the driver said; without the statement, which SQLAlchemy adds."""
    return str(getattr(error, "orig", error))
