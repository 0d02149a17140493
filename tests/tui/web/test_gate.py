"""Who may use the terminal UI in a browser."""

from itertools import count

import pytest

from tui.web.gate import Gate


@pytest.fixture
def gate() -> Gate:
    secrets = count()
    return Gate(8_000, make_secret=lambda: f"secret {next(secrets)}")


def test_the_token_gets_the_cookie_once(gate: Gate) -> None:
    cookie = gate.find_cookie(gate.token)

    assert gate.admits(cookie)
    assert gate.find_cookie(gate.token) is None


@pytest.mark.parametrize("token", ["", "secret", "secret 1", "sécret 0", "\udcff"])
def test_another_token_gets_nothing_and_spends_nothing(gate: Gate, token: str) -> None:
    assert gate.find_cookie(token) is None
    assert gate.find_cookie(gate.token) is not None


@pytest.mark.parametrize("cookie", [None, "", "secret 0", "secret 1 "])
def test_another_cookie_is_refused(gate: Gate, cookie: str | None) -> None:
    gate.find_cookie(gate.token)

    assert not gate.admits(cookie)


def test_secrets_are_long_and_differ() -> None:
    tokens = {Gate(8_000).token for _ in range(50)}

    assert len(tokens) == 50
    assert min(map(len, tokens)) >= 43


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000"])
def test_hosts_of_loopback_with_the_port_are_known(gate: Gate, host: str) -> None:
    assert gate.knows_host(host)
    assert gate.knows_origin(f"http://{host}", host)


@pytest.mark.parametrize(
    "host", [None, "", "127.0.0.1", "127.0.0.1:8001", "example.com:8000", "127.0.0.1.evil:8000"]
)
def test_other_hosts_are_not(gate: Gate, host: str | None) -> None:
    assert not gate.knows_host(host)
    assert not gate.knows_origin(f"http://{host}", host)


@pytest.mark.parametrize(
    "origin",
    [None, "null", "http://example.com", "http://127.0.0.1:8001", "https://127.0.0.1:8000"],
)
def test_other_origins_are_not(gate: Gate, origin: str | None) -> None:
    assert not gate.knows_origin(origin, "127.0.0.1:8000")


def test_servers_on_two_ports_have_two_cookies() -> None:
    assert Gate(8_000).cookie_name != Gate(8_001).cookie_name
