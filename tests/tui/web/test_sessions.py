"""A page's process."""

import pytest
from aiohttp import ClientWebSocketResponse, WSMsgType

from tests.tui.driving import until
from tests.tui.web.pages import BROKEN, DEAF, drawn, is_running, process_of, serving

pytestmark = pytest.mark.anyio


async def hears_the_end(page: ClientWebSocketResponse) -> None:
    """The server said that this is all, and nothing more came."""
    message = await page.receive()
    while message.type is WSMsgType.BINARY:
        message = await page.receive()
    assert message.type is WSMsgType.CLOSE


async def test_a_page_has_a_process_of_its_size_and_types_to_it() -> None:
    async with serving() as site:
        await site.enter()
        page = await site.open_page(width="100", height="30")

        assert b"100x30" in await drawn(page, b"x30")
        await page.send_json(["stdin", "a[/b]c"])
        await drawn(page, b"Da[/b]c")
        await page.send_json(["resize", {"width": 70, "height": 20}])
        await drawn(page, b'"width": 70')


async def test_every_page_has_a_process_of_its_own() -> None:
    async with serving() as site:
        await site.enter()
        first, second = await site.open_page(), await site.open_page()

        assert await process_of(first) != await process_of(second)


async def test_a_process_ends_with_its_page() -> None:
    async with serving() as site:
        await site.enter()
        page = await site.open_page()
        pid = await process_of(page)

        await page.close()

        await until(lambda: not is_running(pid))


async def test_a_page_hears_that_its_process_has_ended() -> None:
    async with serving() as site:
        await site.enter()
        page = await site.open_page()
        await process_of(page)

        await page.send_json(["stdin", '"quit"'])

        await hears_the_end(page)


async def test_a_process_that_cannot_start_ends_its_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with serving(BROKEN) as site:
        await site.enter()

        await hears_the_end(await site.open_page())


async def test_a_process_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tui.web.sessions.END_WITHIN_S", 0.1)
    async with serving(DEAF) as site:
        await site.enter()
        page = await site.open_page()
        pid = await process_of(page)

        await page.close()

        await until(lambda: not is_running(pid))
