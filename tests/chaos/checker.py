"""Whether a store that was through a fault holds what its users were told, and is sound.

acknowledged ⊆ stored ⊆ acknowledged or unknown      counter = rows      ids ascend
`resumes db check` finds nothing
"""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from resumes.store import Store, account_checking, accounts, checking, listing, open_store
from tests.system import programs


def check(
    database: Path | str, told: Mapping[str, str], unknown: Collection[str] = (), who: str = "ada"
) -> int:
    """All of the above holds of the account; how many resumes it has.

    `told` are the names on the resumes by the ids that their clients got, `unknown` the names on
    those of which nobody was told anything. Each name is sent once.
    """
    url = database if isinstance(database, str) else f"sqlite:///{database}"
    with open_store(url) as store:
        stored = list(iter_stored(store, who))
        assert accounts.get_account(store, who).resume_count == len(stored)
        check_soundness(store)
    check_told(stored, told, unknown)
    return len(stored)


def check_told(
    stored: list[tuple[str, str]], told: Mapping[str, str], unknown: Collection[str]
) -> None:
    """What is stored is what was told, and of the rest only what may be; in the order of ids."""
    ids = [resume_id for resume_id, _ in stored]
    names = [name for _, name in stored]
    assert ids == sorted(set(ids)), "ids do not ascend"
    assert not (lost := told.items() - set(stored)), f"lost: {lost}"
    assert len(names) == len(set(names)), "something is stored twice"
    assert not (more := set(names) - {*told.values(), *unknown}), f"refused, and stored: {more}"


def check_soundness(store: Store) -> None:
    """What `resumes db check` looks for is not there."""
    assert list(checking.iter_damage(store)) == []
    for checked in account_checking.iter_accounts(store):
        assert list(checked.flaws) == []


def check_by_program(home: Path) -> None:
    """`resumes db check` itself ends with 0."""
    programs.succeed(home, "db", "check")


def iter_stored(store: Store, who: str = "ada") -> Iterator[tuple[str, str]]:
    """Ids and names of the account's resumes, as its pages show them."""
    account_id = accounts.get_account(store, who).id
    cursor: str | None = ""
    while cursor is not None:
        page = listing.list_page(store, account_id, limit=listing.MAX_LIMIT, cursor=cursor)
        yield from ((entry.id, entry.name or "") for entry in page.entries)
        cursor = page.cursor
