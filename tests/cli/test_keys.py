"""`resumes keys`: shown once, alone on standard output, or worthless (pitfalls S16)."""

from pathlib import Path

import pytest

from cli import keys as keys_command
from resumes.errors import InvalidKey
from resumes.store import keys
from tests.cli.conftest import CommandLine, finish, open_home, start


def test_create_prints_the_key_alone(acme: CommandLine) -> None:
    created = acme("keys", "create", "acme", "--name", "importer")

    secret = created.stdout.removesuffix("\n")
    assert keys.FORM.fullmatch(secret)
    assert secret not in created.stderr
    [key] = acme.answers("keys", "list", "--json")["keys"]
    assert key["id"] in created.stderr
    assert (key["name"], key["state"], key["masked"]) == ("importer", "active", keys.mask(secret))
    assert key["shownAt"] is not None
    with open_home(acme.home) as store:
        holder, _ = keys.authenticate(store, secret)
    assert holder.key_id == key["id"]


def test_create_as_json_gives_the_id_too(acme: CommandLine) -> None:
    made = acme.answers("keys", "--json", "create", "acme")

    assert sorted(made) == ["id", "key"]


def test_a_key_is_marked_as_shown_only_after_it_was_written(
    acme: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []

    def put(secret: str) -> None:
        with open_home(acme.home) as store:
            seen.append(keys.list_keys(store)[0].shown_at)

    monkeypatch.setattr(keys_command, "put", put)
    acme.succeeds("keys", "create", "acme")

    assert seen == [None]


@pytest.mark.parametrize("target", ["pipe", "/dev/full"])
def test_a_key_that_cannot_be_shown_is_revoked(
    acme: CommandLine, closed_pipe: int, target: str
) -> None:
    with Path("/dev/full").open("w", encoding="ascii") as full:
        process = start(
            "--home", str(acme.home), "keys", "create", "acme",
            stdout=closed_pipe if target == "pipe" else full,
        )  # fmt: skip
        code, _, stderr = finish(process)

    assert code == 1
    assert stderr.startswith("Error: The new key could not be shown (")
    assert stderr.count("\n") == 1
    [key] = acme.answers("keys", "list", "--json")["keys"]
    assert (key["state"], key["shownAt"]) == ("revoked", None)


def test_expiry_is_a_span_or_a_date(acme: CommandLine) -> None:
    created = acme("keys", "create", "acme", "--expires", "2999-01-31")

    assert "until 2999-01-31 00:00 UTC" in created.stderr
    assert "until 2999-01-31 00:00" in acme.succeeds("keys", "list", "acme")
    assert "is no expiry: use 30d" in acme.fails(2, "keys", "create", "acme", "--expires", "soon")
    assert "must lie in the future" in acme.fails(
        2, "keys", "create", "acme", "--expires", "2001-01-31"
    )


def test_revoke_says_whose_it_was(acme: CommandLine) -> None:
    made = acme.answers("keys", "create", "acme", "--json")

    revoked = acme("keys", "revoke", made["id"])

    assert revoked.stderr == f'Key {made["id"]} of account "acme" is revoked.\n'
    with open_home(acme.home) as store, pytest.raises(InvalidKey):
        keys.authenticate(store, made["key"])
    assert 'Key not found: "key_x"' in acme.fails(1, "keys", "revoke", "key_x")


def test_rotate_prints_the_new_key_and_gives_the_old_one_its_grace(acme: CommandLine) -> None:
    old = acme.answers("keys", "create", "acme", "--json")

    rotated = acme("keys", "rotate", old["id"], "--grace", "2h")

    assert keys.FORM.fullmatch(rotated.stdout.strip())
    assert f"{old['id']} until " in rotated.stderr
    states = [key["state"] for key in acme.answers("keys", "list", "--json")["keys"]]
    assert states == ["active", "active"]


def test_rotate_without_grace_ends_the_old_key_at_once(acme: CommandLine) -> None:
    old = acme.answers("keys", "create", "acme", "--json")

    rotated = acme("keys", "rotate", old["id"], "--grace", "0")

    assert f"{old['id']} no more." in rotated.stderr
    assert "Invalid grace" in acme.fails(2, "keys", "rotate", old["id"], "--grace", "8d")


def test_import_takes_a_key_from_standard_input(acme: CommandLine) -> None:
    secret = keys.new_secret()

    imported = acme("keys", "import", "acme", "--name", "old", stdin=f"{secret}\n")

    assert imported.exit_code == 0
    assert secret not in imported.output
    with open_home(acme.home) as store:
        assert keys.authenticate(store, secret)
    assert "registered already" in acme.fails(1, "keys", "import", "acme", stdin=secret)
    assert "No key came in" in acme.fails(2, "keys", "import", "acme", stdin="")
    assert "has the form" not in acme.fails(2, "keys", "import", "acme", stdin=b"\xff\xfe")


def test_list_says_how_to_begin(acme: CommandLine) -> None:
    assert "keys create acme" in acme("keys", "list", "acme").stderr
    assert 'Account not found: "b"' in acme.fails(1, "keys", "list", "b")
