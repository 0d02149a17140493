"""What a demo tells when it has happened: the resumes, the refused files, what to try next."""

import http.client
import json
import shlex
import textwrap
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cli.demonstration import ACCOUNT, Demo
from cli.output import Column, instant, put, put_json, put_table
from cli.text import safe_text
from resumes.errors import StoreUnavailable
from resumes.text import counted

COLUMNS = (Column("id"), Column("title", is_flexible=True), Column("created (UTC)"))
LIMIT = 100
TIMEOUT_S = 10.0
WIDTH = 78
WITHOUT_KEY = "the key of the first demo here; `resumes keys create demo` makes another"
BODY = '{"header": {"name": "Ada Lovelace"}, "sections": {}}'


def tell_imported(demo: Demo) -> None:
    """The import was told, from the store: nothing is served."""
    resumes = _from_store(demo)
    if demo.session.as_json:
        put_json(_as_json(demo, resumes, url=None))
        return
    _put_import(demo, resumes, "as the API lists them")
    put()
    put("What to try next:")
    put()
    put_step(1, "Look around in the terminal UI", demo.session.command_line("tui"))
    put_step(2, "See what became of the files", demo.session.command_line("imports", "list"))
    put_step(3, "Serve the API", demo.session.command_line("serve"))


def tell_served(demo: Demo, url: str) -> None:
    """The import and the served API were told, the resumes asked of that API."""
    resumes = _from_store(demo) if demo.secret is None else ask_api(url, demo.secret)
    if demo.session.as_json:
        put_json(_as_json(demo, resumes, url=url))
        return
    _put_import(demo, resumes, f"as GET {url}/api/v1/resumes lists them")
    put()
    put(f"The API listens at {url}, and the importer watches the inbox.")
    put("What to try next, in another terminal:")
    put()
    _put_steps(demo, url)
    put("Ctrl-C ends the demo.")


def ask_api(url: str, secret: str) -> list[dict[str, Any]]:
    """The first page of resumes that the API answers with. Raises StoreUnavailable."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=TIMEOUT_S)
    try:
        connection.request(
            "GET", f"/api/v1/resumes?limit={LIMIT}", headers={"Authorization": f"Bearer {secret}"}
        )
        answer = connection.getresponse()
        body = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise StoreUnavailable(f"The API at {url} does not answer: {error}") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise StoreUnavailable(f"The API at {url} answered {answer.status}: {body.get('error')}")
    resumes: list[dict[str, Any]] = body["resumes"]
    return resumes


def _from_store(demo: Demo) -> list[dict[str, Any]]:
    from resumes.store import accounts
    from resumes.store.stored_resumes import list_page

    with demo.session.store() as store:
        page = list_page(store, accounts.get_account(store, ACCOUNT).id, limit=LIMIT)
    resumes: list[dict[str, Any]] = page.as_json(limit=LIMIT)["resumes"]
    return resumes


def _put_import(demo: Demo, resumes: list[dict[str, Any]], how: str) -> None:
    put(f"The demo's home is {safe_text(str(demo.settings.home))}.")
    if demo.dropped:
        good = sum(demo.dropped.values())
        bad = len(demo.dropped) - good
        put(f'Dropped {good} good samples and {bad} bad ones into the inbox of account "demo".')
    else:
        put("Its samples were dropped before; nothing that is there was changed.")
    put()
    put(f"{counted(len(resumes), 'resume')}, {how}:")
    put()
    put_table(COLUMNS, ([one["id"], one["title"], instant(one["createdAt"])] for one in resumes))
    _put_failed(demo)


def _put_failed(demo: Demo) -> None:
    failed = [report for report in demo.reports if report.outcome == "failed"]
    if not failed:
        return
    put()
    put(f"{counted(len(failed), 'file')} could not be imported, and went to")
    put(f"{_inbox(demo, '_failed')}, each with a report beside it:")
    put()
    for report in sorted(failed, key=lambda report: report.name):
        put(safe_text(Path(report.name).name))
        put(_indented(report.message or ""))


def _indented(text: str) -> str:
    return textwrap.fill(
        safe_text(text), WIDTH, initial_indent="    ", subsequent_indent="    ",
        break_on_hyphens=False,
    )  # fmt: skip


def _put_steps(demo: Demo, url: str) -> None:
    put(f"   KEY={demo.secret or WITHOUT_KEY}")
    put(f"   API={url}/api/v1/resumes")
    put()
    put_step(1, "List the resumes", 'curl -H "Authorization: Bearer $KEY" $API')
    put_step(
        2,
        "Create one",
        """curl -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\""",
        f"     -d {shlex.quote(BODY)} $API",
    )
    put_step(3, "Look around in the terminal UI", demo.session.command_line("tui"))


def put_step(number: int, what: str, *lines: str) -> None:
    """A numbered thing to try, and the command for it."""
    put(f"{number}. {what}:")
    for line in lines:
        put(f"   {line}")
    put()


def _inbox(demo: Demo, folder: str) -> str:
    return safe_text(str(demo.settings.inbox / folder))


def _as_json(demo: Demo, resumes: list[dict[str, Any]], *, url: str | None) -> dict[str, Any]:
    from cli.watching import as_json

    return {
        "home": str(demo.settings.home),
        "url": url,
        "key": demo.secret,
        "resumes": resumes,
        "files": [as_json(report) for report in demo.reports],
    }
