"""The rows of dropped files in the ledger: their outcomes, and whether their accounts are known."""

from collections.abc import Iterable

from importer import outcomes
from importer.job import Job, ReadFile
from importer.outcomes import Result
from resumes.errors import StatementRefused, StoreError
from resumes.store import accounts, import_ledger
from resumes.store.import_ledger import ClaimedFile
from resumes.watched_folder import shown_root


def is_store_failure(error: Exception) -> bool:
    """Return whether the whole store failed, so that the work has to wait until it recovers."""
    return isinstance(error, StoreError) and not isinstance(error, StatementRefused)


def row_of(job: Job, work: ReadFile, items: str | None = None) -> ClaimedFile:
    claim = work.claim
    return ClaimedFile(
        claim_id=claim.id,
        name=claim.name,
        size_bytes=work.signature.size_bytes,
        claimed_at=claim.claimed_at,
        source=work.head,
        root=shown_root(job.root),
        items=items,
    )


def record(job: Job, work: ReadFile, result: Result) -> None:
    """Write the file's outcome into the ledger. Raises StoreError."""
    row = row_of(job, work, items=result.as_ledger_text())
    row = row._replace(name=result.name_of(row.name))
    if result.items and result.items.has_forgotten:
        row = row._replace(source=b"")
    deadline_s = job.options.tuning.write_timeout_s
    try:
        import_ledger.record(
            job.store, work.claim.account_id, row, result.as_verdict(), deadline_s=deadline_s
        )
    except Exception as error:
        if is_store_failure(error):
            raise
        # The report has the outcome; one file must not stop the others.
        outcomes.log_exception("No ledger row for claim %s", work.claim.id)


def find_unowned(job: Job, works: Iterable[ReadFile]) -> list[ReadFile]:
    """Return the files whose accounts the store does not know, not even as deleted; they stay in the
    inbox, because the store may have been restored from an older backup. Raises StoreError."""
    works = [*works]
    account_ids = {work.claim.account_id for work in works}
    deleted = accounts.find_deleted(job.store, account_ids) if works else account_ids
    return [work for work in works if work.claim.account_id not in deleted]
