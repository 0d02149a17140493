from resumes.analyzer import DEFAULT_FORMAT


def test_the_default_admits_two_mebibytes_and_no_further_section_types() -> None:
    assert DEFAULT_FORMAT.max_bytes == 2_097_152
    assert DEFAULT_FORMAT.extra_section_types == frozenset()
