"""Work for workers: setups and batches, as an importer gives them."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from importer.claims import Claim
from importer.committing import Queue
from importer.names import WORK, name_hex
from importer.options import Options
from importer.steps import unobserved
from importer.taking import Candidate
from importer.worker import Batch, Setup
from resumes.store import Store
from resumes.store.accounts import AccountInfo

WORKER = "f" * 24
"""The id of a worker."""

_numbers = itertools.count(1)


def a_setup(store: Store, root: Path, **options: Any) -> Setup:
    """The first thing that a worker on ROOT is told."""
    return Setup(store.url, root, WORKER, Options(**options), unobserved)


def a_batch(
    root: Path, account: AccountInfo, *names: str, queues: Mapping[str, Queue] | None = None
) -> Batch:
    """Files in ROOT to try for an account, each under a claim of its own."""
    return Batch([_candidate(root, account, name) for name in names], dict(queues or {}))


def _candidate(root: Path, account: AccountInfo, name: str) -> Candidate:
    claim = Claim(
        id=f"{next(_numbers):024x}",
        folder=f"{root}/{WORK}/{WORKER}/{account.id}",
        account=account.name,
        name=name,
        name_hex=name_hex(name),
        claimed_at_us=1_800_000_000_000_000,
    )
    return Candidate(claim, f"{root}/{name}")
