"""A key reaches its owner or is worthless (pitfalls S16)."""

from pathlib import Path

import pytest

from cli.failures import Failed
from cli.handover import hand_over
from cli.session import Session
from resumes.errors import InvalidKey
from resumes.store import accounts, keys


def test_shown_then_marked(tmp_path: Path) -> None:
    with Session(home=tmp_path).store(makes=True) as store:
        accounts.create_account(store, "a")
        new = keys.create_key(store, "a")
        shown: list[str] = []

        hand_over(store, new, shown.append)

        assert shown == [new.secret]
        assert keys.get_key(store, new.id).shown_at is not None


@pytest.mark.parametrize(
    ("error", "raised"),
    [(BrokenPipeError(32, "Broken pipe"), Failed), (KeyboardInterrupt(), KeyboardInterrupt)],
)
def test_not_shown_then_revoked(
    tmp_path: Path, error: BaseException, raised: type[BaseException]
) -> None:
    def show(_: str) -> None:
        raise error

    with Session(home=tmp_path).store(makes=True) as store:
        accounts.create_account(store, "a")
        new = keys.create_key(store, "a")

        with pytest.raises(raised):
            hand_over(store, new, show)

        assert keys.get_key(store, new.id).state == "revoked"
        with pytest.raises(InvalidKey):
            keys.authenticate(store, new.secret)
