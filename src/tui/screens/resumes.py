"""The resumes screen: list, filter, preview, copy, PDF, delete."""

import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from typing import Final

from textual import on
from textual.content import Content

from resumes.analyzer import Format, load_stored, whole_json
from resumes.editor import Draft, Saved
from resumes.errors import InvalidArgument
from resumes.search.query import Query
from resumes.store.entry import Entry
from resumes.store.labels import set_label
from resumes.store.search import describe_unsearched
from resumes.store.store import Store
from resumes.text import counted, escaped_json
from tui.deletions import GRACE_S, named, quoted
from tui.keys import Place, Target, bindings, shown_key
from tui.pdf_files import describe_boxes, find_viewer
from tui.screens.base import (
    NEWEST_FIRST,
    ListScreen,
    ModeScreen,
    Order,
    RowPane,
    RowScreen,
    SplitScreen,
)
from tui.screens.dialogs import ConfirmDialog, Fact, ask, copy_one, no_accounts
from tui.screens.export_dialog import ExportDialog, export_chosen
from tui.screens.label_dialog import LabelDialog, read_labels
from tui.screens.resume_list import name_cell, resume_columns, title_cell
from tui.screens.resume_views import (
    NO_FILE,
    ResumeRef,
    Shown,
    View,
    find_hits,
    parse_search,
    read_page,
    show,
)
from tui.session import ExportChoice, UiSession
from tui.store_calls import Failure, call, store_work
from tui.text import joined, minute, safe, show_message
from tui.widgets.paged_list import FindHits, ListColumn
from tui.widgets.text_pane import Paragraph, TextPane
from tui.widgets.window import PageRead, flipped


def view_tabs(current: View) -> Content:
    """Return the names of the views, with the current one in reverse video."""
    return joined(
        [safe(f" {view} ", "bold reverse" if view is current else "dim") for view in View]
    )


class ResumePane(TextPane, RowPane[ResumeRef]):
    """Shows a resume in one of its views, whose names form the title."""

    def __init__(self, session: UiSession, *, can_focus_text: bool) -> None:
        super().__init__()
        self.session = session
        self.view = View.TEXT
        self.found_by: Query | None = None
        """The filter of the list, whose matches are highlighted."""
        self.shown: Shown | None = None
        """The resume that is shown; None if there is none, or a failure is shown."""

        self.can_focus = can_focus_text
        self.add_class("panel")
        self.border_title = view_tabs(self.view)

    def key_of(self, wanted: ResumeRef) -> object:
        return wanted, self.found_by, self.view

    def reading(self, wanted: ResumeRef) -> Callable[[Store], Shown]:
        return partial(
            show, ref=wanted, view=self.view, settings=self.session.settings, query=self.found_by
        )

    def show_read(self, read: Shown) -> None:
        before, self.shown = self.shown, read
        stays = before is not None and (before.entry.id, before.view) == (read.entry.id, read.view)
        self.show(read.paragraphs, from_start=not stays)

    def show_line(self, line: Paragraph) -> None:
        self.shown = None
        super().show_line(line)


MAX_PROBLEMS: Final = 8
"""The most problems of an edited resume that are shown at once."""

FAILS_WITHIN_S: Final = 10.0
"""A viewer that exits with an error after this time is assumed to have shown the file."""


