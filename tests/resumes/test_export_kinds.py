"""The kinds of exports."""

from resumes.export_kinds import Kind


def test_files_of_each_kind_have_names_of_their_own() -> None:
    assert len({kind.suffix for kind in Kind}) == len(Kind)
    assert all(kind.suffix.endswith(".json") for kind in Kind)
