"""The question before a plan is changed: what changes, and for whom."""

from collections.abc import Iterator
from typing import Final

from resumes.store.plans import AffectedAccounts, PlanImpact, PlanInfo
from resumes.text import counted
from tui.screens.confirming import ConfirmDialog
from tui.screens.facts import Fact
from tui.screens.plans.limits import differences

NOBODY = "nobody"
MOST_CHARS: Final = 200
"""The names that are told take no more, so that all fits on a screen of 24 lines."""


class ReviewDialog(ConfirmDialog):
    """Gives whether to save the plan, which was `old` and is to be `new`."""

    def __init__(self, old: PlanInfo, new: PlanInfo, effects: PlanImpact) -> None:
        super().__init__(
            f"Change the plan {old.name} for {counted(old.accounts, 'account')}?",
            [*differences(old, new), *effect_facts(effects, new)],
            consequence=consequence(effects),
            verb="Save",
        )


def effect_facts(effects: PlanImpact, new: PlanInfo) -> Iterator[Fact]:
    """Who would hold too much, and who would lose listing."""
    if new.max_resumes is not None:
        yield "Over", named(effects.over)
    if effects.unlisted.count:
        yield "No listing", named(effects.unlisted, MOST_CHARS // 2)


def named(affected: AffectedAccounts, most_chars: int = MOST_CHARS) -> str:
    """`12 accounts: ana (812), zoe (60) and 10 more`; at least one is named."""
    if not affected.count:
        return NOBODY
    names: list[str] = []
    for name, holds in affected.fullest:
        one = f"{name} ({holds:,})"
        if names and sum(map(len, names)) + len(one) > most_chars:
            break
        names.append(one)
    rest = affected.count - len(names)
    more = f" and {rest:,} more" if rest else ""
    return f"{counted(affected.count, 'account')}: {', '.join(names)}{more}"


def consequence(effects: PlanImpact) -> str:
    """What becomes of what they hold."""
    if not effects.over.count:
        return "It counts at once. Nothing is deleted."
    return "It counts at once. Nothing is deleted: who is over keeps all, and takes no more."
