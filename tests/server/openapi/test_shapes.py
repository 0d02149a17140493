from typing import Any

import pytest

from server.openapi.shapes import RESUME_ID, SHAPES
from tests.server.openapi.conforming import is_valid

DOCUMENT: dict[str, Any] = {"components": {"schemas": SHAPES}}


@pytest.mark.parametrize(
    ("shape", "right", "wrong"),
    [
        ("ResumeId", RESUME_ID, RESUME_ID.upper()),
        ("Created", {"id": RESUME_ID}, {"id": RESUME_ID, "warnings": []}),
        ("Deleted", {"success": True}, {"success": False}),
        ("Issue", {"path": "", "message": "1 more warning"}, {"path": ""}),
        ("Error", {"error": "No", "status": 400, "new": 1}, {"error": "No"}),
        (
            "Page",
            {"resumes": [], "pagination": {"cursor": None, "limit": 1}},
            {"resumes": [], "pagination": {"cursor": "", "limit": 1}},
        ),
    ],
)
def test_a_shape_is_what_is_answered_and_nothing_else(shape: str, right: Any, wrong: Any) -> None:
    assert is_valid(DOCUMENT, SHAPES[shape], right)
    assert not is_valid(DOCUMENT, SHAPES[shape], wrong)
