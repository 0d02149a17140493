"""`resumes label` and `resumes labels`: change the label of resumes, and list the labels."""

from typing import Final

import click

from cli.commands.resumes import explained
from cli.groups import account_option, command
from cli.output import Column, put_json, put_table, safe_text, say
from cli.session import Session, choose_account, pass_session
from resumes.store import stored_resumes
from resumes.store.identifiers import RESUME_ID
from resumes.store.labels import check_label, list_labels, set_label
from resumes.text import counted


@command()
@click.argument("words", metavar="ID... NAME", nargs=-1, required=True)
@click.option("--none", "is_none", is_flag=True, help="Remove the label. Give only IDs.")
@account_option()
@pass_session
def label(session: Session, words: tuple[str, ...], is_none: bool, account: str | None) -> None:
    """Change the label of resumes.

    A label groups resumes, for example by class or client. A resume has at most one label, so NAME replaces
    its current label.
    """
    given = words if is_none else words[:-1]
    if not given or (not is_none and RESUME_ID.fullmatch(words[-1])):
        raise click.UsageError("Give the IDs of the resumes and then their label, or use --none")
    name = None if is_none else check_label(words[-1])
    ids = list(dict.fromkeys(given))
    with session.store() as store:
        chosen = choose_account(session, store, account)
        for resume_id in ids:  # report a wrong ID before anything is changed
            with explained(session, chosen, resume_id):
                stored_resumes.get_entry(store, chosen.id, resume_id)
        count = counted(set_label(store, chosen.id, ids, name), "resume")
    done = "Removed the label" if name is None else f'Set the label "{safe_text(name)}"'
    sentence = f'{done} of {count} in account "{safe_text(chosen.name)}".'
    session.answer({"label": name, "ids": ids}, sentence)


COLUMNS: Final = (
    Column("label", lambda counted: counted.label, is_flexible=True),
    Column("resumes", lambda counted: f"{counted.resumes:,}", is_number=True),
)


@command()
@account_option()
@pass_session
def labels(session: Session, account: str | None) -> None:
    """List an account's labels."""
    with session.store() as store:
        chosen = choose_account(session, store, account)
        known = list_labels(store, chosen.id)
    if session.as_json:
        put_json({"labels": [count._asdict() for count in known]})
    elif known:
        put_table(COLUMNS, known)
    else:
        say(f'No labels in account "{safe_text(chosen.name)}".')
