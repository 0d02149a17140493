"""`resumes edit`: edit a resume in the user's editor."""

import sys

import click

from cli.commands.resumes import get_resume
from cli.errors import ExitCode
from cli.groups import account_option, command
from cli.output import issues_as_json, safe_text, say
from cli.session import Session, choose_account, pass_session
from resumes.editor import Draft, Saved
from resumes.errors import InvalidArgument
from resumes.store import Store
from resumes.text import counted


@command()
@click.argument("resume_id", metavar="ID")
@account_option()
@pass_session
def edit(session: Session, resume_id: str, account: str | None) -> ExitCode:
    """Edit a resume in your editor.

    The command opens the resume as JSON in the editor that VISUAL or EDITOR names, otherwise in vi. When
    you close the editor, the command checks what you saved and stores it. If the text is not a valid
    resume, you can continue editing. The ID and the creation time stay. A correction does not count as a
    new resume.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidArgument(
            "Cannot open an editor without a terminal. Programs can update a resume over the API: see "
            "docs/api.md"
        )
    with session.store() as store:
        chosen = choose_account(session, store, account)
        resume = get_resume(session, store, chosen, resume_id)
        draft = Draft(chosen.id, resume, session.settings().format)
        try:
            saved = _edit(store, draft)
        except BaseException:
            # In case of any error, keep what the user typed.
            if draft.is_changed:
                say(f"Your text is in {draft.path}")
            else:
                draft.discard()
            raise
    answer = {"id": resume_id, "changed": saved is not None}
    if saved is None:
        session.answer(answer, "The resume was not changed.")
        return ExitCode.DONE
    if saved.problems:
        say(f"Canceled: nothing was stored. Your text is in {draft.path}")
        return ExitCode.FAILED
    answer |= {"replaced": list(saved.replaced)} if saved.replaced else {}
    answer |= {"warnings": issues_as_json(saved.warnings)} if saved.warnings else {}
    replaced = f" Replaced {', '.join(saved.replaced)}." if saved.replaced else ""
    session.answer(answer, f"Updated resume {safe_text(resume_id)}.{replaced}")
    if saved.warnings and not session.as_json:
        say(f"{counted(len(saved.warnings), 'warning').capitalize()}:")
        for issue in saved.warnings:
            say(f"  {safe_text(issue.message)}")
    return ExitCode.DONE


def _edit(store: Store, draft: Draft) -> Saved | None:
    """Let the user edit until the text is stored or discarded. Return None if it did not change."""
    while True:
        if not draft.edit():
            draft.discard()
            return None
        saved = draft.save(store)
        if not saved.problems:
            return saved
        say(f"This cannot be stored ({counted(len(saved.problems), 'problem')}):")
        for issue in saved.problems:
            say(f"  {safe_text(issue.message)}")
        if not click.confirm("Continue editing?", err=True):
            return saved
