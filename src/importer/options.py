"""What can be chosen for a watched folder."""

from dataclasses import dataclass

from resumes.analyzer import DEFAULT_FORMAT, Format


@dataclass(frozen=True, slots=True)
class Options:
    """Chosen once, for as long as the folder is watched."""

    account: str | None = None
    """The name of the account that owns files lying directly in ROOT."""

    once: bool = False
    """Drain the folder and end, in place of watching it."""

    settle_s: float = 5.0
    """Seconds a file must be quiet before it is judged, unless it is a whole valid resume."""

    scan_s: float = 2.0
    """Seconds between scans; longer by itself when a scan takes long."""

    format: Format = DEFAULT_FORMAT
