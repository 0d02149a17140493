"""The page of keys in the docs: `keys_page.py FILE` writes it from the table of actions."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tui.keys import ACTIONS, Action, Place

HEAD: Final = """\
# Keys of the terminal UI

For each screen, this page lists the keys, the actions with their IDs, and the equivalent commands. In the
terminal UI, press `?` to see all keys, starting with the keys of the current screen. Press `:` to open the
command palette; for example, type `:keys` to go to the Keys screen. For everything else, see [how the terminal UI
behaves](terminal.md#how-it-behaves).

`make keys` generates this page from the table in `src/tui/keys.py`.

## Custom keys

To assign other keys to an action, add the ID of the action to the `keymap` table in `config.toml`. If an action
has several keys, separate them with commas. The keys in the `keymap` table replace the action's default keys:

```toml
[keymap]
"resumes.delete" = "f8"
"everywhere.quit" = "q,f10"
```

The *keymap* columns below show the names of the default keys. The name of a letter key is the letter itself,
such as `d`, or `D` for the same key with Shift. Examples of other names are `f1` to `f24`, `ctrl+e`, `alt+x`,
`shift+f3`, `ctrl+pagedown`, `slash`, `comma`, `minus` and `question_mark`. You cannot use `ctrl+i`, `ctrl+m`,
`ctrl+h` or `ctrl+[` (`ctrl+left_square_bracket`), because terminals send these keys as Tab, Enter, Backspace and
Esc. For actions in filters and dialogs, you cannot use single characters, because they are entered as text. When
the terminal UI starts, it reports unknown IDs, unknown keys and conflicting key bindings.

The environment variable `RESUMES_KEYMAP` replaces the `keymap` table in `config.toml`. Write the value as JSON,
for example `RESUMES_KEYMAP='{"resumes.delete":"f8"}'`.
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
