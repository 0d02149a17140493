"""How well the importer can work, as one word and a sentence for each thing that is in its way."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class HealthState(StrEnum):
    """From best to worst."""

    OK = "ok"
    POLLING = "polling"
    """Everything works; new files are found by scans alone, so a little later."""

    DEGRADED = "degraded"
    """Something fails and is tried again by itself."""


SEVERITY = {state: number for number, state in enumerate(HealthState)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing, by its key. When the state is ok, the sentence is what was true until now."""

    key: str
    state: HealthState
    sentence: str


class Health:
    """What is found at present. Any thread may call anything.

    `on_change` is called for each change of a key, once and in order, by the thread that makes
    the change. It may use this object; it must neither raise nor wait for another thread that
    changes it.
    """

    def __init__(self, on_change: Callable[[Finding], None]) -> None:
        self._on_change = on_change
        self._findings: dict[str, Finding] = {}
        self._reading = threading.Lock()
        # Held while a change is told, so that none overtakes another; readers do not wait for it.
        self._changing = threading.RLock()

    def degraded(self, key: str, sentence: str) -> None:
        """Something fails, and goes on being tried."""
        self._put(Finding(key, HealthState.DEGRADED, sentence))

    def polling(self, key: str, sentence: str) -> None:
        """New files are found by scans alone, for the reason in the sentence."""
        self._put(Finding(key, HealthState.POLLING, sentence))

    def ok(self, key: str) -> None:
        """What was found under the key is over; nothing happens when nothing was."""
        with self._changing:
            with self._reading:
                was = self._findings.pop(key, None)
            if was is not None:
                self._on_change(Finding(key, HealthState.OK, was.sentence))

    def findings(self) -> tuple[Finding, ...]:
        """What is not ok, the worst first; empty when all is well."""
        with self._reading:
            found = list(self._findings.values())
        return tuple(sorted(found, key=lambda finding: -SEVERITY[finding.state]))

    @property
    def state(self) -> HealthState:
        """The worst of the findings."""
        found = self.findings()
        return found[0].state if found else HealthState.OK

    def _put(self, finding: Finding) -> None:
        with self._changing:
            with self._reading:
                is_new = self._findings.get(finding.key) != finding
                self._findings[finding.key] = finding
            if is_new:
                self._on_change(finding)
