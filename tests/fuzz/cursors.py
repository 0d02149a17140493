"""Any bytes, as the query of a list, asked of a real store."""

import atexit
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from resumes.analyzer import parse
from resumes.errors import InvalidArgument
from resumes.search.query import parse_query as parse_search
from resumes.store import Store, accounts, creation, open_store, search, stored_resumes
from resumes.store.creation import Created, NewResume
from resumes.store.labels import check_label
from resumes.store.search_index import Indexer, list_behind
from resumes.store.stored_resumes import Page
from server.routes import parse_query
from tests.fuzz.declared import bounded

COUNT: Final = 7
"""Resumes in each of the two accounts."""

LABELS: Final = (None, "a", "ab")
"""The labels that they have in turn."""

PEOPLE: Final = 5
"""So many people the resumes are of, in turns."""

_ID: Final = re.compile("(?:[0-9a-f]{24})?")
_INTEGER: Final = re.compile("-?[0-9]+")
_NOW_US: Final = 1_800_000_000_000_000


class Listed(NamedTuple):
    """A store, one of its accounts, and the ids of that account in their order."""

    store: Store
    account_id: str
    ids: list[str]


def check_cursors(query: bytes) -> None:
    """The query is refused, or gives the page of the account's own resumes that it names."""
    listed = _listed()
    expected = _expected(query)
    with bounded(len(query)):
        page = _find_page(listed, query)
    assert (page is None) == (expected is None)
    if page is None or expected is None:
        return
    cursor, limit, is_newest_first, label, is_latest = expected
    ids = [
        one
        for at, one in enumerate(listed.ids)
        if label in (None, LABELS[at % len(LABELS)])
        and (not is_latest or at + PEOPLE >= len(listed.ids))
    ]
    if is_newest_first:
        after = [one for one in reversed(ids) if one < (cursor or "~")]
    else:
        after = [one for one in ids if one > cursor]
    assert [entry.id for entry in page.entries] == after[:limit]
    assert page.cursor == (after[limit - 1] if len(after) > limit else None)
    found = search.find_page(
        listed.store,
        listed.account_id,
        "ada",
        cursor=cursor,
        limit=limit,
        is_newest_first=is_newest_first,
        label=label,
        is_latest=is_latest,
        timeout_s=60,
    )
    assert (found.page.entries, found.page.cursor) == (page.entries, page.cursor)


def _find_page(listed: Listed, query: bytes) -> Page | None:
    """The page of a list that a client gets; None when the query is refused."""
    try:
        asked = parse_query(query)
        return stored_resumes.list_page(listed.store, listed.account_id, **asked.page())
    except InvalidArgument:
        return None


def _expected(query: bytes) -> tuple[str, int, bool, str | None, bool] | None:
    """The cursor, the limit, the order, the label, and whether only the newest of each person are asked
    for; None for a query that is to be refused."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    if {name for name, _ in pairs} - {"limit", "cursor", "q", "sort", "label", "latest"}:
        return None
    limits, cursors, words, sorts, labels, latest = (
        [value for name, value in pairs if name == wanted]
        for wanted in ("limit", "cursor", "q", "sort", "label", "latest")
    )
    if max(map(len, (limits, cursors, words, sorts, labels, latest))) > 1:
        return None
    if latest and latest[0] not in ("true", "false"):
        return None
    try:
        label = check_label(labels[0]) if labels else None
    except InvalidArgument:
        return None
    if (limits and not _INTEGER.fullmatch(limits[0])) or (
        cursors and not _ID.fullmatch(cursors[0])
    ):
        return None
    search_query = parse_search([*words, "a"][0])
    if (
        search_query.is_cut
        or not search_query.terms
        or (sorts and sorts[0] not in ("oldest", "newest"))
    ):
        return None
    limit = min(100, max(1, int([*limits, "20"][0][:4_000])))
    return [*cursors, ""][0], limit, sorts == ["newest"], label, latest == ["true"]


@cache
def _listed() -> Listed:
    folder = Path(tempfile.mkdtemp(prefix="resumes-fuzz-"))
    store = open_store(f"sqlite:///{folder / 'resumes.db'}", clock=lambda: _NOW_US)
    # The last registered is the first to be called.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(store.close)
    # In turns, so that each account's ids lie between the other's.
    ids: dict[str, list[str]] = {
        accounts.create_account(store, name, plan="business").id: [] for name in ("ana", "bo")
    }
    for number in range(COUNT):
        header = b'{"name":"Ada Lovelace","email":"%d"}' % (number % PEOPLE)
        new = NewResume(parse(b'{"header":%b,"sections":{}}' % header))
        for account_id, made in ids.items():
            labelled = new._replace(label=LABELS[number % len(LABELS)])
            (outcome,) = creation.create(store, account_id, [labelled])
            assert isinstance(outcome, Created)
            made.append(outcome.id)
    while list_behind(store):
        Indexer(store).step()
    account_id, mine = next(iter(ids.items()))
    return Listed(store, account_id, mine)
