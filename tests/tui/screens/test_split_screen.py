"""A list with the row at its cursor beside it, seen on the resumes."""

import pytest

from resumes.store.engine import Store
from tests.tui.builders import a_document, a_section, stored
from tests.tui.driving import LARGE, SMALL, lines, presses, running, shows, until

pytestmark = pytest.mark.anyio


def a_person(name: str) -> dict[str, object]:
    return a_document(
        name=name,
        title=f"Title of {name}",
        sections=a_section("skills", {"title": f"Skill of {name}"}),
    )


async def test_what_is_beside_the_list_follows_the_cursor(store: Store) -> None:
    stored(store, a_person("Ada"), a_person("Bo"))
    async with running(store, size=LARGE) as pilot:
        await shows(pilot.app, "Skill of Ada")

        await presses(pilot, "j")
        await shows(pilot.app, "Skill of Bo")
        await until(lambda: "Skill of Ada" not in "\n".join(lines(pilot.app)))


async def test_a_narrow_terminal_has_room_for_the_list_alone(store: Store) -> None:
    stored(store, a_person("Ada"))
    async with running(store, size=SMALL) as pilot:
        await shows(pilot.app, "Title of Ada")
        await presses(pilot, "v")
        await shows(pilot.app, "too narrow for that (110 columns)")
        await presses(pilot, "tab")
        await shows(pilot.app, "no resume beside the list")


async def test_it_can_be_hidden_and_shown(store: Store) -> None:
    stored(store, a_person("Ada"))
    async with running(store, size=LARGE) as pilot:
        await shows(pilot.app, "Skill of Ada")
        await presses(pilot, "v")
        await until(lambda: "Skill of Ada" not in "\n".join(lines(pilot.app)))
        await presses(pilot, "v")
        await shows(pilot.app, "Skill of Ada")


async def test_a_terminal_that_grows_shows_it(store: Store) -> None:
    stored(store, a_person("Ada"))
    async with running(store, size=SMALL) as pilot:
        await shows(pilot.app, "Title of Ada")
        await pilot.resize_terminal(*LARGE)
        await shows(pilot.app, "Skill of Ada")


async def test_the_views_of_what_is_beside_can_be_turned(store: Store) -> None:
    stored(store, a_person("Ada"))
    async with running(store, size=LARGE) as pilot:
        await shows(pilot.app, "Skill of Ada")
        await presses(pilot, "tab")
        await shows(pilot.app, '"showTitle": true')
