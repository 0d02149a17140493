"""What is refused, in which words: every answer is the recorded one, byte for byte.

`python -m tests.api.test_refusals` records them anew, for a change that is wanted.
"""

import difflib
import json
import re
import tempfile
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Final

import pytest

from resumes.store import api_keys
from tests.support.api.builders import Client, a_body
from tests.support.api.refused import ADA, FRED, RITA, iter_all
from tests.support.api.serving import Place, exchange, serve_here

RECORDED: Final = Path(__file__).parents[1] / "data" / "refusals.jsonl"
USUAL: Final = b"content-type: application/json\r\ncache-control: no-store\r\nx-content-type-options: nosniff\r\n"
"""Headers of every answer in JSON, which the file has a short word for."""
DATE: Final = re.compile(rb"date: [^\r]+\r\n")
MADE_ID: Final = re.compile(rb"\b[0-9a-f]{16}\b")
PHRASE: Final = re.compile(r'(?<="HTTP/1\.1 )(\d{3}) [^"]+')
"""Python's own, which has some of RFC 9110 from 3.13 on, and of RFC 7231 before."""


def make_people(place: Place) -> tuple[Client, Client, Callable[[bytes], bytes]]:
    """Ada, Fred, whose account is full, and what puts their keys and Rita's into a request."""
    ada, fred = place.client(), place.client("free")
    once = fred.post(a_body(), Idempotency_Key="once")
    assert [once.status_code] + [fred.create(a_body()).status_code for _ in range(4)] == [201] * 5
    reader = api_keys.create_key(place.store, ada.account, is_read_only=True)
    keys = {ADA: ada.key.encode(), FRED: fred.key.encode(), RITA: reader.secret.encode()}

    def keyed(sent: bytes) -> bytes:
        for word, key in keys.items():
            sent = sent.replace(b"Bearer " + word, b"Bearer " + key)
        return sent

    return ada, fred, keyed


def iter_answers(place: Place, *, parts: int = 1) -> Iterator[str]:
    """A line for each request: its name, and the answer without what differs each time.

    It is sent in so many parts.
    """
    ada, fred, keyed = make_people(place)
    for name, anyones in iter_all():
        sent = keyed(anyones)
        size = len(sent) // parts + 1
        answers = exchange(place.url, *[sent[at : at + size] for at in range(0, len(sent), size)])
        head, blank, body = answers.partition(b"\r\n\r\n")
        head = DATE.sub(b"", head).replace(USUAL, b"(usual)\r\n")
        answer = MADE_ID.sub(b"ID", head + blank + body)
        yield json.dumps([name, *answer.decode().split("\r\n")], ensure_ascii=False)
    assert ada.ids() == []  # nothing of all this was done
    assert fred.create(a_body()).status_code == 403
    ada.close()
    fred.close()


@pytest.mark.parametrize("parts", [1, 3])
def test_every_refusal_is_the_recorded_one(place: Place, parts: int) -> None:
    recorded = PHRASE.sub(
        lambda status: f"{status[1]} {HTTPStatus(int(status[1])).phrase}",
        RECORDED.read_text(encoding="utf-8"),
    ).splitlines()

    told = [*iter_answers(place, parts=parts)]

    changed = "\n".join(difflib.unified_diff(recorded, told, "recorded", "told", "", "", 0, ""))
    assert len(told) >= 300
    assert not changed, f"{changed}\nSee the docstring of this module"


def test_every_recorded_refusal_has_the_one_shape() -> None:
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        name, status, *head, blank, body = json.loads(line)
        assert (head[0], blank, head.count("connection: close")) == ("(usual)", "", 1), name
        if body:  # which HEAD has not
            told = json.loads(body)
            assert [*told][:3] == ["error", "status", "requestId"], name
            assert status.startswith(f"HTTP/1.1 {told['status']} "), name
            assert f"x-request-id: {told['requestId']}" in head, name


def main() -> None:
    """Record the answers of this checkout."""
    with tempfile.TemporaryDirectory() as home, serve_here(Path(home)) as place:
        RECORDED.write_text("".join(f"{line}\n" for line in iter_answers(place)), encoding="utf-8")


if __name__ == "__main__":
    main()
