"""How long ago something was, in words."""

from resumes.text import counted


def span(seconds: float) -> str:
    """`40 seconds`, `5 minutes`, `3 hours`: the largest unit of which there are two."""
    for unit, unit_s in (("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * unit_s:
            return counted(int(seconds // unit_s), unit)
    return counted(int(seconds), "second")