class ResumeActions(ModeScreen):
    """The actions on resumes, in the list and on a resume's page."""

    pane: ResumePane

    @abstractmethod
    def refresh_pane(self) -> None:
        """Read the pane's resume again, if the pane is shown."""

    @abstractmethod
    def chosen_rows(self, verb: str, *, one: bool = False) -> Sequence[Entry]:
        """Return the resumes to act on, or only `one`; if there are none, show why."""

    @abstractmethod
    def wanted_of(self, row: Entry) -> ResumeRef:
        """Return the account and the ID of the resume."""

    def find_ref(self, verb: str) -> ResumeRef | None:
        """Return the resume to act on; if there is none, show why and return None."""
        return next(map(self.wanted_of, self.chosen_rows(verb, one=True)), None)

    def action_next_view(self, views: int) -> None:
        """Switch to another view; the current view stays until the other has been read."""
        pane, known = self.pane, list(View)
        pane.view = known[(known.index(pane.view) + views) % len(known)]
        pane.border_title = view_tabs(pane.view)
        self.refresh_pane()

    @store_work(exclusive=True)
    async def action_open_file(self) -> None:
        """Open the file that the resume was imported from, or show that there is none."""
        if (ref := self.find_ref("look up")) is None:
            return
        session = self.session
        source = await call(session.store, ref.find_source, session.settings.inbox)
        if source is None or source.file is None:
            show_message(self, NO_FILE if source is None else source.sentence)
        elif self.is_active:
            here = [ref.resume_id] if isinstance(self, ListScreen) else []
            self.follow_link(Target("imports", ref.account, opens=source.claim_id), *here)

    @store_work(exclusive=True)
    async def action_copy(self) -> None:
        if (ref := self.find_ref("copy")) is not None:
            store, pdf = self.session.store, self.session.pdfs.paths.get(ref.resume_id)
            offered = await call(store, read_copyables, ref=ref, pdf=pdf)
            await copy_one(self, store, offered, instead="press x to export it")

    @store_work()
    async def action_open_pdf(self) -> None:
        """Render the resume as a PDF, start the viewer, and show the result."""
        if (ref := self.find_ref("open")) is None:
            return
        app, session = self.app, self.session
        show_message(self, "Generating the PDF…")
        made = await call(session.store, session.pdfs.make, *ref)
        if made is None:
            return
        if isinstance(made, str):
            show_message(self, made, "error")
            return
        path, missing, viewer = made
        boxes, command = describe_boxes(missing, session.settings.home), find_viewer()
        action = "resumes.copy" if isinstance(self, ListScreen) else "resume.copy"
        copy_key = shown_key(action, session.settings.keymap)
        # The path comes last because a long path fills the line.
        where = f"{boxes} Press {copy_key} to copy the PDF's path: {path}"
        if viewer is None:
            why = f"{command} is not installed" if command else "No graphical display"
            show_message(self, f"{why}.{where}", "warning" if command or boxes else "information")
            return
        show_message(self, f"Opened {path.name}.{boxes}", "warning" if boxes else "information")

        def watch() -> None:
            started_s = time.monotonic()
            code = viewer.wait()
            if code and time.monotonic() - started_s < FAILS_WITHIN_S:
                said = f"{command} could not open the PDF (exit code {code}).{where}"
                app.call_later(show_message, app, said, "error")

        threading.Thread(target=watch, daemon=True).start()

    @store_work()
    async def action_edit_resume(self) -> None:
        """Let the user edit the resume; store the text, or show where it is kept."""
        if (ref := self.find_ref("edit")) is None:
            return
        session = self.session
        draft = await call(session.store, open_draft, ref=ref, accepted=session.settings.format)
        try:
            saved = await self._edit(draft) if self.is_active else None
        except (InvalidArgument, Failure) as problem:
            show_message(self, f"{problem.message}.{_kept(draft)}", "error")
            return
        finally:
            if not draft.is_changed:
                draft.discard()
        if saved is None:
            show_message(self, "The resume was not changed.")
        elif saved.problems:
            show_message(self, f"Nothing was stored.{_kept(draft)}", "warning")
        else:
            warnings = f", with {counted(len(saved.warnings), 'warning')}" if saved.warnings else ""
            replaced = f" Replaced {', '.join(saved.replaced)}." if saved.replaced else ""
            show_message(self, f"Updated {quoted(draft.title)}{warnings}.{replaced}")
            self.action_reload()

    async def _edit(self, draft: Draft) -> Saved | None:
        """Let the user edit until the text is stored or the user stops; None if it is unchanged."""
        while draft.edit(self.handed_over):
            saved = await call(self.session.store, draft.save)
            if not saved.problems:
                return saved
            shown = [(str(at), each.message) for at, each in enumerate(saved.problems, 1)]
            more = [("", f"and {len(shown) - MAX_PROBLEMS:,} more")] if shown[MAX_PROBLEMS:] else []
            dialog = ConfirmDialog(
                "This cannot be stored. Continue editing?",
                [*shown[:MAX_PROBLEMS], *more],
                consequence="Otherwise, your text is kept in a file.",
                verb="Continue",
            )
            if not await ask(self, dialog):
                return saved
        return None

    def action_delete(self) -> None:
        """Delete the resumes after GRACE_S, unless the user undoes the deletion."""
        if not (chosen := self.chosen_rows("delete")):
            return
        account, deletions = self.wanted_of(chosen[0]).account, self.session.deletions
        entries = [entry for entry in chosen if (account, entry.id) not in deletions.gone]
        undo = shown_key("everywhere.undo", self.session.settings.keymap)
        if added := deletions.add(account, entries):
            words = f"Deleting {named(added)} in {GRACE_S:.0f} s. Press {undo} to undo."
        elif entries:
            words = f"Already deleting {quoted(entries[0].shown_title)}. Press {undo} to undo."
        else:
            words = f"Already deleted: {quoted(chosen[0].shown_title)}."
        show_message(self, words, "warning" if added else "information")
        self.unmark()

    def action_forget(self) -> None:
        """Hand the terminal to `resumes forget`, which shows what it would erase, then asks."""
        entries = self.chosen_rows("forget")
        if not entries or self.session.forget is None:
            return
        try:
            with self.handed_over():
                self.session.forget([entry.id for entry in entries])
        except InvalidArgument as problem:
            show_message(self, problem.message, "error")
            return
        self.unmark()
        self.action_reload()

    @store_work()
    async def action_label(self) -> None:
        """Ask for the label of the resumes, and change it."""
        if not (entries := self.chosen_rows("label")):
            return
        what = quoted(entries[0].shown_title)
        what = what if len(entries) == 1 else counted(len(entries), "resume")
        store, account = self.session.store, self.wanted_of(entries[0]).account
        account_id, known = await call(store, read_labels, account=account)
        common = {entry.label or "" for entry in entries}
        dialog = LabelDialog(what, common.pop() if len(common) == 1 else "", known)
        if (label := await ask(self, dialog)) is None:
            return
        ids = [entry.id for entry in entries]
        show_message(self, f"Saving the label of {what}…")
        await call(store, set_label, account_id, ids, label or None)
        done = f'Set the label "{label}" of {what}.' if label else f"Removed the label of {what}."
        show_message(self, done)
        self.unmark()
        self.action_reload()

    @store_work()
    async def action_export(self) -> None:
        if not (entries := self.chosen_rows("export")):
            return
        session, account = self.session, self.wanted_of(entries[0]).account
        chosen, listed, text = self.exportable(account)
        dialog = ExportDialog(chosen, listed, session.last_export or ExportChoice())
        if (choice := await ask(self, dialog)) is not None:
            session.last_export = choice
            show_message(self, "Exporting…")
            ids = [entry.id for entry in entries]
            export = partial(export_chosen, text=text)
            show_message(self, await call(session.store, export, session, account, ids, choice))

    def exportable(self, account: str) -> tuple[str, str | None, str | None]:
        """Return names for the selected and for all listed resumes, and the filter of the list.

        The second name is None if not all can be exported; the filter may be None.
        """
        return "this resume", None, None


