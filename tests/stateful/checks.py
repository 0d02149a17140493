"""Whether an answer is what it must be."""

import json

from resumes.clock import timestamp
from tests.stateful.model import Account, Expected
from tests.stateful.requests import Answer, Refused


def check(answer: Answer, expected: Expected) -> None:
    """The answer has the status, and the error if it is one."""
    told = (answer.status, answer.json.get("error"))
    assert told == (expected.status, expected.error), f"{told}, not {expected}"
    if expected.error is not None:
        check_shape(answer)


def check_refused(answer: Answer, refused: Refused) -> None:
    """The answer is the refusal that the request asks for."""
    assert answer.status == refused.status, answer
    assert answer.json["error"].startswith(refused.error), answer
    assert answer.status != 405 or answer.headers["allow"] == "GET, POST"
    check_shape(answer)


def check_shape(answer: Answer) -> None:
    """An error has the shape of all errors."""
    assert answer.json["error"]
    assert answer.json["status"] == answer.status
    assert answer.json["requestId"] == answer.headers["x-request-id"]
    assert answer.status != 401 or answer.headers["www-authenticate"] == "Bearer"


def check_page(answer: Answer, account: Account, ids: list[str], cursor: str | None) -> None:
    """The page lists these resumes, in this order, and the cursor leads on."""
    entries = answer.json["resumes"]
    assert [entry["id"] for entry in entries] == ids
    assert answer.json["pagination"]["cursor"] == cursor
    for entry in entries:
        stored = account.resumes[entry["id"]]
        assert entry.keys() == {"id", "title", "filename", "createdAt", "updatedAt"}
        assert entry["title"] == stored.body.title
        assert entry["filename"] == f"{''.join(stored.body.name.split())}Resume.pdf"
        assert timestamp(stored.since_us) <= entry["createdAt"] <= timestamp(stored.until_us)
        assert entry["updatedAt"] == entry["createdAt"]


def check_view(told: object, account: Account, resume_id: str) -> None:
    """What is shown is what was sent, with sections in their order."""
    view = account.resumes[resume_id].body.view
    if view is not None:
        assert isinstance(told, dict)
        assert told == view
        assert json.dumps(told["sections"]) == json.dumps(view["sections"])
