"""How the state of a finding looks: a sign, a word and a colour, so that no colour is needed."""

from collections.abc import Sequence
from typing import NamedTuple

from textual.content import Content

from resumes.health.findings import Finding, Severity
from tui.text import joined, safe


class Sign(NamedTuple):
    """What stands for a state. `style` is one of Textual's."""

    mark: str
    word: str
    style: str


SIGNS = {
    Severity.ERROR: Sign("✗", "wrong", "bold $text-error"),
    Severity.WARNING: Sign("!", "to look at", "bold $text-warning"),
    Severity.OK: Sign("✓", "well", "$text-success"),
}
"""By state, the worst first."""

SEVERITY = {state: number for number, state in enumerate(SIGNS)}


def mark_cell(finding: Finding) -> Content:
    """The mark alone, for a column of one cell."""
    sign = SIGNS[finding.severity]
    return safe(sign.mark, sign.style)


def tally(findings: Sequence[Finding]) -> Content:
    """`✗ 1 wrong · ! 2 to look at · ✓ 10 well`, without what there is none of."""
    counts = {state: sum(finding.severity is state for finding in findings) for state in SIGNS}
    parts = [
        safe(f"{sign.mark} {counts[state]} {sign.word}", sign.style)
        for state, sign in SIGNS.items()
        if counts[state]
    ]
    return joined(parts, by=" · ")
