import json

from resumes.errors import ErrorCode, Issue
from server.responses import STATUSES, error_body


def test_the_status_table_covers_every_error_code() -> None:
    assert set(STATUSES) == set(ErrorCode)
    assert all(400 <= status < 600 for status in STATUSES.values())


def test_an_error_body_is_error_and_status_and_issues_only_if_any() -> None:
    assert json.loads(error_body(404, "No")) == {"error": "No", "status": 404}
    assert json.loads(error_body(400, "No", [Issue("a", "b")]))["issues"] == [
        {"path": "a", "message": "b"}
    ]


def test_an_error_body_has_the_request_id_and_what_else_is_given() -> None:
    body = json.loads(error_body(429, "Slow", request_id="r", retryAfter=2))
    assert body == {"error": "Slow", "status": 429, "retryAfter": 2, "requestId": "r"}
