"""What the Health screen shows, read in a thread."""

from collections.abc import Sequence
from dataclasses import dataclass

from resumes.health.checks import iter_findings
from resumes.health.findings import Finding, installation_of
from resumes.health.metrics import InstallationMetrics, QueryCache, read_metrics
from resumes.settings import Settings
from resumes.store.store import Store
from tui.screens.health.signs import SEVERITY


@dataclass(frozen=True, slots=True)
class Health:
    """The findings, the worst first, and the figures above them."""

    findings: Sequence[Finding]
    metrics: InstallationMetrics


def read_health(store: Store, *, settings: Settings, program: str, cache: QueryCache) -> Health:
    """How things stand now. Raises StoreError when the store is away, whatever else is found."""
    metrics = read_metrics(store, cache)
    found = iter_findings(installation_of(store, settings, program), cache)
    # Sorting is stable: within a state the order in which one check builds on the other stays.
    return Health(sorted(found, key=lambda finding: SEVERITY[finding.severity]), metrics)
