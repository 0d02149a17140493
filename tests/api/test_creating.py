"""Creates, over a connection (docs/api.md, Create)."""

import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from resumes.store import accounts, stored_resumes
from resumes.store.creation import create
from tests.support.api.builders import Client, a_body, a_resume, error_of, with_section
from tests.support.api.serving import Place, fill_disk, serve_here
from tests.support.documents import whole_view
from tests.support.resumes import a_resume as a_new_resume
from tests.support.store.builders import hold_writer
from tests.support.waiting import wait_until


def stored(place: Place, client: Client, answer: httpx.Response) -> str:
    """The document of a resume that was created."""
    account_id = accounts.get_account(place.store, client.account).id
    return stored_resumes.get_resume(place.store, account_id, answer.json()["id"]).document


def test_a_byte_order_mark_before_the_resume_is_dropped(client: Client, place: Place) -> None:
    body = b'\xef\xbb\xbf{"header": {"name": "Zo\xc3\xab"}, "sections": {}}'

    answer = client.post(body, idempotency_key="a")

    assert (answer.status_code, list(answer.json())) == (201, ["id"])
    assert client.ids() == [answer.json()["id"]]
    assert stored(place, client, answer).encode() == body[3:]
    # Without it, it is another body.
    assert client.post(body[3:], idempotency_key="a").status_code == 422


def test_automatic_fields_sent_by_a_client_are_set_by_the_service(
    client: Client, place: Place
) -> None:
    item = {"workplace": "Engine Works", "position": "", "description": None, "bullets": ["Built"]}
    sent = {"record": "skills", "showText": True, "text": ""}
    resume = with_section("experiences", items=[item])
    resume["sections"]["summaries"] = {"column": 0, "items": [sent]}

    answer = client.create(resume | {"isImported": False})

    document = whole_view(stored(place, client, answer))
    kept, changed = (
        document["sections"][name]["items"][0] for name in ("experiences", "summaries")
    )
    assert (document["isImported"], kept["record"]) == (True, "experiences")
    assert (kept["showWorkplace"], kept["showBullets"]) == (True, True)
    assert (kept["showPosition"], kept["showDescription"]) == (False, False)
    assert (changed["record"], changed["showText"]) == ("summaries", False)
    assert len(answer.json()["warnings"]) == 3


def test_an_account_deleted_meanwhile_is_401(a_place: Callable[..., Place]) -> None:
    place = a_place()
    client = place.client()
    go_on, holder = hold_writer(place.store)
    with ThreadPoolExecutor() as threads:
        deletion = threads.submit(accounts.delete_account, place.store, client.account)
        wait_until(lambda: place.store.write_queue.waiting == 1)
        answer = threads.submit(client.create, a_resume())
        wait_until(lambda: place.store.write_queue.waiting >= 2)
        go_on.set()

        assert error_of(answer.result()) == {"error": "Invalid API key", "status": 401}
        deletion.result()
    holder.join()


def test_creates_are_refused_while_the_disk_is_low_and_all_else_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_disk(monkeypatch, tmp_path)
    with serve_here(tmp_path) as place:
        client = place.client()
        account_id = accounts.get_account(place.store, client.account).id
        create(place.store, account_id, [a_new_resume()])
        [resume_id] = client.ids()

        answer = client.post(b"no json", Content_Type="text/plain")

        assert answer.status_code == 503
        assert (b"retry-after", b"10") in answer.headers.raw
        refused = {
            "error": "The server is low on disk space, so nothing was stored; try again later",
            "status": 503,
        }
        assert error_of(answer) == error_of(client.put(resume_id, b"")) == refused
        assert client.request("POST", headers={}).status_code == 401  # who learns nothing of it
        assert client.get(resume_id).status_code == client.delete(resume_id).status_code == 200
        ready = client.request("GET", "/readyz")
        assert (ready.status_code, ready.json()["checks"]["disk"]) == (503, "failed")
        monkeypatch.undo()  # space is freed
        wait_until(lambda: client.create(a_resume()).status_code == 201)


# Newer versions, in an account that replaces older ones


def a_version(title: str, name: str = "Ada") -> bytes:
    return a_body(title=title, header={"name": name, "email": f"{name}@example.com"})


def test_a_create_says_what_it_replaced_also_in_the_log_and_when_it_is_repeated(
    client: Client, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    accounts.set_options(place.store, client.account, {"on_newer": "replace"})
    first = client.create(a_version("First")).json()
    assert list(first) == ["id"]

    with caplog.at_level(logging.INFO, "resumes.server"):
        answer = client.post(a_version("Second"), Idempotency_Key="a")

    second = answer.json()["id"]
    assert (answer.status_code, answer.json()) == (201, {"id": second, "replaced": [first["id"]]})
    assert f"the resume {second} replaced {first['id']}" in caplog.text
    again = client.post(a_version("Second"), Idempotency_Key="a")
    assert (again.status_code, again.json()) == (201, answer.json())
    assert again.headers["Idempotent-Replayed"] == "true"
    warned = client.create(json.loads(a_version("Third")) | {"mood": "calm"}).json()
    assert list(warned) == ["id", "replaced", "warnings"]
    assert warned["replaced"] == [second]


def test_an_update_says_which_other_resumes_of_the_person_it_replaced(
    client: Client, place: Place
) -> None:
    accounts.set_options(place.store, client.account, {"on_newer": "replace"})
    ada, bo = (client.create(a_version("First", name)).json()["id"] for name in ("Ada", "Bo"))
    answer = client.put(ada, a_version("Second", "Bo"))
    assert (answer.status_code, answer.json()) == (200, {"id": ada, "replaced": [bo]})
    assert client.ids() == [ada]
    assert client.put(ada, a_version("Third", "Bo")).json() == {"id": ada}
