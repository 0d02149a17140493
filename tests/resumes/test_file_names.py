"""Names of files to import, and of those that are passed over."""

import pytest

from resumes.file_names import (
    EXTENSIONS,
    find_extension,
    is_hidden,
    is_outcome,
    is_passed_over,
    is_temporary,
)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_every_ending_is_found_whole_and_in_any_case(extension: str) -> None:
    assert find_extension(f"cv{extension}") == extension
    assert find_extension(f"CV{extension.upper()}") == extension


@pytest.mark.parametrize("name", ["cv.pdf", "cv", "json", "cv.json.part"])
def test_other_names_have_no_ending_of_ours(name: str) -> None:
    assert find_extension(name) is None


@pytest.mark.parametrize(
    ("name", "hidden", "temporary"),
    [
        (".cv.json", True, False),
        ("@eaDir", True, False),
        ("cv.json.PART", False, True),
        ("cv.json~", False, True),
        ("cv.json", False, False),
    ],
)
def test_hidden_and_temporary_names_are_passed_over(
    name: str, hidden: bool, temporary: bool
) -> None:
    assert (is_hidden(name), is_temporary(name)) == (hidden, temporary)
    assert is_passed_over(name) == (hidden or temporary)


@pytest.mark.parametrize(
    ("name", "is_ours"), [("_done", True), (".work", True), (".importer", True), ("ana", False)]
)
def test_outcomes_are_told_from_inboxes(name: str, is_ours: bool) -> None:
    assert is_outcome(name) is is_ours
