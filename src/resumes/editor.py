"""Open files and the text of a resume in the user's own editor."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import msgspec.json

from resumes.analyzer import Format, parse, sent_json
from resumes.analyzer.fault import Fault, decoded, find_fault
from resumes.errors import (
    InvalidArgument,
    InvalidInput,
    InvalidJson,
    InvalidResume,
    Issue,
    ResumeChanged,
)
from resumes.store import Store, stored_resumes
from resumes.store.stored_resumes import StoredResume

LINE_EDITORS: Final = re.compile("vi|vim|nvim|nano|pico|emacs|emacsclient|micro|kak|joe|jed|ne|mg")
"""Editors that accept `+LINE` to start at a line."""


def edit(
    path: Path,
    line: int | None,
    suspended: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> bool:
    """Open the file in the editor, at the line if possible, and wait until the editor exits.

    Return whether the file was changed. `suspended` returns a context manager in which the editor
    can use the terminal. Raises InvalidArgument if the user's setting is not a command, if the file
    cannot be edited, or if the editor exits with an error.
    """
    setting = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        words = shlex.split(setting) or ["vi"]
    except ValueError as error:
        raise InvalidArgument(f'Cannot run the editor "{setting}": {error}') from error
    takes_line = line is not None and LINE_EDITORS.fullmatch(Path(words[0]).name)
    command = [*words, *([f"+{line}"] if takes_line else []), str(path)]
    # The terminal sends Ctrl+C to both processes; only the editor should act on it.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        saved = _state(path)
        with suspended():
            code = subprocess.run(command, check=False).returncode
        if code:
            raise InvalidArgument(f"{command[0]} failed (exit code {code})")
        return _state(path) != saved
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not os.path.lexists(path):
            raise InvalidArgument(
                "The file was moved or deleted in the meantime, so nothing was saved. Open it again"
            ) from error
        raise InvalidArgument(f"Cannot edit with {command[0]}: {error.strerror}") from error
    finally:
        signal.signal(signal.SIGINT, before)


def _state(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


class Saved(NamedTuple):
    """The result of saving a draft. If it has problems, nothing was stored.

    `replaced` contains the IDs of the person's other resumes that the draft replaced.
    """

    problems: Sequence[Issue] = ()
    warnings: Sequence[Issue] = ()
    replaced: Sequence[str] = ()


class Draft:
    """The text of a resume in a private file, which is kept until it is stored or discarded."""

    def __init__(self, account_id: str, resume: StoredResume, accepted: Format) -> None:
        """Write the file. Raises InvalidArgument if this fails."""
        self._account_id = account_id
        self._resume = resume
        # Count months in the same way as when the resume was created.
        self._accepted = replace(accepted, first_month=resume.first_month)
        self._text = msgspec.json.format(sent_json(resume.document), indent=2) + b"\n"
        try:
            # Only this user can read the folder.
            folder = Path(tempfile.mkdtemp(prefix="resumes-edit-"))
            self.path = folder / f"{resume.entry.id}.json"
            self.path.write_bytes(self._text)
        except OSError as error:
            raise InvalidArgument(
                f"Cannot write the text to edit: {error.strerror or error}. "
                "This needs room in /tmp or TMPDIR"
            ) from error
        self._line: int | None = None
        self.title = resume.entry.shown_title

    def edit(self, suspended: Callable[[], AbstractContextManager[None]] = nullcontext) -> bool:
        """Open the text in the editor, at its first problem. Raises the same errors as `edit`.

        Return whether the text differs from the stored text."""
        edit(self.path, self._line, suspended)
        return self.is_changed

    @property
    def is_changed(self) -> bool:
        """Whether the file differs from the stored text or cannot be read."""
        try:
            return self.path.read_bytes() != self._text
        except OSError:
            return True

    def save(self, store: Store) -> Saved:
        """Replace the resume with the text and remove the file, unless the text has problems.

        Raises ResumeChanged if the resume was changed since it was read, NotFound if it was deleted, and
        the errors of `Store.write`.
        """
        text = self.path.read_bytes()
        try:
            parsed = parse(text, self._accepted)
        except InvalidInput as error:
            issues = error.issues if isinstance(error, InvalidResume) else ()
            offset = error.offset if isinstance(error, InvalidJson) else None
            at = find_fault(text, Fault(issues[0].path if issues else None, offset))
            self._line = None if at is None else decoded(text).count("\n", 0, at) + 1
            return Saved(problems=issues or (Issue("", error.message),))
        updated = stored_resumes.update_resume(
            store, self._account_id, self._resume.entry.id, parsed, check=self._check
        )
        self.discard()
        return Saved(warnings=parsed.warnings, replaced=updated.replaced)

    def _check(self, stored: StoredResume) -> None:
        before = self._resume
        if (stored.entry.updated_at, stored.document) != (before.entry.updated_at, before.document):
            raise ResumeChanged(
                "The resume was changed while you edited it, so nothing was stored. Edit it again"
            )

    def discard(self) -> None:
        """Remove the file and all files that the editor left next to it."""
        shutil.rmtree(self.path.parent, ignore_errors=True)
