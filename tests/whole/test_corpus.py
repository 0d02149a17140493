"""Resumes that nobody here wrote, through the watched folder and out through the API."""

import json
from pathlib import Path
from typing import Any

import pytest

from resumes.analyzer import parse_imported, shown_view, to_jsonresume
from tests.support import programs
from tests.support.documents import CORPUS, iter_files, public_view
from tests.support.json_resumes import expected_back, iter_faults, written_back
from tests.support.stores import make_account

JSON_RESUMES = CORPUS.with_name("jsonresume-fake.tar.gz")
WITHOUT_A_NAME = {".json"}
"""The one JSON Resume of which the other corpus has no counterpart."""

ABSENT = "the corpus is not part of the project"


@pytest.mark.slow
@pytest.mark.skipif(not CORPUS.exists(), reason=ABSENT)
def test_337_files_are_imported_and_every_walk_of_the_list_gives_the_same_ids(
    tmp_path: Path,
) -> None:
    key = make_account(tmp_path, "ana")
    inbox = tmp_path / "inbox" / "ana"
    inbox.mkdir(parents=True, exist_ok=True)
    for name, content in iter_files(CORPUS):
        (inbox / name).write_bytes(content)
    assert len(programs.files_in(inbox)) == 337
    programs.succeed(tmp_path, "watch", "--once")
    assert len(programs.files_in(tmp_path / "inbox" / "_done")) == 337
    with programs.serving(tmp_path) as url:
        walks = [programs.walk(url, key, limit=limit) for limit in (1, 7, 100)]
    assert walks[0] == walks[1] == walks[2] == sorted(set(walks[0]))
    assert len(walks[0]) == 337


@pytest.fixture(scope="module")
def json_resumes() -> dict[str, bytes]:
    if not JSON_RESUMES.exists():
        pytest.skip(ABSENT)
    return dict(iter_files(JSON_RESUMES))


def test_every_json_resume_is_converted_and_only_the_picture_is_left_out(
    json_resumes: dict[str, bytes],
) -> None:
    assert len(json_resumes) == 337 + len(WITHOUT_A_NAME)
    for name, body in json_resumes.items():
        assert [issue.path for issue in parse_imported(body).warnings] == ["basics.image"], name


@pytest.mark.skipif(not CORPUS.exists(), reason=ABSENT)
def test_they_are_the_resumes_of_the_analyzer_corpus(json_resumes: dict[str, bytes]) -> None:
    # That one was made of the same files by another program, which took off outer blanks.
    others = {name: json.loads(body) for name, body in iter_files(CORPUS)}
    for name in json_resumes.keys() - WITHOUT_A_NAME:
        other = others.pop(f"fake_{name.removesuffix('.json').replace('-', '_')}_json.json")
        view = public_view(parse_imported(json_resumes[name]).document)
        assert stripped(view) == other, name
    assert not others


def stripped(value: Any) -> Any:
    """The same, without blanks around its texts."""
    if isinstance(value, dict):
        return {name: stripped(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [stripped(inner) for inner in value]
    return value.strip() if isinstance(value, str) else value


def test_every_json_resume_comes_back_valid_and_equal_field_by_field(
    json_resumes: dict[str, bytes],
) -> None:
    for name, body in json_resumes.items():
        back = to_jsonresume(shown_view(parse_imported(body).document))
        assert list(iter_faults(back)) == [], name
        assert written_back(back) == expected_back(json.loads(body)), name
