"""`resumes delete`: one resume, for good."""

import click

from cli import questions
from cli.candidates import account_option, resume_ids
from cli.commands import command
from cli.lookup import get_resume, not_found
from cli.output import put_json, say
from cli.session import Session, choose_account, pass_session
from cli.text import safe_text
from resumes.errors import NotFound


@command()
@click.argument("resume_id", metavar="ID", shell_complete=resume_ids)
@account_option()
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_session
def delete(session: Session, resume_id: str, account: str | None, yes: bool) -> None:
    """Delete a resume.

    On a terminal it asks first; scripts are not asked. The place in the quota is free again, and
    a file of the same content can be imported anew.
    """
    from resumes.store import stored_resumes

    with session.store() as store:
        chosen = choose_account(store, account)
        if questions.can_ask() and not yes:
            resume = get_resume(session, store, chosen, resume_id)
            questions.confirm(f'Delete "{safe_text(resume.entry.shown_title)}" for good?')
        try:
            stored_resumes.delete_resume(store, chosen.id, resume_id)
        except NotFound:
            raise not_found(session, chosen, resume_id) from None
    if session.as_json:
        put_json({"deleted": resume_id})
    else:
        say(f'Resume {safe_text(resume_id)} of account "{safe_text(chosen.name)}" is gone.')
