"""The figures of an event, and the table of all."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.cluster.checker import Finding, Kind
from benchmarks.cluster.history import Answer, History
from benchmarks.cluster.node import TIMEOUTS

HEADINGS = (
    "event", "outage s", "slowest s", "requests", "5xx", "broken", "created", "files", "walks",
    "lost", "doubled", "other",
)  # fmt: skip


LONGEST_OUTAGE_S = 2.0 * TIMEOUTS["ttl"]
"""About `ttl` is what pages promise."""


@dataclass(frozen=True, slots=True)
class Window:
    """From the moment before the event until the load ended, on the monotonic clock."""

    begin_s: float
    end_s: float


def outage_s(answers: Sequence[Answer], process: int, window: Window) -> float:
    """The longest time in the window in which the process has created nothing."""
    times = sorted(
        one.answered_s
        for one in answers
        if one.is_create
        and one.process == process
        and window.begin_s < one.answered_s < window.end_s
    )
    moments = [window.begin_s, *times, window.end_s]
    return max(after - before for before, after in pairwise(moments))


def misses(history: History, window: Window, processes: int, *, is_planned: bool) -> list[Finding]:
    """What docs/guides/three-machines.md says that clients do not see in such an event."""
    outages = [outage_s(history.answers, process, window) for process in range(processes)]
    return [
        *(Finding(Kind.FAILED, what) for what in errors(history.answers) if is_planned),
        *(
            Finding(Kind.OUTAGE, f"{outage:.1f} s at process {process}")
            for process, outage in enumerate(outages)
            if outage > LONGEST_OUTAGE_S
        ),
    ]


def row(
    event: str, history: History, window: Window, findings: Sequence[Finding], processes: int
) -> list[str]:
    """A cell for each heading. Outages are of each API process."""
    answers = history.answers
    lost = sum(one.kind is Kind.LOST for one in findings)
    doubled = sum(one.kind is Kind.DOUBLED for one in findings)
    outages = [outage_s(answers, process, window) for process in range(processes)]
    return [
        event,
        ", ".join(f"{outage:.1f}" for outage in outages),
        f"{max(one.answered_s - one.asked_s for one in answers):.1f}",
        f"{len(answers):,}",
        f"{sum(one.status is not None and one.status >= 500 for one in answers):,}",
        f"{sum(one.status is None for one in answers):,}",
        f"{sum(bool(one.ids) for one in history.creations.values()):,}",
        f"{len(history.dropped):,}",
        f"{len(history.walks):,}",
        str(lost),
        str(doubled),
        str(len(findings) - lost - doubled),
    ]


def errors(answers: Sequence[Answer]) -> list[str]:
    """What was answered with 5xx, and how often."""
    times = Counter(
        f"{one.method} {one.status} {one.error}"
        for one in answers
        if one.status is not None and one.status >= 500
    )
    return [f"{count} times {what}" for what, count in times.most_common()]


def headings() -> str:
    """The first two lines of a table in Markdown."""
    return f"{line(HEADINGS)}\n{line(['---'] * len(HEADINGS))}"


def line(cells: Sequence[str]) -> str:
    """A line of the table."""
    return f"| {' | '.join(cells)} |"
