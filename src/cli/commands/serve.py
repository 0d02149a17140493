"""`resumes serve`: run only the API."""

import functools
from pathlib import Path
from typing import Any

import click

from cli.groups import ACCESS_LOG, LOG_FORMAT, PORT, command
from cli.logs import open_service_log
from cli.output import put_json_line, say
from cli.session import Session, make_home, pass_session
from cli.signals import end_with_standard_input
from server import service

FILE = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)


@command()
@click.option("--host", metavar="ADDRESS", help="Address to listen on. [default: 127.0.0.1]")
@click.option(
    "--port",
    type=PORT,
    metavar="N",
    help="Port to listen on, or 0 for any free port. [default: 8000]",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Number of API processes. [default: 1]",
)
@click.option(
    "--rate-limit/--no-rate-limit",
    default=None,
    help="Limit the number of requests per key. [default: on, except on a loopback address]",
)
@click.option("--tls-cert", type=FILE, metavar="FILE", help="Serve HTTPS with this certificate.")
@click.option("--tls-key", type=FILE, metavar="FILE", help="The certificate's private key.")
@LOG_FORMAT
@ACCESS_LOG
@click.option("--until-stdin-ends", is_flag=True, hidden=True)
@pass_session
def serve(
    session: Session,
    /,
    tls_cert: Path | None,
    tls_key: Path | None,
    until_stdin_ends: bool,
    **flags: Any,
) -> None:
    """Run only the API until you press Ctrl-C."""
    if tls_key is not None and tls_cert is None:
        raise click.UsageError("--tls-key needs --tls-cert")
    if until_stdin_ends:
        end_with_standard_input()
    settings = session.settings(**flags)
    make_home(settings.home)
    service.run(
        settings,
        tls_cert=tls_cert,
        tls_key=tls_key,
        ready=lambda url: _say_ready(session, url),
        open_log=functools.partial(open_service_log, as_json=settings.log_format == "json"),
    )


def _say_ready(session: Session, url: str) -> None:
    if session.as_json:
        put_json_line({"url": url})
    else:
        say(f"The API is running at {url}. Press Ctrl-C to stop.")
