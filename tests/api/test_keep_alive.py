"""What a connection is worth after a refusal: it goes on, or its end was announced."""

import contextlib
import re
import socket
from collections import Counter

import pytest

from tests.api.test_refusals import make_people
from tests.support.api.refused import STATUS, a_request, iter_all
from tests.support.api.serving import Place, a_connection, read_all, read_answer

CLOSE = b"Connection: close\r\n"
NEXT = a_request("GET").replace(b"Id: mine", b"Id: next")


def is_incomplete(sent: bytes) -> bool:
    """Whether the last body is shorter than its request says."""
    head, _, body = sent.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)\r\n", head + b"\r\n")
    return length is not None and len(body) < int(length[1])


@pytest.mark.parametrize("is_together", [True, False])
def test_behind_a_refusal_the_next_request_is_answered_unless_the_end_was_announced(
    place: Place, is_together: bool
) -> None:
    ada, _, keyed = make_people(place)
    ends: Counter[str] = Counter()
    for name, refused in iter_all():
        if name.startswith("HEAD"):
            continue  # its answer says how long the body would be
        sent, after = keyed(refused.replace(CLOSE, b"", 1)), keyed(NEXT)
        with a_connection(place.url) as connection:
            connection.sendall(sent + (after if is_together else b""))
            answers = read_answer(connection)
            # It may have ended already, and then some of what is sent resets it.
            with contextlib.suppress(ConnectionError):
                if not is_together:
                    connection.sendall(after)
                if is_incomplete(sent):  # of which the next request is a part
                    connection.shutdown(socket.SHUT_WR)
                answers += read_all(connection)
        head = answers.partition(b"\r\n\r\n")[0]
        statuses = [int(status) for status in STATUS.findall(answers)]
        assert statuses[0] >= 400, name
        if b"connection: close" in head or is_incomplete(sent):
            assert len(statuses) == 1, name
            ends["closed"] += 1
        else:
            assert statuses[1:] == [200], name
            assert answers.count(b"x-request-id: next\r\n") == 1, name
            ends["kept"] += 1
    assert min(ends["closed"], ends["kept"]) > 50, ends
    assert ada.ids() == []
