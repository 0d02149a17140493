"""The screens that stand beside one another, in the order of their keys.

A new one is a row here and a row in `app.SCREENS`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mode:
    """A screen that a digit leads to. `name` is what the command line calls it."""

    name: str
    key: str
    title: str


MODES = (
    Mode("resumes", "1", "Resumes"),
    Mode("accounts", "2", "Accounts"),
    Mode("keys", "3", "Keys"),
)
