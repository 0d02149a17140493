"""Files of several resumes: unpacked, judged and committed slice by slice.

A slice is small, so that other files get their turn between two. Each is a transaction of its
own, with the items in the ledger: cut off anywhere and begun again, what was imported is known
by its number (pitfalls I1).
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from importer import judging, reading, unpacking
from importer.options import DEFAULT_TUNING, Tuning
from importer.outcomes import Conclusion, ItemConclusion, Refusal
from importer.parts import CannotUnpack, Limits, Part, file_too_large
from importer.reading import Signature
from resumes.analyzer import Format, Resume
from resumes.store.creating import NewResume
from resumes.store.items import MOST_PROBLEMS, Items, Problem
from resumes.store.ledger import FileOutcome
from resumes.text import escaped


class Portion(NamedTuple):
    """A part of the file and what it is."""

    part: Part
    verdict: Resume | Refusal

    def new_resume(self) -> NewResume | None:
        """The resume on its way in, if there is one."""
        if isinstance(self.verdict, Refusal):
            return None
        digest = reading.digest(self.part.body)
        return NewResume(self.verdict, digest=digest, item=self.part.number)


class Bundle:
    """An open file of several resumes. Raises CannotUnpack for one that is none, and OSError."""

    def __init__(
        self,
        path: str,
        name: str,
        format: Format,  # noqa: A002
        limits: Limits,
        tuning: Tuning = DEFAULT_TUNING,
    ) -> None:
        self._tuning = tuning
        self._format = format
        content = reading.load(path, limits.max_file_bytes)
        self.signature: Signature = content.signature
        if content.is_over_limit:
            raise CannotUnpack(file_too_large(limits))
        self.digest = reading.digest(content.body)
        self._parts = self._open(name, content.body, limits)
        self.items: list[ItemConclusion] = []

    def _open(self, name: str, body: bytes, limits: Limits) -> Iterator[Part]:
        if not unpacking.is_bundle(name, body):
            # One value after all, perhaps one that is too large to be a resume.
            verdict = judging.judge(body, self._format)
            if isinstance(verdict, Refusal):
                raise CannotUnpack(verdict)
            return iter([Part(1, "", 0, body)])
        return unpacking.unpack(name, body, limits)

    def next_slice(self) -> list[Portion]:
        """The next items, judged; empty at the end."""
        portions: list[Portion] = []
        size_bytes = 0
        for part in self._parts:
            verdict = part.refusal or judging.judge(part.body, self._format)
            portions.append(Portion(part, verdict))
            size_bytes += len(part.body)
            if len(portions) == self._tuning.slice_items or size_bytes >= self._tuning.slice_bytes:
                break
        return portions

    def conclude(self, portion: Portion, conclusion: Conclusion) -> None:
        """What became of an item."""
        part = portion.part
        self.items.append(
            ItemConclusion(
                part.number,
                part.place,
                conclusion.outcome,
                conclusion.resume_id,
                conclusion.refusal,
                conclusion.warnings,
            )
        )


def as_ledger_text(items: tuple[ItemConclusion, ...]) -> str | None:
    """The items as the ledger keeps them: counts, and the first that are not done."""
    if not items:
        return None
    counts = Counter(item.outcome for item in items)
    problems = (_problem(item) for item in items if item.outcome is not FileOutcome.DONE)
    short = Items(
        total=len(items),
        done=counts[FileOutcome.DONE],
        duplicate=counts[FileOutcome.DUPLICATE],
        held=counts[FileOutcome.HELD],
        failed=counts[FileOutcome.FAILED],
        problems=tuple(itertools.islice(problems, MOST_PROBLEMS)),
    )
    return json.dumps(short.as_json())


def _problem(item: ItemConclusion) -> Problem:
    refusal = item.refusal
    return Problem(
        item.item,
        escaped(item.place),
        item.outcome.value,
        refusal.reason.value if refusal else None,
        escaped(refusal.message) if refusal else None,
        escaped(refusal.path) if refusal and refusal.path is not None else None,
        refusal.byte_offset if refusal else None,
    )
