"""`resumes show`."""

import json

from resumes.analyzer import parse
from tests.cli.conftest import CommandLine, a_resume, store_resumes


def test_json_is_the_stored_resume_whole_in_its_order(acme: CommandLine) -> None:
    body = b"""{"sections": {"skills": {"column": 0, "items": [{"title": "Go", "tags": []}]}},
                "unknown": [1.0, 1e2], "header": {"name": "Ada"}}"""
    [resume_id] = store_resumes(acme.home, body)

    printed = acme.succeeds("show", resume_id, "--json")

    stored = parse(body).document
    assert json.dumps(json.loads(printed)) == json.dumps(json.loads(stored))
    shown = json.loads(printed)
    assert shown["isImported"] is True
    [item] = shown["sections"]["skills"]["items"]
    assert (item["record"], item["showTitle"], item["showTags"]) == ("skills", True, False)


def test_people_get_a_page(acme: CommandLine) -> None:
    [resume_id] = store_resumes(acme.home, a_resume("Ada"))

    lines = acme.succeeds("show", resume_id).splitlines()

    assert lines[0] == "Ada Resume"
    assert lines[1].startswith(f"{resume_id}, created ")
    assert "    Analyst and metaphysician." in lines


def test_an_id_that_is_not_there_is_named_with_the_way_on(acme: CommandLine) -> None:
    message = acme.fails(1, "show", "no-such-id")

    assert message.startswith('Resume not found in account "acme": "no-such-id". `resumes --home ')
    assert message.endswith(
        "list --account acme --filter TEXT` finds resumes by title, name or e-mail address"
    )
