"""The screens that stand beside one another, in the order of their keys.

A new one is a row here. What a screen needs is imported when the terminal UI has painted its
first frame, so the table names its class instead of holding it.
"""

import importlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Mode:
    """A screen that a digit leads to. `name` is what the command line calls it.

    `screen` is where its class is found: `module:Class`.
    """

    name: str
    key: str
    title: str
    screen: str

    def load(self) -> Any:
        """The class, imported now."""
        module, _, name = self.screen.partition(":")
        return getattr(importlib.import_module(module), name)


MODES = (
    Mode("resumes", "1", "Resumes", "tui.screens.resumes.screen:ResumesScreen"),
    Mode("imports", "2", "Imports", "tui.screens.imports.screen:ImportsScreen"),
    Mode("accounts", "3", "Accounts", "tui.screens.accounts.screen:AccountsScreen"),
    Mode("plans", "4", "Plans", "tui.screens.plans.screen:PlansScreen"),
    Mode("keys", "5", "Keys", "tui.screens.keys.screen:KeysScreen"),
    Mode("health", "6", "Health", "tui.screens.health.screen:HealthScreen"),
)
