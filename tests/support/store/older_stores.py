"""Stores as earlier versions left them, with rows in every table that upgrades touch."""

import shutil
from pathlib import Path

from sqlalchemy import Connection, text

from resumes.store import migrations
from resumes.store.sqlite import bootstrap
from resumes.store.sqlite.store import APPLICATION_ID, sqlite_engine

ACCOUNT = "a" * 16
DONE, FAILED, HELD = (f"{number:024x}" for number in (1, 2, 3))
RESUME = "b" * 24
WHEN = "2026-01-31T09:00:00.000Z"


def a_store_of_0001(path: Path, scratch: Path) -> None:
    """The store at `path` is of schema 0001: one resume, imported; one file failed, one held."""
    folder = scratch / "migrations-0001"
    shutil.copytree(migrations.FOLDER, folder)
    for revision in migrations.revisions(folder)[1:]:
        for file in (folder / "versions").glob(f"{revision}_*.py"):
            file.unlink()
    path.touch(mode=0o600)
    engine = sqlite_engine(path, transactions=False)
    with engine.connect() as connection:
        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
        connection.exec_driver_sql("PRAGMA journal_mode=WAL").fetchall()
    engine.dispose()
    bootstrap.upgrade_file(sqlite_engine(path, transactions=True), path, folder=folder)
    with sqlite_engine(path, transactions=True).begin() as connection:
        _fill(connection)


def _fill(connection: Connection) -> None:
    for table, row in (
        ("accounts", {"id": ACCOUNT, "name": "ana", "plan": "free", "created_at": WHEN}),
        ("account_usage", {"account_id": ACCOUNT, "resume_count": 1, "last_id_us": 7}),
        (
            "resumes",
            {
                "account_id": ACCOUNT,
                "id": RESUME,
                "filename": "Resume.pdf",
                "created_at": WHEN,
                "updated_at": WHEN,
            },
        ),
        ("documents", {"account_id": ACCOUNT, "id": RESUME, "document": "{}"}),
        ("idempotency", _key()),
        ("imported_items", _item()),
        ("imported_digests", {"account_id": ACCOUNT, "digest": b"d" * 32, "resume_id": RESUME}),
        ("imported_files", _file(DONE, "done")),
        ("imported_files", _file(FAILED, "failed", reason="invalid_json", source=b"{")),
        ("imported_files", _file(HELD, "held", reason="quota_reached", source=b"{}")),
    ):
        names = ", ".join(row)
        values = ", ".join(f":{name}" for name in row)
        connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({values})"), row)


def _key() -> dict[str, object]:
    return {
        "account_id": ACCOUNT,
        "key": "once",
        "body_sha256": b"s" * 32,
        "resume_id": RESUME,
        "created_at": WHEN,
    }


def _item() -> dict[str, object]:
    return {
        "account_id": ACCOUNT,
        "claim_id": DONE,
        "item": 0,
        "outcome": "done",
        "resume_id": RESUME,
    }


def _file(claim_id: str, outcome: str, **more: object) -> dict[str, object]:
    return {
        "account_id": ACCOUNT,
        "claim_id": claim_id,
        "name": "ana/ada.json",
        "outcome": outcome,
        "size_bytes": 100,
        "claimed_at": WHEN,
        "finished_at": WHEN,
        **more,
    }
