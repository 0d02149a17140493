"""`resumes completion`: the script with which a shell completes commands, names and IDs, and their values."""

import contextlib
import logging
import os
import signal
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click
from click.decorators import FC
from click.shell_completion import CompletionItem, get_completion_class

from cli.groups import command
from cli.output import cut, put, safe_text
from cli.session import Session, choose_account

if TYPE_CHECKING:
    from resumes.store import Store

VARIABLE = "_RESUMES_COMPLETE"


@command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell's completion script.

    \b
    bash  echo 'eval "$(resumes completion bash)"' >> ~/.bashrc
    zsh   echo 'eval "$(resumes completion zsh)"' >> ~/.zshrc
    fish  resumes completion fish > ~/.config/fish/completions/resumes.fish
    """
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    script = shell_class(context.find_root().command, {}, "resumes", VARIABLE)
    # The template alone: source() of bash first runs bash to ask for its version.
    put(script.source_template % script.source_vars())


Find = Callable[[click.Context, "Store", str], Iterator[CompletionItem]]
"""Yields what could stand where the words begin so; others are left out."""

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

LONGEST_S = 1.0
MOST = 100
HELP_CELLS = 50
ID_CHARACTERS = 24


def from_store(find: Find) -> Complete:
    """Return what completes a parameter with what is found in the store of the command line."""

    def complete(
        context: click.Context, _: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        offered: list[CompletionItem] = []
        with _quietly(), context.ensure_object(Session).store() as store:
            found = find(context, store, incomplete)
            offered = [item for item in found if str(item.value).startswith(incomplete)]
        return offered

    return complete


@from_store
def account_names(_: click.Context, store: "Store", __: str) -> Iterator[CompletionItem]:
    """Complete names of accounts, with their plans."""
    from resumes.store import accounts

    for account in accounts.list_accounts(store):
        yield CompletionItem(account.name, help=account.plan)


def account_option(
    sentence: str = "Account to use. Optional if there is only one account.",
) -> Callable[[FC], FC]:
    """Return `--account NAME`, an option of many commands; the sentence is its help."""
    return click.option("--account", metavar="NAME", shell_complete=account_names, help=sentence)


@from_store
def plan_names(_: click.Context, store: "Store", __: str) -> Iterator[CompletionItem]:
    """Complete names of plans."""
    from resumes.store import plans

    for plan in plans.list_plans(store):
        yield CompletionItem(plan.name)


@from_store
def key_ids(_: click.Context, store: "Store", __: str) -> Iterator[CompletionItem]:
    """Complete IDs of active keys, with their accounts and names."""
    from resumes.store import api_keys

    for key in api_keys.list_keys(store):
        if key.state is api_keys.KeyState.ACTIVE:
            yield CompletionItem(key.id, help=f"{key.account} {key.name}".strip())


@from_store
def resume_ids(context: click.Context, store: "Store", incomplete: str) -> Iterator[CompletionItem]:
    """Complete IDs of resumes of the account given so far, with their titles."""
    from resumes.store import stored_resumes

    account = choose_account(context.ensure_object(Session), store, context.params.get("account"))
    before = ""  # the position before the smallest ID that begins so
    if incomplete:
        smallest = int(incomplete.ljust(ID_CHARACTERS, "0"), 16)
        before = f"{max(0, smallest - 1):0{ID_CHARACTERS}x}"
    for entry in stored_resumes.list_page(store, account.id, cursor=before, limit=MOST).entries:
        yield CompletionItem(entry.id, help=cut(safe_text(entry.shown_title), HELP_CELLS))


def file_ids(*outcomes: str) -> Complete:
    """Return what completes IDs of dropped files, with their names: the newest of each outcome, or of all."""

    @from_store
    def complete(_: click.Context, store: "Store", __: str) -> Iterator[CompletionItem]:
        from resumes.store.import_history import list_files
        from resumes.store.import_ledger import FileOutcome

        for outcome in map(FileOutcome, outcomes) if outcomes else [None]:
            for row in list_files(store, outcome=outcome, limit=MOST):
                yield CompletionItem(row.claim_id, help=cut(safe_text(row.name), HELP_CELLS))

    return complete


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Log and raise nothing during the block, and end the process after a second."""
    logging.disable(logging.CRITICAL)
    previous = signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        with contextlib.suppress(Exception):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        logging.disable(logging.NOTSET)
