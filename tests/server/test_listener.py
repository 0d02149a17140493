import socket

import pytest

from resumes.settings import Settings
from server.listener import CannotListen, base_url, listen


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70 + ".invalid", "1.2.3.4.5"])
def test_a_host_that_cannot_be_resolved_is_one_clear_error(settings: Settings, host: str) -> None:
    with pytest.raises(CannotListen, match=f'Cannot resolve the host "{host}"'):
        listen(settings.model_copy(update={"host": host}))


def test_a_foreign_address_is_one_clear_error(settings: Settings) -> None:
    with pytest.raises(CannotListen, match=r"Cannot listen on 192\.0\.2\.1, port 0: "):
        listen(settings.model_copy(update={"host": "192.0.2.1"}))


def test_port_0_takes_a_free_one_and_the_address_says_which(settings: Settings) -> None:
    with listen(settings) as listener:
        port = listener.getsockname()[1]

        assert port > 0
        assert base_url(listener, has_tls=False) == f"http://127.0.0.1:{port}"
        assert base_url(listener, has_tls=True) == f"https://127.0.0.1:{port}"


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="the machine has no IPv6")
def test_an_ipv6_address_is_shown_in_brackets(settings: Settings) -> None:
    with listen(settings.model_copy(update={"host": "::1"})) as listener:
        assert base_url(listener, has_tls=False).startswith("http://[::1]:")
