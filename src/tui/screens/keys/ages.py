"""How long ago something was, short enough for a column."""

from datetime import datetime
from typing import Final

MICROSECONDS: Final = 1_000_000
UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60))


def ago(instant: str | None, now_us: int) -> str:
    """`4 min ago`, `3 h ago`, `12 d ago`; never for None. Ten cells hold 27 years."""
    if instant is None:
        return "never"
    passed_s = now_us / MICROSECONDS - datetime.fromisoformat(instant).timestamp()
    for unit, unit_s in UNITS:
        if passed_s >= unit_s:
            return f"{int(passed_s // unit_s)} {unit} ago"
    return "just now"
