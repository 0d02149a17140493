"""The JSON view."""

import json

import orjson

from tests.tui.builders import a_hostile_document
from tui.screens.resumes.json_text import json_paragraphs


def test_the_text_is_the_document_again() -> None:
    document = a_hostile_document() | {"tag": "\U000e0041", "numbers": [1.0, -2.5, 0, 2**62]}

    text = "\n".join(f"{p.mark}{p.content.plain}" for p in json_paragraphs(document))

    assert json.loads(text) == document
    assert text.replace("\n", "").isprintable()


def test_keys_keep_their_order() -> None:
    text = [p.content.plain for p in json_paragraphs(orjson.loads('{"z": 1, "a": {"y": 2}}'))]

    assert text == ["{", '"z": 1,', '"a": {', '"y": 2', "}", "}"]
