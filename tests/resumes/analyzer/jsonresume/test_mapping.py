"""The table: that it is complete, and that nothing in it goes nowhere."""

from resumes.analyzer.jsonresume.mapping import (
    ALIKE,
    HEADER,
    KEYS,
    LISTS,
    PROFILES,
    SPARE,
    SUMMARY,
)
from resumes.analyzer.sections import HEADER as HEADER_FIELDS
from resumes.analyzer.sections import SECTION_TYPES
from tests.resumes.analyzer.jsonresume.json_schema import SCHEMA

ROWS = (SUMMARY, PROFILES, *LISTS, *ALIKE)


def test_the_keys_are_those_of_the_schema_in_its_order() -> None:
    assert list(SCHEMA["properties"]) == list(KEYS)


def test_every_list_of_the_schema_has_its_row() -> None:
    assert {row.key for row in LISTS} == set(KEYS) - {"$schema", "basics", "meta"}


def test_every_row_names_fields_that_there_are() -> None:
    assert {field for part in HEADER for field in part.fields} == set(HEADER_FIELDS.fields)
    for row in (*ROWS, *SPARE):
        fields = {field for part in row.parts for field in part.fields}
        assert fields <= set(SECTION_TYPES[row.section].fields), row


def test_every_field_that_a_row_writes_is_in_the_schema() -> None:
    for row in LISTS:
        known = SCHEMA["properties"][row.key]["items"]["properties"]
        assert {part.names[0] for part in row.parts} <= set(known), row


def test_a_mere_text_means_a_field_that_is_read() -> None:
    for row in ROWS:
        assert row.sole_field in {name for part in row.parts for name in part.names}, row


def test_no_section_is_read_into_twice() -> None:
    sections = [row.section for row in ROWS]
    assert len(sections) == len(set(sections))
