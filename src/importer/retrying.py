"""Requests from the ledger: files that were put away are taken up again because somebody asked.

A file that failed lies in `_failed` and is known by the report beside it; a held one by its name.
"""

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from importer import holding, reports
from importer.batch import Candidate
from importer.filing import FAILED, report_path
from importer.holding import Held
from importer.names import find_extension
from resumes.file_names import REPORT
from resumes.store.requests import Action, Request


def find_candidates(
    root: Path,
    requests: Iterable[Request],
    held: Mapping[str, list[Held]],
    *,
    now_us: int,
) -> dict[str, Candidate]:
    """By claim id, what takes up the files that are asked for; none for those not found."""
    found: dict[str, Candidate] = {}
    failed: dict[str, Request] = {}
    for request in requests:
        if request.action is Action.RETRY:
            failed[request.claim_id] = request
            continue
        for one in held.get(request.account_id, []):
            if one.claim_id == request.claim_id:
                found[one.claim_id] = holding.as_return(one, root, now_us=now_us)
    for path, request in _iter_failed(root / FAILED, failed.values()):
        claim_id, account_id = request.claim_id, request.account_id
        found[claim_id] = holding.returned(path, claim_id, account_id, root, now_us=now_us)
    return found


def _iter_failed(folder: Path, requests: Iterable[Request]) -> Iterable[tuple[Path, Request]]:
    """The failed files that are asked for, and by whom. Whose they are their reports say, since an
    account that came from elsewhere may name claims of others."""
    by_end = {request.claim_id[-8:]: request for request in requests}
    if not by_end:
        return
    for reason in _folders(folder):
        with contextlib.suppress(OSError):
            for name in os.listdir(reason):  # noqa: PTH208  (names are all that is asked for)
                stem = name[: len(name) - len(find_extension(name) or "")]
                request = by_end.get(stem[-8:])
                if request is None or name.endswith(REPORT):
                    continue
                path = reason / name
                report = reports.find_report(report_path(path)) or {}
                asked = (request.claim_id, request.account_id)
                if (report.get("claim_id"), report.get("account_id")) == asked:
                    yield path, request


def _folders(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    return []
