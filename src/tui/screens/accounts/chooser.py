"""A dialog that asks for an account."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from resumes.store import accounts
from resumes.store.engine import Store
from tui.actions import Place, bindings
from tui.session import Session
from tui.store_client import Reply, StoreClient
from tui.text import safe
from tui.widgets.columns import Column, text_cell
from tui.widgets.lines import ErrorLine, KeyLine, TitleLine
from tui.widgets.paged_list import PagedList


@dataclass(frozen=True, slots=True)
class Choice:
    """An account, or with `name` None all of them. `holds` is how many resumes are in it."""

    name: str | None
    holds: int


COLUMNS: tuple[Column[Choice], ...] = (
    Column("ACCOUNT", 0, lambda choice: text_cell(choice.name or "(all accounts)")),
    Column("RESUMES", 9, lambda choice: safe(f"{choice.holds:>9,}")),
)


class AccountChooser(ModalScreen[Choice | None]):
    """Gives the chosen account, None when nothing was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Place.DIALOG)

    def __init__(self, session: Session, *, offer_all: bool = False) -> None:
        super().__init__()
        self._offer_all = offer_all
        self._client = StoreClient(session.store, self)
        self._list: PagedList[Choice] = PagedList(COLUMNS, lambda choice: choice.name or "")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog tall"):
            yield TitleLine(safe("Which account?  enter chooses, esc cancels", "bold"))
            yield ErrorLine()
            yield self._list
        yield KeyLine()

    @on(PagedList.PageWanted)
    def read(self) -> None:
        """The accounts are being read."""
        self._client.read(
            "accounts",
            self._choices,
            then=lambda choices: self._list.fill(0, choices, None),
            failed=self.query_one(ErrorLine).show,
        )

    def _choices(self, store: Store) -> Sequence[Choice]:
        named = [Choice(found.name, found.resume_count) for found in accounts.list_accounts(store)]
        everything = Choice(None, sum(choice.holds for choice in named))
        return [everything, *named] if self._offer_all else named

    @on(Reply)
    def deliver(self, reply: Reply) -> None:
        """The store call has ended."""
        self._client.deliver(reply)

    @on(PagedList.Chosen)
    def choose(self, chosen: PagedList.Chosen) -> None:
        """The dialog ends with the account."""
        self.dismiss(chosen.row)

    def action_cancel(self) -> None:
        """The dialog ends without one."""
        self.dismiss(None)