def open_draft(store: Store, ref: ResumeRef, accepted: Format) -> Draft:
    """Return a draft of the resume."""
    owner, stored = ref.read(store)
    return Draft(owner.id, stored, accepted)


def _kept(draft: Draft) -> str:
    """Return a sentence with the path of the text, or an empty string if it was not changed."""
    return f" Your text is in {draft.path}" if draft.is_changed else ""


MAX_MARKED: Final = 10_000
"""How many resumes can be marked at once; their entries are kept in memory."""


def read_all(reading: Callable[..., PageRead[Entry]], store: Store) -> tuple[Sequence[Entry], bool]:
    """Read pages until there are MAX_MARKED rows or no more; return the rows, and whether they are
    all rows."""
    page = reading(store)
    rows = [*page.rows]
    while page.next_cursor is not None and len(rows) < MAX_MARKED:
        page = reading(store, cursor=page.next_cursor)
        rows += page.rows
    return rows, page.next_cursor is None


def read_copyables(store: Store, ref: ResumeRef, pdf: Path | None) -> Sequence[Fact]:
    """Return the facts about the resume that can be copied. `pdf` is the path of its PDF."""
    _, stored = ref.read(store)
    header = load_stored(stored.document)["header"]
    return [
        ("ID", ref.resume_id),
        ("name", header.get("name") or ""),
        ("email", header.get("email") or ""),
        ("phone", header.get("phone") or ""),
        ("file name", stored.entry.filename),
        ("PDF", "" if pdf is None else str(pdf)),
        ("JSON", escaped_json(whole_json(stored.document).decode())),
    ]


