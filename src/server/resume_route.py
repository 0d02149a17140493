"""GET and DELETE /api/v1/resumes/{id} (docs/api.md, One resume)."""

import orjson

from resumes.analyzer import Format, public_view
from resumes.errors import BusinessPlanRequired
from resumes.store import Store, stored_resumes
from resumes.store.api_keys import KeyHolder
from server.request import Request

DELETED = b'{"success":true}'


class ResumeRoute:
    """The operations on one resume. Unknown and foreign ids are NotFound."""

    def __init__(self, store: Store, format: Format) -> None:  # noqa: A002  (as in the analyzer)
        self._store = store
        self._format = format

    def read(self, request: Request, holder: KeyHolder) -> bytes:
        """Return the resume as JSON. Raises BusinessPlanRequired and NotFound, in this order."""
        check_plan(holder)
        stored = stored_resumes.get_resume(self._store, holder.account_id, _id(request))
        return orjson.dumps(public_view(stored.document, self._format))

    async def read_async(self, request: Request, holder: KeyHolder) -> bytes:
        """`read`, from a store that is waited for."""
        check_plan(holder)
        stored = await stored_resumes.get_resume_async(self._store, holder.account_id, _id(request))
        return orjson.dumps(public_view(stored.document, self._format))

    async def delete(self, request: Request, holder: KeyHolder) -> None:
        """Delete the resume for good, and tell the client. Raises NotFound."""
        await stored_resumes.delete_resume_async(self._store, holder.account_id, _id(request))
        request.respond(200, DELETED)


def check_plan(holder: KeyHolder) -> None:
    """Raises BusinessPlanRequired unless the account may read over the API."""
    if not holder.api_listing:
        raise BusinessPlanRequired


def _id(request: Request) -> str:
    return request.path.rpartition("/")[2]
