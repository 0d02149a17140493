"""The columns of the list of resumes, and its first rows while the store is being opened."""

from collections.abc import Callable, Sequence
from operator import attrgetter

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content

from resumes.clock import Clock, system_clock
from resumes.store.entry import MAX_VERSIONS, Entry
from resumes.store.sqlite.first_rows import FirstRows
from tui.text import joined, safe
from tui.widgets.paged_list import ListColumn, PagedList, age_column, text_cell
from tui.widgets.window import PageRead


def title_cell(entry: Entry) -> Content:
    """Return the title, or a placeholder."""
    return text_cell(entry.shown_title, "dim")


def name_cell(entry: Entry, versions: int = 1) -> Content:
    """Return the name, and the number of the person's resumes if there are several."""
    name = text_cell(entry.name, "bold")
    if versions == 1:
        return name
    count = f"{MAX_VERSIONS - 1}+" if versions >= MAX_VERSIONS else str(versions)
    return joined([name, safe(f" {count}\N{MULTIPLICATION SIGN}", "dim")])


def resume_columns(
    clock: Clock,
    title: Callable[[Entry], Content] = title_cell,
    name: Callable[[Entry], Content] = name_cell,
    *,
    has_labels: bool,
) -> Sequence[ListColumn[Entry]]:
    """Return the columns of a list of resumes, with a column for labels if `has_labels`."""
    label: ListColumn[Entry] = ListColumn(
        "LABEL", 12, lambda entry: text_cell(entry.label), source="label"
    )
    return (
        ListColumn("NAME", 0, name, at_most=32, source="name"),
        *((label,) if has_labels else ()),
        ListColumn("TITLE", 0, title, source="title"),
        ListColumn("FILENAME", 32, lambda entry: text_cell(entry.filename, "dim"), 120),
        ListColumn("ID", 24, lambda entry: text_cell(entry.id, "dim"), 150),
        age_column("AGE", attrgetter("created_at"), clock),
    )


class FirstRowsView(Horizontal):
    """The first rows and an empty preview, laid out as on the resumes screen."""

    def __init__(self, first: FirstRows) -> None:
        super().__init__()
        has_labels = any(entry.label for entry in first.rows)
        columns = resume_columns(system_clock, has_labels=has_labels)
        self._list: PagedList[Entry] = PagedList(columns, attrgetter("id"), self._read)
        self._list.window.put(0, first.rows, None)
        self._list.border_title = safe(f"Resumes › {first.account}")
        self._list.add_class("panel")
        self._list.disabled = True  # clicks are meant for the list that replaces this list

    async def _read(self, cursor: str) -> PageRead[Entry]:
        return PageRead(())  # no more rows are read until the store is open

    def compose(self) -> ComposeResult:
        yield self._list
        yield Vertical(classes="panel pane")
