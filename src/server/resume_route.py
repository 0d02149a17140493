"""GET and DELETE /api/v1/resumes/{id} (docs/api.md, One resume)."""

import orjson
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from resumes.analyzer import Format, public_view
from resumes.errors import BusinessPlanRequired
from resumes.store import Store, listing
from resumes.store.keys import KeyHolder
from server.responses import respond

DELETED = b'{"success":true}'


class ResumeRoute:
    """One resume, as an ASGI application below the router; `scope["holder"]` says whose."""

    def __init__(self, store: Store, format: Format) -> None:  # noqa: A002  (as in the analyzer)
        self._store = store
        self._format = format

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The client has the resume, or its deletion is done; unknown and foreign ids are NotFound."""
        holder: KeyHolder = scope["holder"]
        resume_id: str = scope["path_params"]["id"]
        match scope["method"]:
            case "GET":
                await self._get(holder, resume_id, send)
            case "DELETE":
                await listing.delete_resume_soon(self._store, holder.account_id, resume_id)
                await respond(send, 200, DELETED)
            case _:
                raise HTTPException(405, headers={"Allow": "GET, DELETE"})

    async def _get(self, holder: KeyHolder, resume_id: str, send: Send) -> None:
        if not holder.api_listing:
            raise BusinessPlanRequired
        stored = listing.get_resume(self._store, holder.account_id, resume_id)
        await respond(send, 200, orjson.dumps(public_view(stored.document, self._format)))
