from collections.abc import Callable
from datetime import timedelta

import pytest

from resumes.errors import InvalidKey, StoreUnavailable
from resumes.store import Store, accounts, keys
from server.auth import find_secret
from tests.server.builders import RESUMES, Client, SteppingClock, error_of

INVALID = {"error": "Invalid API key", "status": 401}


# docs/api.md, Errors: 401


def test_a_missing_key_is_401(client: Client) -> None:
    answer = client.request("GET", headers={})

    assert answer.status_code == 401
    assert error_of(answer) == INVALID
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "value",
    [b"", b"Bearer", b"Bearer ", b"Basic YTpi", b"enh_live_x", b"Bearer enh_live_x",
     b"Bearer \xff\xfe", b"\xff", b"Bearer " + b"x" * 100_000, b"Bearer a b", b"Bearer\tx"],
)  # fmt: skip
def test_a_malformed_or_unknown_key_is_401(client: Client, value: bytes) -> None:
    for method in ("GET", "POST"):
        answer = client.request(method, headers=[(b"Authorization", value)])

        assert answer.status_code == 401
        assert error_of(answer) == INVALID


def test_two_keys_are_401(client: Client) -> None:
    header = ("Authorization", f"Bearer {client.key}")

    assert error_of(client.request("GET", headers=[header, header])) == INVALID


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer "])
def test_the_scheme_counts_in_any_case(client: Client, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {client.key}"}

    assert client.request("GET", headers=headers).status_code == 200


def test_a_key_in_the_query_is_ignored(client: Client) -> None:
    path = f"{RESUMES}?api_key={client.key}&Authorization=Bearer%20{client.key}"

    assert error_of(client.request("GET", path, headers={})) == INVALID


def test_a_revoked_key_is_401_at_once(client: Client, store: Store) -> None:
    assert client.page().status_code == 200

    keys.revoke_key(store, keys.list_keys(store)[0].id)

    assert error_of(client.page()) == INVALID


def test_an_expired_key_is_401(
    client: Client, store: Store, clock: SteppingClock, a_client: Callable[..., Client]
) -> None:
    secret = keys.create_key(store, "ada", lifetime=timedelta(hours=1)).secret
    brief = a_client(secret)
    assert brief.page().status_code == 200

    clock.advance(3_601)

    assert error_of(brief.page()) == INVALID


def test_the_key_of_a_deleted_account_is_401(client: Client, store: Store) -> None:
    accounts.delete_account(store, "ada")

    assert error_of(client.page()) == INVALID


# docs/accounts.md, Keys: last use


def test_the_last_use_is_written_behind_the_answer(
    client: Client, store: Store, clock: SteppingClock
) -> None:
    client.page()
    client.wait(lambda: keys.list_keys(store)[0].last_used_at == "2027-01-15T08:00:00.000Z")

    clock.advance(61)
    client.page()

    client.wait(lambda: keys.list_keys(store)[0].last_used_at == "2027-01-15T08:01:01.000Z")


def test_a_use_that_cannot_be_written_fails_nobody(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(*_: object) -> None:
        raise StoreUnavailable("busy")

    monkeypatch.setattr(keys, "mark_used_soon", fail)

    assert client.page().status_code == 200
    client.wait(lambda: "was not written: busy" in caplog.text)


def test_find_secret_keeps_any_bytes() -> None:
    assert find_secret([(b"authorization", b"Bearer \xffx")]).encode(
        "utf-8", "surrogateescape"
    ) == (b"\xffx")
    with pytest.raises(InvalidKey):
        find_secret([])
