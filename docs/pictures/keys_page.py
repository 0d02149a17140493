"""The page of keys in the docs: `keys_page.py FILE` writes it from the table of actions."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tui.keys import ACTIONS, Action, Place

HEAD: Final = """\
# Keys of the terminal UI

This page lists the keys of each screen, the IDs of their actions, and the commands that do the same. In the terminal
UI, `?` shows every key, starting with those that work where you are, and `:` opens the command palette (`:keys` goes to
the Keys screen). Everything else about the terminal UI is in [how it behaves](terminal.md#how-it-behaves).

`make keys` writes this page from the table in `src/tui/keys.py`.

## Custom keys

To assign other keys to actions, list the IDs of the actions in a table in `config.toml`. If an action has several keys,
separate them with commas. The keys in this table replace the action's default keys:

```toml
[keymap]
"resumes.delete" = "f8"
"everywhere.quit" = "q,f10"
```

The column *keymap* shows the names of keys. The name of a letter key is the letter itself (`D` with shift). Other names
are `f1` to `f24`, `ctrl+e`, `alt+x`, `shift+f3`, `ctrl+pagedown`, `slash`, `comma`, `minus` and `question_mark`. Some
keys cannot be used, since terminals send them as a different key: `ctrl+i` is tab, `ctrl+m` is enter, and `ctrl+h` is
backspace. Where text is typed, letters cannot be used either. Unknown IDs, unknown keys and conflicting bindings are
reported at startup.

In the environment, the table is written as JSON: `RESUMES_KEYMAP='{"resumes.delete": "f8"}'` replaces the table in
`config.toml`.
"""

TABLE: Final = """\
| key | action | keymap | ID | command |
| --- | --- | --- | --- | --- |
"""


def page() -> str:
    """Return the page as Markdown: every action, by the place where its keys work."""
    return HEAD + "".join(map(_chapter, _places()))


def _places() -> Iterator[Place]:
    taken = {action.place for action in ACTIONS}
    return (place for place in Place if place in taken)


def _chapter(place: Place) -> str:
    rows = (_row(action) for action in ACTIONS if action.place is place)
    return f"\n## {place}\n\n{TABLE}{''.join(rows)}"


def _row(action: Action) -> str:
    shown = " ".join(f"`{key}`" for key in action.shown.split())
    command = f"`{action.command}`" if action.command else ""
    cells = (shown, action.description, f"`{action.keys}`", f"`{action.id}`", command)
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
