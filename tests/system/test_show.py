"""`resumes show --json` is the stored resume whole, with what the service set."""

import json
from pathlib import Path
from typing import Any

import pytest

from resumes.analyzer.sections import SECTION_TYPES
from tests.stores import make_account
from tests.system import programs

pytestmark = pytest.mark.slow

SAMPLE = "all-26-section-types-newcondensed-en.json"


def with_hidden_fields(document: dict[str, Any]) -> dict[str, Any]:
    """The document, with every second field of its items emptied, in all the ways there are."""
    empties: list[Any] = [None, "", []]
    for section in document["sections"].values():
        for item in section["items"]:
            for position, field in enumerate(list(item)):
                if position % 2:
                    is_list = isinstance(item[field], list)
                    is_text = isinstance(item[field], str)
                    item[field] = empties[2] if is_list else empties[1] if is_text else empties[0]
    return document


def test_a_resume_of_all_26_types_with_hidden_fields_shows_record_flags_and_is_imported(
    tmp_path: Path, repository: Path
) -> None:
    sent = with_hidden_fields(json.loads((repository / "sample_data" / SAMPLE).read_bytes()))
    file = tmp_path / "hidden.json"
    file.write_text(json.dumps(sent), encoding="utf-8")
    home = tmp_path / "home"
    make_account(home, "ana")
    programs.succeed(home, "import", str(file), "--account", "ana")
    (entry,) = json.loads(programs.succeed(home, "list", "--json"))["resumes"]
    stored = json.loads(programs.succeed(home, "show", entry["id"], "--json"))

    assert stored["isImported"] is True
    assert list(stored["sections"]) == list(sent["sections"])
    assert stored["sections"].keys() == SECTION_TYPES.keys()
    hidden = 0
    for name, section in stored["sections"].items():
        for item, original in zip(section["items"], sent["sections"][name]["items"], strict=True):
            assert item["record"] == name
            for field in SECTION_TYPES[name].fields:
                flag = f"show{field[0].upper()}{field[1:]}"
                is_shown = original.get(field) not in (None, "", [])
                assert item[flag] is is_shown, (name, field)
                hidden += not is_shown
            assert {key: item[key] for key in original} == original
    assert hidden > 26