class DetailScreen(RowScreen[ResumeRef], ResumeActions):
    """A resume's page."""

    pane: ResumePane
    MODE = "resumes"
    BINDINGS = bindings(Place.RESUME)

    def __init__(self, listed: "ResumesScreen", wanted: ResumeRef, *, is_linked: bool) -> None:
        pane = ResumePane(listed.session, can_focus_text=True)
        pane.view, pane.found_by = listed.pane.view, listed.pane.found_by
        super().__init__(listed, pane, wanted, is_linked=is_linked)

    @property
    def name_here(self) -> str:
        return self.pane.shown.entry.shown_title if self.pane.shown else self.wanted.resume_id

    @on(RowPane.Shown)
    def _show_title(self, shown: RowPane.Shown) -> None:
        title = self.titled(safe(minute(shown.read.entry.created_at)))
        self.pane.border_title = joined([view_tabs(self.pane.view), title], by=" ")

    def chosen_rows(self, verb: str, *, one: bool = False) -> Sequence[Entry]:
        shown = self.pane.shown
        if shown is None or shown.entry.id != self.wanted.resume_id:
            show_message(self, "Loading the resume…")
            return []
        return [shown.entry]

    def wanted_of(self, row: Entry) -> ResumeRef:
        return self.wanted


TICK_S = 1.0
"""The interval at which the countdowns of pending deletions are redrawn."""


