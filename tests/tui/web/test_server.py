"""The server: nobody passes without the cookie, and whoever has it gets a screen."""

import pytest
from aiohttp import WSServerHandshakeError

from tests.tui.web.pages import drawn, is_running, process_of, serving
from tui.web import pages

pytestmark = pytest.mark.anyio

PATHS = ("/", "/ws", "/page.js", "/static/js/textual.js", "/download/x", "/nothing", "/?token=x")


@pytest.mark.parametrize("path", PATHS)
async def test_without_the_cookie_everything_is_refused_in_one_line(path: str) -> None:
    async with serving() as site, site.browser.get(site.url + path) as answer:
        assert answer.status == 403
        assert await answer.text() == pages.REFUSAL


async def test_the_token_gives_a_cookie_that_scripts_and_other_sites_do_not_get() -> None:
    async with serving() as site:
        address = f"{site.url}/?token={site.gate.token}"
        answer = await site.browser.get(address)
        cookie = answer.cookies[site.gate.cookie_name]

        assert answer.status == 200
        assert 'url=/"' in await answer.text()
        assert cookie["httponly"]
        assert cookie["samesite"] == "Strict"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "no-referrer"


async def test_with_the_cookie_the_page_and_its_parts_are_there() -> None:
    async with serving() as site:
        await site.enter()
        for path in ("/", "/page.js", "/static/js/textual.js", "/static/css/xterm.css"):
            async with site.browser.get(site.url + path) as answer:
                assert answer.status == 200
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


async def test_the_token_is_spent_by_its_first_visit() -> None:
    async with serving() as site:
        await site.enter()
        site.browser.cookie_jar.clear()

        async with site.browser.get(f"{site.url}/?token={site.gate.token}") as answer:
            assert answer.status == 403


async def test_who_has_the_cookie_may_reload_the_first_address() -> None:
    async with serving() as site:
        await site.enter()

        await site.enter()


@pytest.mark.parametrize("host", ["example.com", "example.com:80", "127.0.0.1"])
async def test_under_another_name_nothing_is_served_and_no_token_is_spent(host: str) -> None:
    async with serving() as site:
        address = f"{site.url}/?token={site.gate.token}"
        async with site.browser.get(address, headers={"Host": host}) as answer:
            assert answer.status == 403
            own = site.url.removeprefix("http://")
            assert f"ws://{own};" in answer.headers["Content-Security-Policy"]

        await site.enter()


async def test_no_socket_without_the_cookie() -> None:
    async with serving() as site:
        with pytest.raises(WSServerHandshakeError, match="403"):
            await site.open_page()


@pytest.mark.parametrize("origin", [None, "http://example.com", "http://127.0.0.1:1", "null"])
async def test_no_socket_for_another_page(origin: str | None) -> None:
    async with serving() as site:
        await site.enter()

        with pytest.raises(WSServerHandshakeError, match="403"):
            await site.browser.ws_connect(f"{site.url}/ws", origin=origin)


async def test_a_screen_arrives_within_bounds() -> None:
    async with serving() as site:
        await site.enter()
        page = await site.open_page(width="9999999", height="much")

        assert b"1000x24" in await drawn(page, b"x24")


async def test_when_the_server_ends_so_do_its_processes() -> None:
    async with serving() as site:
        await site.enter()
        pids = [await process_of(await site.open_page()) for _ in range(3)]

    assert not [pid for pid in pids if is_running(pid)]
