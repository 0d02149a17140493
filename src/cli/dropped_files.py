"""A file of the ledger as people and programs are shown it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cli.output import Column, instant, put, put_fields, put_table, say
from cli.text import safe_text

if TYPE_CHECKING:
    from cli.whereabouts import Place
    from resumes.store.import_items import Items
    from resumes.store.import_ledger import FileRow
    from resumes.store.import_requests import Request

COLUMNS = (
    Column("id"),
    Column("outcome"),
    Column("reason"),
    Column("file", is_flexible=True),
)
NOT_FOUND = "not found where it was put"

PROBLEM_COLUMNS = (
    Column("item", is_number=True),
    Column("place"),
    Column("reason"),
    Column("message", is_flexible=True),
)


def put_files(files: Iterable["FileRow"]) -> None:
    """The files as a table on standard output."""
    put_table(COLUMNS, ([row.claim_id, row.outcome, row.reason or "-", row.name] for row in files))


def put_file(
    row: "FileRow", request: "Request | None", place: "Place | None", *, is_near: bool
) -> None:
    """All that is known of the file on standard output, with what went wrong inside it.

    `is_near`: its folder is on this machine, so that without a `place` the file is not in it.
    """
    put_fields([(name, value) for name, value in _fields(row, request, place, is_near) if value])
    if row.items is not None and row.items.problems:
        put()
        _put_problems(row.items)


def _fields(
    row: "FileRow", request: "Request | None", place: "Place | None", is_near: bool
) -> list[tuple[str, str]]:
    not_found = NOT_FOUND if is_near else ""
    return [
        ("file", row.name),
        ("folder", row.root or ""),
        ("lies at", not_found if place is None else _shown(row, place)),
        ("account", row.account),
        ("outcome", row.outcome),
        ("reason", row.reason or ""),
        ("message", row.message or ""),
        ("at", row.path or ""),
        ("byte", "" if row.byte_offset is None else str(row.byte_offset)),
        ("resumes", "" if row.items is None else _counts(row.items)),
        ("asked", "" if request is None else _asked(request)),
        ("size", f"{row.size_bytes:,} bytes"),
        ("claimed", f"{instant(row.claimed_at)} UTC"),
        ("finished", f"{instant(row.finished_at)} UTC"),
        ("id", row.claim_id),
    ]


def _shown(row: "FileRow", place: "Place") -> str:
    return place.below if str(place.root) == row.root else str(place.path)


def _counts(items: "Items") -> str:
    counts = {
        "done": items.done,
        "duplicate": items.duplicate,
        "held": items.held,
        "failed": items.failed,
    }
    parts = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items() if count)
    return f"{items.total:,}: {parts}" if parts else f"{items.total:,}"


def _asked(request: "Request") -> str:
    return f"{request.action}, since {instant(request.requested_at)} UTC"


def _put_problems(items: "Items") -> None:
    from resumes.store.import_items import MAX_PROBLEMS

    put_table(
        PROBLEM_COLUMNS,
        (
            [str(problem.item), problem.place, problem.reason or "-", problem.message or "-"]
            for problem in items.problems
        ),
    )
    if len(items.problems) == MAX_PROBLEMS:
        say(f"The ledger keeps the first {MAX_PROBLEMS}; the report beside the file may say more.")


def put_source(source: bytes) -> None:
    """The bytes as text on standard output, escaped; what is not UTF-8 too."""
    from resumes.store.import_ledger import SOURCE_BYTES

    for line in readable(source).removesuffix("\n").split("\n"):
        put(safe_text(line))
    if len(source) == SOURCE_BYTES:
        say("The ledger keeps the first 64 KiB.")


def readable(source: bytes) -> str:
    """The bytes as text, those that are not UTF-8 as `\\xff`."""
    return source.decode("utf-8", "backslashreplace")


def as_json(row: "FileRow") -> dict[str, Any]:
    """The file's row as `--json` prints it; null where there is nothing to say."""
    return {
        "id": row.claim_id,
        "account": row.account,
        "root": row.root,
        "name": row.name,
        "outcome": row.outcome,
        "reason": row.reason,
        "message": row.message,
        "path": row.path,
        "byteOffset": row.byte_offset,
        "items": None if row.items is None else row.items.as_json(),
        "sizeBytes": row.size_bytes,
        "claimedAt": row.claimed_at,
        "finishedAt": row.finished_at,
    }


def request_as_json(request: "Request | None") -> dict[str, Any] | None:
    """What is asked for the file as `--json` prints it; null for nothing."""
    if request is None:
        return None
    return {"action": request.action, "requestedAt": request.requested_at}
