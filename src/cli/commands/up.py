"""`resumes up`: run the API and the importer together, the usual setup on one machine.

The program that prepares the home is replaced before the services start, so that only this module
and its imports remain in memory.
"""

import json
import signal
from typing import Any

import click

from cli.groups import ACCESS_LOG, LOG_FORMAT, PORT, command
from cli.output import put_json_line, safe_text, say, timed
from cli.session import Session, pass_session
from cli.signals import STOPPING, stop_event
from cli.supervisor import Services, Supervisor


@command()
@click.option(
    "--port",
    type=PORT,
    metavar="N",
    help="Port to listen on, or 0 for any free port. [default: 8000]",
)
@LOG_FORMAT
@ACCESS_LOG
@click.option("--services", hidden=True)
@pass_session
def up(session: Session, /, services: str | None, **flags: Any) -> None:
    """Run the API and the importer until you press Ctrl-C.

    The first run creates the home, an account named "default", its inbox, and an API key. The command
    shows the key only once. If standard output is not a terminal, the command saves the key to a file in
    the home instead.
    """
    if services is None:
        from cli.commands.preparation import prepare_and_run

        prepare_and_run(session, **flags)
        return
    wanted = Services(**json.loads(services))
    with stop_event() as stop, Supervisor(wanted, {}) as supervisor:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        url = supervisor.start(stop)
        if url is None:
            return
        _say_running(session, wanted, url)
        with timed(is_wanted=not wanted.logs_json):
            supervisor.watch(stop)
            say("Stopping.")


def _say_running(session: Session, services: Services, url: str) -> None:
    if session.as_json:
        put_json_line({"url": url, "inbox": services.inbox, "keyFile": services.key_file})
        return
    say("Resumes is running. Press Ctrl-C to stop.")
    say()
    say(f"  API    {url}/api/v1/resumes")
    say(f"  Inbox  {safe_text(services.inbox)}")
    if services.key_file is not None:
        say(f"  Key    in {safe_text(services.key_file)}: copy it and delete the file")
    say()
    say("Drop resume files into the inbox. In another terminal:")
    for hint in services.hints:
        say(f"  {hint}")
    say()
