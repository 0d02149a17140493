"""`resumes show`: one resume, to read or whole."""

import click

from cli.candidates import account_option, resume_ids
from cli.commands import command
from cli.lookup import get_resume
from cli.output import put, put_json
from cli.session import Session, choose_account, pass_session


@command()
@click.argument("resume_id", metavar="ID", shell_complete=resume_ids)
@account_option()
@pass_session
def show(session: Session, resume_id: str, account: str | None) -> None:
    """Show a resume.

    As people read it; with --json the stored resume whole, with all that the service sets.
    """
    from cli import page
    from resumes.analyzer import whole_view

    with session.store() as store:
        resume = get_resume(session, store, choose_account(store, account), resume_id)
    if session.as_json:
        put_json(whole_view(resume.document))
        return
    for line in page.lines(resume, session.settings().format):
        put(line)
