"""What can be asked for below the API, by path and method."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple

from starlette.exceptions import HTTPException

from resumes.store.keys import KeyHolder
from server.exchange import Exchange

API: Final = "/api/v1"
RESUMES: Final = f"{API}/resumes"
ONE: Final = re.compile(f"{RESUMES}/[^/]+")

Run = Callable[[Exchange, KeyHolder], Awaitable[None]]
"""Answers the requests of one operation, or raises what stood in the way."""

Read = Callable[[Exchange, KeyHolder], bytes]
"""The body of a 200, read from the store in this thread, or raises what stood in the way."""


class Operation(NamedTuple):
    """What can be asked for: its name in logs and metrics, and what answers it.

    An operation that only reads has its `read` as well; `run` is then the same with the answer sent.
    """

    name: str
    run: Run
    read: Read | None = None


class Operations:
    """Those on all resumes and those on one, by method."""

    def __init__(self, of_all: Mapping[str, Operation], of_one: Mapping[str, Operation]) -> None:
        self._of_all = of_all
        self._of_one = of_one

    def get(self, path: str, method: str) -> Operation:
        """What is asked for by a path below the API. Raises HTTPException 404 and 405."""
        if path == RESUMES:
            operations = self._of_all
        elif ONE.fullmatch(path):
            operations = self._of_one
        else:
            raise HTTPException(404)
        operation = operations.get(method)
        if operation is None:
            raise HTTPException(405, headers={"Allow": ", ".join(operations)})
        return operation
