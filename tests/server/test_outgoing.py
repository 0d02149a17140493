import asyncio

from server.outgoing import Outgoing


def test_a_client_that_is_gone_before_its_answer_troubles_nobody() -> None:
    loop = asyncio.new_event_loop()
    gone = GoneTransport()
    outgoing = Outgoing(gone, loop)

    outgoing.write(b"HTTP/1.1 200 OK")
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()

    assert gone.written == b""


class GoneTransport:
    """A transport whose client has closed the connection."""

    written = b""

    def is_closing(self) -> bool:
        return True

    def write(self, data: bytes) -> None:
        self.written += data
