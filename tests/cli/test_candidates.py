"""What may be completed, asked in this process."""

import signal
from collections.abc import Callable

import click
import pytest
from click.shell_completion import CompletionItem

from cli import candidates
from cli.main import resumes
from cli.session import Session
from resumes.store.ledger import FileOutcome
from tests.cli.conftest import CommandLine, a_resume, store_resumes
from tests.cli.ledger import record_file

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def offered(run: CommandLine, complete: Completer, incomplete: str = "") -> list[tuple[str, str]]:
    """What is offered, each with its description."""
    context = click.Context(resumes)
    context.params = {"home": run.home}
    items = complete(context, click.Argument(["x"]), incomplete)
    return [(str(item.value), item.help or "") for item in items]


def test_each_kind_is_found(acme: CommandLine) -> None:
    [first, second] = store_resumes(acme.home, a_resume("Ada\x1b"), a_resume("Bo"))
    record_file(acme, "c1")

    assert offered(acme, candidates.account_names) == [("acme", "free")]
    assert offered(acme, candidates.plan_names, "p") == [("pro", "")]
    assert offered(acme, candidates.resume_ids) == [
        (first, "Ada\\x1b Resume"),
        (second, "Bo Resume"),
    ]
    assert offered(acme, candidates.resume_ids, second) == [(second, "Bo Resume")]
    assert offered(acme, candidates.claim_ids) == [("c1", "acme/x\\x1b.json")]


def test_files_are_offered_that_can_be_asked_for(acme: CommandLine) -> None:
    record_file(acme, "c1")
    record_file(acme, "c2", FileOutcome.HELD)
    record_file(acme, "c3", FileOutcome.DONE, reason=None)
    record_file(acme, "c4", FileOutcome.DUPLICATE)

    def ids(complete: Completer) -> list[str]:
        return [offer for offer, _ in offered(acme, complete)]

    assert ids(candidates.claim_ids) == ["c4", "c3", "c2", "c1"]
    assert ids(candidates.retriable_ids) == ["c1", "c2"]
    assert ids(candidates.held_ids) == ["c2"]


def test_only_active_keys_are_offered(acme: CommandLine) -> None:
    kept = acme.answers("keys", "create", "acme", "--name", "n", "--json")["id"]
    gone = acme.answers("keys", "create", "acme", "--json")["id"]
    acme.succeeds("keys", "revoke", gone)

    assert offered(acme, candidates.key_ids) == [(kept, "acme n")]


def test_without_a_store_nothing_is_offered_or_raised(run: CommandLine) -> None:
    assert offered(run, candidates.account_names) == []


@pytest.mark.timeout(300, method="thread")
def test_no_alarm_is_left_behind(acme: CommandLine) -> None:
    offered(acme, candidates.account_names)

    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


@pytest.mark.parametrize("incomplete", ["zz", "\x1b", "x" * 500])
def test_what_begins_no_id_offers_nothing(acme: CommandLine, incomplete: str) -> None:
    store_resumes(acme.home, a_resume())

    assert offered(acme, candidates.resume_ids, incomplete) == []


def test_the_home_may_be_named_after_the_command_too(acme: CommandLine) -> None:
    context = click.Context(resumes, obj=Session(home=acme.home))

    offered = candidates.account_names(context, click.Argument(["x"]), "")

    assert [item.value for item in offered] == ["acme"]
