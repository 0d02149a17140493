"""A dialog that asks for an account."""

from collections.abc import Sequence
from dataclasses import dataclass

from resumes.store import accounts
from resumes.store.store import Store
from tui.screens.chooser import Chooser
from tui.session import Session
from tui.text import safe
from tui.widgets.columns import Column, text_cell


@dataclass(frozen=True, slots=True)
class Choice:
    """An account, or with `name` None all of them. `holds` is how many resumes are in it."""

    name: str | None
    holds: int


COLUMNS: tuple[Column[Choice], ...] = (
    Column("ACCOUNT", 0, lambda choice: text_cell(choice.name or "(all accounts)")),
    Column("RESUMES", 9, lambda choice: safe(f"{choice.holds:>9,}")),
)


class AccountChooser(Chooser[Choice]):
    """Gives the chosen account, None when nothing was chosen."""

    def __init__(
        self, session: Session, *, offer_all: bool = False, preset: str | None = None
    ) -> None:
        super().__init__(
            session.store,
            question="Which account?",
            columns=COLUMNS,
            key=lambda choice: choice.name or "",
            read=read_all_choices if offer_all else read_choices,
            preset=preset,
        )


def read_choices(store: Store) -> Sequence[Choice]:
    """Every account, by name."""
    return [Choice(found.name, found.resume_count) for found in accounts.list_accounts(store)]


def read_all_choices(store: Store) -> Sequence[Choice]:
    """All of them in one, then every account."""
    named = read_choices(store)
    return [Choice(None, sum(choice.holds for choice in named)), *named]
