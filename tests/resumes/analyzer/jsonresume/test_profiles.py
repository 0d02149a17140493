"""Profiles on social networks."""

from typing import Any

import pytest

from resumes.analyzer.findings import Findings
from resumes.analyzer.icons import ICONS
from resumes.analyzer.jsonresume import profiles
from resumes.analyzer.jsonresume.entries import Entry
from tests.resumes.analyzer.jsonresume.samples import (
    imported_items,
    there_and_back,
    warnings_of,
)


def with_profile(profile: Any) -> dict[str, Any]:
    return {"basics": {"profiles": [profile]}}


def test_every_icon_is_of_the_fixed_set() -> None:
    assert set(profiles._ICONS.values()) <= ICONS


@pytest.mark.parametrize(
    ("profile", "item"),
    [
        (
            {"network": "GitHub", "url": "https://github.example/ada"},
            {"title": "GitHub", "link": "https://github.example/ada", "icon": "35-github"},
        ),
        ({"network": "X", "username": "ada"}, {"title": "X", "link": "ada", "icon": "29-twitter"}),
        ({"network": "Own", "website": "a.example"}, {"title": "Own", "link": "a.example"}),
        ("https://a.example", {"link": "https://a.example"}),
    ],
)
def test_a_profile_is_a_title_with_its_link_and_icon(profile: Any, item: dict[str, str]) -> None:
    assert imported_items(with_profile(profile), "findMeOnline") == [item]


@pytest.mark.parametrize(
    "profile",
    [
        {"network": "GitHub", "url": "https://github.example/ada"},
        {"network": "Chatter", "username": "@ada"},
        {"url": "a.example"},
    ],
)
def test_a_profile_comes_back(profile: dict[str, str]) -> None:
    assert there_and_back(with_profile(profile))["basics"]["profiles"] == [profile]


def test_a_user_name_that_the_address_does_not_say_is_told() -> None:
    said = {"username": "@Ada", "url": "https://github.example/ada"}
    unsaid = {"username": "ada", "url": "https://example.org/17"}

    assert warnings_of(with_profile(said)) == {}
    assert list(warnings_of(with_profile(unsaid))) == ["basics.profiles[0].username"]


@pytest.mark.parametrize(
    ("profile", "item"),
    [
        ({"network": "Own"}, {"title": "Own"}),
        ({"network": "Own", "url": " "}, {"title": "Own"}),
    ],
)
def test_what_is_not_known_is_no_field(profile: Any, item: dict[str, str]) -> None:
    assert profiles.Network().read(Entry(profile, Findings())) == item
    assert profiles.Link().read(Entry(profile, Findings())) == {}
    assert profiles.Link().write({}) == {}


def test_a_name_that_the_address_does_not_say_is_told_of_and_why() -> None:
    findings = Findings()
    entry = Entry({"url": "https://a.example/Xada", "username": "@xada"}, findings)
    assert profiles.Link().read(entry) == {"link": "https://a.example/Xada"}
    assert findings.warnings == []
    profiles.Link().read(Entry({"url": "https://a.example/bo", "username": "Xbo"}, findings))
    assert [issue.message for issue in findings.warnings] == [
        "username has no place in the analyzer format: left out"
    ]


@pytest.mark.parametrize(
    ("link", "name"), [("Xada", "username"), ("ada.X", "url"), ("a:b", "url"), ("a/b", "url")]
)
def test_an_address_has_a_mark_that_no_name_has(link: str, name: str) -> None:
    assert profiles.Link().write({"link": link}) == {name: link}
