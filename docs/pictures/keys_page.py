"""The page of keys in the docs: `keys_page.py FILE` writes it from the table of actions."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tui.keys import ACTIONS, Action, Place

HEAD: Final = """\
# Keys of the terminal UI

`resumes tui` is driven by keys alone. `?` shows those that work where you are, the foot of the screen the
usual ones, and `:` finds what can be done by its name: `:keys` goes to the screen of keys. Esc takes one
layer away (a filter, a dialog, a screen) and never quits. A key that does nothing says why. What changes
something has a command that does the same, and with `--read-only` no key.

`make keys` writes this page from the table in `src/tui/keys.py`.

## Keys of your own

A table in `config.toml` gives actions other keys, by the ids below. Several keys stand with commas between
them, and they take the place of those that the action had:

```toml
[keymap]
"resumes.delete" = "f8"
"everywhere.quit" = "q,f10"
```

The column *in the keymap* has the names of keys. Others are called alike: letters are themselves (`D` with
shift), then `f1` to `f24`, `ctrl+e`, `alt+x`, `shift+f3`, `ctrl+pagedown`, `slash`, `comma`, `minus`,
`question_mark`. What terminals send as another key (`ctrl+i` is tab, `ctrl+m` enter, `ctrl+h` backspace)
cannot be used, nor can a letter where text is typed. An id or a key that there is not, and a key that would
do two things at once, are refused at the start with a line that says which.

In the environment it is JSON: `RESUMES_KEYMAP='{"resumes.delete": "f8"}'` takes the place of the table.
"""

TABLE: Final = """\
| key | does | in the keymap | id | as a command |
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
    cells = (shown, action.sentence, f"`{action.keys}`", f"`{action.id}`", command)
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
