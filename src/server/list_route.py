"""GET /api/v1/resumes: the account's resumes, page by page (docs/api.md, List)."""

import re
from urllib.parse import parse_qsl

import orjson

from resumes.errors import BusinessPlanRequired, InvalidArgument
from resumes.store import Store, stored_resumes
from resumes.store.api_keys import KeyHolder
from resumes.store.stored_resumes import DEFAULT_LIMIT, MAX_LIMIT
from server.request import Request

LIMIT = re.compile("-?[0-9]+")


class ListRoute:
    """Lists resumes, for accounts whose plan includes that."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self, request: Request, holder: KeyHolder) -> bytes:
        """Return the page that the request's query asks for, as JSON.

        Raises BusinessPlanRequired, and InvalidArgument for the query, in this order.
        """
        cursor, limit = _asked(request, holder)
        page = stored_resumes.list_page(self._store, holder.account_id, cursor=cursor, limit=limit)
        return orjson.dumps(page.as_json(limit=limit))

    async def read_async(self, request: Request, holder: KeyHolder) -> bytes:
        """`read`, from a store that is waited for."""
        cursor, limit = _asked(request, holder)
        page = await stored_resumes.list_page_async(
            self._store, holder.account_id, cursor=cursor, limit=limit
        )
        return orjson.dumps(page.as_json(limit=limit))


def _asked(request: Request, holder: KeyHolder) -> tuple[str, int]:
    if not holder.api_listing:
        raise BusinessPlanRequired
    return parse_query(request.query)


def parse_query(query: bytes) -> tuple[str, int]:
    """The cursor, empty for the first page, and the page size of a query string.

    Raises InvalidArgument for a limit that is no integer, and for either given twice; what else
    the query holds is ignored. The cursor's form is left to the store.
    """
    if not query:
        return "", DEFAULT_LIMIT
    fields: dict[str, list[str]] = {}
    for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True):
        fields.setdefault(name, []).append(value)
    limits = fields.get("limit", [str(DEFAULT_LIMIT)])
    cursors = fields.get("cursor", [""])
    if len(limits) > 1 or not LIMIT.fullmatch(limits[0]):
        raise InvalidArgument(f"Invalid limit: must be an integer from 1 to {MAX_LIMIT}")
    if len(cursors) > 1:
        raise InvalidArgument("Invalid cursor")
    return cursors[0], _clamp(limits[0])


def _clamp(digits: str) -> int:
    """An integer of any length, brought into 1 to 100 without being made a number first."""
    if digits.startswith("-"):
        return 1
    significant = digits.lstrip("0") or "0"
    if len(significant) > len(str(MAX_LIMIT)):
        return MAX_LIMIT
    return max(1, min(int(significant), MAX_LIMIT))
