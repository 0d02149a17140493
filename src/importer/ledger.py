"""Ledger rows of dropped files: writing their outcomes, and finding files of unknown accounts."""

from collections.abc import Iterable, Sequence

from importer import outcomes
from importer.claims import File
from importer.job import Job
from importer.outcomes import Result
from resumes.errors import ResumesError, StatementRefused, StoreError
from resumes.store import accounts, import_ledger
from resumes.store.creation import Creation, Outcome, create_files
from resumes.store.import_ledger import ClaimedFile
from resumes.watched_folder import shown_root


def is_store_failure(error: Exception) -> bool:
    """Return whether the store as a whole failed, so that work must wait until it recovers."""
    return isinstance(error, StoreError) and not isinstance(error, StatementRefused)


def row_of(job: Job, file: File, items: str | None = None) -> ClaimedFile:
    claim = file.claim
    return ClaimedFile(
        claim_id=claim.id,
        name=claim.name,
        size_bytes=file.signature.size_bytes,
        claimed_at=claim.claimed_at,
        source=file.head,
        root=shown_root(job.root),
        items=items,
    )


def record(job: Job, file: File, result: Result) -> None:
    """Write the file's outcome to the ledger. Raises StoreError."""
    row = row_of(job, file, items=result.as_ledger_text())
    row = row._replace(name=result.name_of(row.name))
    if result.items and result.items.has_forgotten:
        row = row._replace(source=b"")
    deadline_s = job.options.tuning.write_timeout_s
    try:
        import_ledger.record(
            job.store, file.claim.account_id, row, result.as_verdict(), deadline_s=deadline_s
        )
    except Exception as error:
        if is_store_failure(error):
            raise
        # The report contains the outcome; one file must not stop the others.
        outcomes.log_exception("No ledger row for claim %s", file.claim.id)


def create(
    job: Job, creations: Sequence[Creation]
) -> list[Sequence[Outcome] | ResumesError | Result]:
    """Return the results of `create_files`. If it fails, retry each file, or each item of a
    bundle's slice, separately; a second failure is an internal error. Raises StoreError."""
    try:
        deadline_s = job.options.tuning.write_timeout_s
        return [*create_files(job.store, creations, deadline_s=deadline_s)]
    except Exception as error:
        if is_store_failure(error):
            raise
        parts = [
            creation._replace(resumes=resumes)
            for creation in creations
            for resumes in ([[new] for new in creation.resumes] or [[]])
        ]
        if len(parts) == 1:
            return [outcomes.internal_error()]
        outcomes.log_exception(
            "Creating from %d files or items failed; each is tried alone", len(parts)
        )
        return [result for part in parts for result in create(job, [part])]


def find_unowned(job: Job, files: Iterable[File]) -> list[File]:
    """Return the files whose accounts the store does not know, not even as deleted. They stay in
    the inbox, because the store may have been restored from an older backup. Raises StoreError."""
    files = [*files]
    account_ids = {file.claim.account_id for file in files}
    deleted = accounts.find_deleted(job.store, account_ids) if files else account_ids
    return [file for file in files if file.claim.account_id not in deleted]
