"""What the service sets is taken out of a stored document."""

import json
from typing import Any

import pytest

from resumes.analyzer.service_fields import take_out
from tests.resumes.analyzer.documents import a_document, stored, with_section

DOCUMENTS = [
    a_document(),
    with_section("experiences", {"position": "X", "bullets": ["a"]}, {}),
    with_section("skills", {"tags": ["a"]}, showBulletMarker=True),
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_document_is_as_it_was_sent(document: dict[str, Any]) -> None:
    kept = stored(document)
    assert take_out(kept)
    assert kept == json.loads(json.dumps(document))


@pytest.mark.parametrize(
    "change",
    [{"record": "awards"}, {"record": None}, {"showTags": 1}, {"showTags": "true"}],
)
def test_what_the_service_does_not_set_so_is_told(change: dict[str, Any]) -> None:
    document = stored(with_section("skills", {"tags": ["a"]}))
    document["sections"]["skills"]["items"][0] |= change
    assert not take_out(document)


def test_a_document_that_is_not_marked_as_imported_is_told() -> None:
    assert not take_out(a_document())
    assert not take_out(a_document(isImported=1))


@pytest.mark.parametrize("sections", [None, 7, [], {"skills": 7}, {"skills": {"items": 7}}])
def test_what_has_another_shape_is_left_as_it_is(sections: Any) -> None:
    document = {"sections": sections, "isImported": True}
    assert take_out(document)
    assert document == {"sections": sections}


def test_items_of_another_shape_are_left_as_they_are() -> None:
    document = {"sections": {"skills": {"items": [7, None, []]}}, "isImported": True}
    assert take_out(document)
    assert document["sections"] == {"skills": {"items": [7, None, []]}}
