"""What became of a file, why, and what to do: as a text to read."""

from collections.abc import Iterator, Sequence
from typing import Final

from textual.content import Content

from resumes.errors import Issue
from resumes.import_reasons import find_hint, plain_words
from resumes.store.import_items import MAX_PROBLEMS, Items, Problem
from resumes.store.import_ledger import FileOutcome, FileRow
from resumes.store.import_requests import Action
from resumes.text import in_bytes
from tui.screens.imports.reading import MOST_ITEMS, FileRead
from tui.screens.imports.rows import ASKED, outcome_content
from tui.text import joined, safe
from tui.times import minute
from tui.widgets.text_pane import Paragraph

LABEL_CELLS: Final = 11
BLANK: Final = Paragraph(safe(""))


def file_paragraphs(read: FileRead) -> list[Paragraph]:
    """The verdict and what to do about it; then the file; then what was in it."""
    file = read.file
    return [
        Paragraph(_headline(read)),
        *_verdict(file, read.issues),
        *_asked(read),
        BLANK,
        *_about(file),
        *_several(file.items),
        *_resumes(read),
    ]


def _headline(read: FileRead) -> Content:
    outcome = outcome_content(read.file, read.request).stylize("bold")
    if read.file.reason is None or read.file.is_under_way:
        return outcome
    return joined([outcome, safe(plain_words(read.file.reason), "bold")], by=": ")


def _verdict(file: FileRow, issues: Sequence[Issue]) -> Iterator[Paragraph]:
    if file.is_under_way:
        return
    if len(issues) > 1:
        yield Paragraph(safe(f"{len(issues)} problems:"))
        yield from (Paragraph(safe(issue.message), mark="  ! ") for issue in issues)
    elif file.message:
        yield Paragraph(safe(file.message))
    if file.path and len(issues) <= 1:
        yield _fact("At", file.path)
    if file.byte_offset is not None:
        yield _fact("Byte", f"{file.byte_offset:,}, counted from 0")
    hint = None if file.reason is None else find_hint(file.reason)
    if hint is not None:
        yield Paragraph(safe(hint, "italic"), mark="→ ")


def _asked(read: FileRead) -> Iterator[Paragraph]:
    request = read.request
    if request is None:
        return
    since = f"{ASKED[request.action]} at {minute(request.requested_at)} UTC"
    if read.is_watched:
        yield Paragraph(safe(f"{since}; the importer takes it up.", "$text-accent"), mark="↻ ")
    else:
        text = f"{since}; it waits, since no importer of its folder is running."
        yield Paragraph(safe(text, "$text-warning"), mark="↻ ")


def _about(file: FileRow) -> Iterator[Paragraph]:
    yield _fact("File", file.name)
    yield _fact("Account", file.account)
    yield _fact("Folder", file.root or "not known")
    yield _fact("Now in", filed_in(file))
    yield _fact("Size", in_bytes(file.size_bytes))
    yield _fact("Taken", f"{minute(file.claimed_at)} UTC")
    yield _fact("Ended", f"{minute(file.finished_at)} UTC")
    yield _fact("ID", file.claim_id)


def filed_in(file: FileRow) -> str:
    """Where the file lies below its folder (docs/importing.md, Where files go)."""
    if file.is_under_way:
        return "the inbox"
    named = f"as …-{file.claim_id[-8:]}"
    match file.outcome:
        case FileOutcome.FAILED:
            return f"_failed/{file.reason}, {named}"
        case FileOutcome.HELD:
            return f"_held/{file.account}, as {file.claim_id}-{file.account_id}-…"
        case FileOutcome.DUPLICATE:
            return f"_duplicate, {named}"
        case FileOutcome.DONE:
            return f"_done/{file.claimed_at[:10]}/{file.account}, {named}"


def _several(items: Items | None) -> Iterator[Paragraph]:
    if items is None:
        return
    yield _fact("Resumes", counts_text(items))
    for problem in items.problems:
        yield Paragraph(safe(_problem_text(problem)), mark="  ! ")
    if len(items.problems) == MAX_PROBLEMS:
        text = f"These are the first {MAX_PROBLEMS}; the report beside the file may name more."
        yield Paragraph(safe(text, "dim"))


def counts_text(items: Items) -> str:
    """`1,000: 3 failed, 997 done`."""
    counts = {
        "failed": items.failed,
        "held": items.held,
        "duplicate": items.duplicate,
        "done": items.done,
    }
    parts = [f"{count:,} {outcome}" for outcome, count in counts.items() if count]
    return f"{items.total:,}: {', '.join(parts)}" if parts else f"{items.total:,}"


def _problem_text(problem: Problem) -> str:
    what = problem.message or plain_words(problem.reason or problem.outcome)
    return f"{problem.place}: {what}"


def _resumes(read: FileRead) -> Iterator[Paragraph]:
    resumes: Sequence[str] = [
        f"{one.resume_id}, stored before" if one.outcome is FileOutcome.DUPLICATE else one.resume_id
        for one in read.resumes
    ]
    for number, text in enumerate(resumes):
        yield _fact("" if number else "Became", text)
    if len(resumes) == MOST_ITEMS:
        yield _fact("", f"… the first {MOST_ITEMS} of them")


def _fact(label: str, value: str) -> Paragraph:
    return Paragraph(safe(value), mark=f"{label:<{LABEL_CELLS}}")


def copied_text(file: FileRow) -> str | None:
    """The reason with the place in the document, on a line; None for a file that has none."""
    if file.message is None and file.reason is None:
        return None
    parts = [file.reason, file.message]
    if file.path and file.path not in (file.message or ""):
        parts.append(file.path)
    return ": ".join(part for part in parts if part)


def why_not(file: FileRow, action: Action) -> str | None:
    """Why this cannot be asked for the file; None when it can. A held file is never retried."""
    if file.is_under_way:
        return "This file is being imported at this moment."
    if file.outcome is FileOutcome.DONE:
        return f"This file is imported: there is nothing to {action}."
    if file.outcome is FileOutcome.DUPLICATE:
        return f"This file is stored already: there is nothing to {action}."
    if action is Action.RELEASE and file.outcome is FileOutcome.FAILED:
        return "This file failed; only held ones can be released. t tries it again."
    if action is Action.RETRY and file.outcome is FileOutcome.HELD:
        return "This file is held: nothing is wrong with it. l lets it in, if there is room."
    return None