class ResumesScreen(SplitScreen[Entry, ResumeRef], ResumeActions):
    """The resumes of the session's account, and a preview of the resume at the cursor."""

    pane: ResumePane
    MODE = "resumes"
    ROW = "resume"
    IS_PAGED = True
    ORDERS = (Order("oldest first"), NEWEST_FIRST)
    MORE_TO_TYPE = "Type whole words, or at least four letters of the last one."
    FILTER_HINT = 'python porto   "data science"   -java   skill:python   pyth*'
    BINDINGS = bindings(Place.RESUMES)
    DEFAULT_CSS = """
    ResumesScreen.-wide #split > PagedList, ResumesScreen.-wide #split > .pane { width: 1fr; }
    """

    def __init__(self, session: UiSession) -> None:
        first = [] if session.first is None else session.first.rows
        self._has_labels = any(entry.label for entry in first)
        """Whether any resume in the list has a label, so that a column for labels is shown."""
        super().__init__(session, ResumePane(session, can_focus_text=False))
        self._unindexed = 0
        self._versions: dict[str, int] = {}
        """By resume ID, the number of the person's resumes; only if there are several."""
        if session.first is not None and session.link is None:
            self.account = session.accounts[self.MODE] = session.first.account
            self.list.window.put(0, session.first.rows, session.first.rows[-1].id)

    # The list.

    def columns(self) -> Sequence[ListColumn[Entry]]:
        clock = self.session.store.clock
        return resume_columns(clock, self._title_cell, self._name_cell, has_labels=self._has_labels)

    def _name_cell(self, entry: Entry) -> Content:
        return name_cell(entry, self._versions.get(entry.id, 1))

    def _title_cell(self, entry: Entry) -> Content:
        deletion = self.session.deletions.waiting.get(self.wanted_of(entry))
        if deletion is None:
            return title_cell(entry)
        key = shown_key("everywhere.undo", self.session.settings.keymap)
        left_s = ceil(self.session.deletions.left_s(deletion))
        left = f"Deleting in {left_s} s ({key} to undo) " if left_s else "Deleting… "
        return joined([safe(left, "bold $text-warning"), title_cell(entry)])

    def hidden(self) -> Iterable[str]:
        if not self.is_split or self.list.current is None:
            yield "next_view(1)"
        if self.list.current is None:
            yield from ("choose", "open_pdf", "export", "edit_resume", "label", "forget", "delete")

    def row_key(self, row: Entry) -> str:
        return self._position(row.id)

    def _position(self, resume_id: str) -> str:
        return flipped(resume_id) if self.is_newest_first else resume_id

    def reading(self, cursor: str) -> Callable[[Store], PageRead[Entry]]:
        return partial(
            read_page,
            name=self.account,
            text=self.filter.text,
            cursor=cursor,
            is_newest_first=self.is_newest_first,
        )

    def show_found(self) -> None:
        self.pane.found_by = parse_search(self.filter.text)
        super().show_found()

    def hits_of(self, text: str) -> FindHits:
        query = parse_search(text)
        return partial(find_hits, query=query) if query else lambda *_: ()

    def page_arrived(self, read: PageRead[Entry]) -> Sequence[Content]:
        name, self._unindexed, counts = read.about
        for entry in read.rows:
            self._versions.pop(entry.id, None)
        self._versions |= counts
        if name is None:
            return no_accounts(self.session)
        self.account = self.session.accounts[self.MODE] = name
        if not self._has_labels and any(entry.label for entry in read.rows):
            self._has_labels = True
            self.list.show_columns(self.columns())
        return (
            safe(f"{name} has no resumes yet. Import some with:"),
            safe(f"{self.session.program} import FILE --account {name}"),
        )

    def heading(self) -> Iterable[Content]:
        if self.account is None:
            return
        yield safe(self.extent("no matches" if self.filter.text else "no resumes"))
        if self.is_newest_first:
            yield safe(self.order.label)
        if self._unindexed:
            yield safe(describe_unsearched(self._unindexed), "$text-warning")

    def on_mount(self) -> None:
        self.set_interval(TICK_S, self._count_down)

    def _count_down(self) -> None:
        if self.session.deletions.waiting:
            self.list.refresh()

    def open_link(self, link: Target) -> None:
        super().open_link(link)
        if link.opens:
            # The resume's page finds the next and the previous resume in the list.
            self.list.restart(keeps_rows=True, row=self._position(link.opens))
            self._open(ResumeRef(link.account or "", link.opens), is_linked=True)

    def show_account(self, name: str | None) -> None:
        self._has_labels = False
        self.list.show_columns(self.columns())
        super().show_account(name)

    @store_work()
    async def action_mark_all(self) -> None:
        """Mark all resumes that match the filter, including those that are not loaded yet."""
        if not self.list.is_ready():
            return
        shown = self.filter.text, self.account
        rows, is_all = await call(self.session.store, partial(read_all, self.reading("")))
        if not self.is_active or shown != (self.filter.text, self.account):
            return
        self.list.mark(rows)
        if is_all:
            show_message(self, f"Marked {counted(len(rows), 'resume')}.")
        else:
            show_message(self, f"Marked only the first {len(rows):,} resumes.", "warning")

    # The preview.

    def wanted_of(self, row: Entry) -> ResumeRef:
        return ResumeRef(self.account or "", row.id)

    def action_next_view(self, views: int) -> None:
        if self.is_split:
            super().action_next_view(views)
        else:
            show_message(self, "No preview is shown. Press enter to open the resume.")

    # Actions on the resume at the cursor.

    def open_row(self, row: Entry) -> None:
        self._open(self.wanted_of(row))

    def _open(self, ref: ResumeRef, *, is_linked: bool = False) -> None:
        self.app.push_screen(DetailScreen(self, ref, is_linked=is_linked))

    def exportable(self, account: str) -> tuple[str, str | None, str | None]:
        marked, text = len(self.list.marked), self.filter.text
        chosen = f"{marked:,} marked" if marked else "this resume"
        if parse_search(text) is None:
            return chosen, f"all of {account}", None
        return chosen, f'all matching "{text.strip()}"', text
