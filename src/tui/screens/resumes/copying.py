"""What of a resume can be copied to the clipboard."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from resumes.analyzer import whole_view
from resumes.store.store import Store
from resumes.text import escaped_json
from tui.screens.chooser import Chooser
from tui.screens.resumes.views import Shown
from tui.text import safe
from tui.widgets.columns import Column, text_cell


@dataclass(frozen=True, slots=True)
class Copyable:
    """Something that can be copied, and what it is called."""

    what: str
    text: str


COLUMNS: tuple[Column[Copyable], ...] = (
    Column("WHAT", 10, lambda one: safe(one.what)),
    Column("", 0, lambda one: text_cell(one.text)),
)


def copyables(shown: Shown, pdf: Path | None) -> list[Copyable]:
    """What can be copied of the resume; nothing that it does not have. `pdf`: where its PDF is."""
    document = whole_view(shown.document)
    header = document["header"]
    found = [
        Copyable("id", shown.entry.id),
        Copyable("name", header.get("name") or ""),
        Copyable("e-mail", header.get("email") or ""),
        Copyable("phone", header.get("phone") or ""),
        Copyable("file name", shown.entry.filename),
        Copyable("PDF", "" if pdf is None else str(pdf)),
        Copyable("JSON", escaped_json(orjson.dumps(document).decode())),
    ]
    return [one for one in found if one.text]


class CopyDialog(Chooser[Copyable]):
    """Gives what to copy, None when it was cancelled."""

    def __init__(self, store: Store, shown: Shown, pdf: Path | None) -> None:
        def read(_: Store) -> Sequence[Copyable]:
            return copyables(shown, pdf)

        super().__init__(
            store, question="Copy what?", columns=COLUMNS, key=lambda one: one.what, read=read
        )
