"""GET and DELETE /api/v1/resumes/{id} (docs/api.md, One resume)."""

import orjson

from resumes.analyzer import Format, public_view
from resumes.errors import BusinessPlanRequired
from resumes.store import Store, listing
from resumes.store.keys import KeyHolder
from server.exchange import Exchange

DELETED = b'{"success":true}'


class ResumeRoute:
    """The operations on one resume. Unknown and foreign ids are NotFound."""

    def __init__(self, store: Store, format: Format) -> None:  # noqa: A002  (as in the analyzer)
        self._store = store
        self._format = format

    async def get(self, exchange: Exchange, holder: KeyHolder) -> None:
        """The client has the resume. Raises what `read` raises."""
        await exchange.respond(200, self.read(exchange, holder))

    def read(self, exchange: Exchange, holder: KeyHolder) -> bytes:
        """The resume as JSON. Raises BusinessPlanRequired and NotFound, in this order."""
        if not holder.api_listing:
            raise BusinessPlanRequired
        stored = listing.get_resume(self._store, holder.account_id, _id(exchange))
        return orjson.dumps(public_view(stored.document, self._format))

    async def delete(self, exchange: Exchange, holder: KeyHolder) -> None:
        """The resume is gone for good, and the client knows. Raises NotFound."""
        await listing.delete_resume_soon(self._store, holder.account_id, _id(exchange))
        await exchange.respond(200, DELETED)


def _id(exchange: Exchange) -> str:
    path: str = exchange.scope["path"]
    return path.rpartition("/")[2]
