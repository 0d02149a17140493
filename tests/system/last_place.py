"""Many clients that want the last place of an account at the same moment."""

import os
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.resumes.builders import a_document
from tests.stores import make_account
from tests.system import programs

CLIENTS = 100
LIMIT = 3


def last_place_goes_to_one(home: Path, rounds: int) -> None:
    """In each round a place is freed, all ask for it, and exactly one has it."""
    key = make_account(os.environ.get("RESUMES_DATABASE", home), "ana", max_resumes=LIMIT)
    together = threading.Barrier(CLIENTS)
    with (
        programs.serving(home) as one,
        programs.serving(home) as two,
        ThreadPoolExecutor(CLIENTS) as pool,
    ):

        def create(n: int) -> int:
            api = (one, two)[n % 2]
            together.wait(60)
            body = a_document(f"Client {n}")
            return programs.call(f"{api}/api/v1/resumes", key, method="POST", body=body)[0]

        for n in range(LIMIT):
            body = a_document(f"Resident {n}")
            programs.call(f"{one}/api/v1/resumes", key, method="POST", body=body)
        for _ in range(rounds):
            last = programs.walk(one, key, limit=100)[-1]
            assert programs.call(f"{two}/api/v1/resumes/{last}", key, method="DELETE")[0] == 200

            statuses = Counter(pool.map(create, range(CLIENTS)))

            assert statuses == {201: 1, 403: CLIENTS - 1}
