"""Files of a store that are damaged, and what a backup restores."""

import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from resumes.errors import ResumesError
from resumes.store import accounts, integrity, open_store, stored_resumes
from resumes.store.integrity import Defect
from tests.chaos import checker
from tests.chaos.campaign import Figures
from tests.support import programs

PAGE_BYTES: Final = 4096
STORED: Final = 300
EACH: Final = 40
"""Damaged files of each kind."""
RESTORED: Final = 3
LEAVES: Final = (0x0A, 0x0D)
"""How a page begins that holds entries of an index, or rows of a table (the file format, 1.6)."""

LEAF_HEAD_BYTES: Final = 8

Damage = Callable[[Path, random.Random], None]


def flip_a_bit(path: Path, chance: random.Random) -> None:
    """One bit of one byte is another."""
    with path.open("r+b") as file:
        at = chance.randrange(path.stat().st_size)
        file.seek(at)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ 1 << chance.randrange(8)]))


def spoil_a_letter(path: Path, chance: random.Random) -> None:
    """A letter of a resume's text is one that no text has."""
    content = bytearray(path.read_bytes())
    at = chance.choice(find_all(content, b"Builds things that last."))
    content[at + chance.randrange(20)] |= 0x80
    path.write_bytes(content)


def find_all(content: bytearray, wanted: bytes) -> list[int]:
    """Where it stands, everywhere."""
    found, at = [], content.find(wanted)
    while at >= 0:
        found.append(at)
        at = content.find(wanted, at + 1)
    return found


def swap_rows(path: Path, chance: random.Random) -> None:
    """On a page two rows or entries that follow each other are in the other order."""
    content = bytearray(path.read_bytes())
    heads = range(PAGE_BYTES, len(content), PAGE_BYTES)
    at = chance.choice([head for head in heads if has_two_rows(content, head)]) + LEAF_HEAD_BYTES
    content[at : at + 4] = content[at + 2 : at + 4] + content[at : at + 2]
    path.write_bytes(content)


def has_two_rows(content: bytearray, head: int) -> bool:
    """Whether a page that begins there holds rows or entries, and more than one."""
    return content[head] in LEAVES and int.from_bytes(content[head + 3 : head + 5]) > 1


def zero_a_page(path: Path, chance: random.Random) -> None:
    """A page holds nothing but zeros."""
    with path.open("r+b") as file:
        file.seek(PAGE_BYTES * chance.randrange(path.stat().st_size // PAGE_BYTES))
        file.write(bytes(PAGE_BYTES))


def fill_a_page(path: Path, chance: random.Random) -> None:
    """A page holds what chance has it hold."""
    with path.open("r+b") as file:
        file.seek(PAGE_BYTES * chance.randrange(path.stat().st_size // PAGE_BYTES))
        file.write(chance.randbytes(PAGE_BYTES))


def cut_short(path: Path, chance: random.Random) -> None:
    """The end is missing."""
    with path.open("r+b") as file:
        file.truncate(chance.randrange(1, path.stat().st_size))


UNREADABLE: Final = "unreadable"
"""What is wrong with a store that cannot be opened, or not be asked, and is not called damaged."""


def find_defects(path: Path) -> set[str]:
    """Return what opening the store or `db check` says is wrong with it; neither fails otherwise.

    One whose schema is damaged cannot be opened, and is called damaged then.
    """
    try:
        with open_store(f"sqlite:///{path}") as store:
            if found := {flaw.defect for flaw in integrity.iter_damage(store)}:
                return {*found}
            checked = list(integrity.iter_accounts(store))
            return {flaw.defect for account in checked for flaw in account.flaws}
    except ResumesError as error:
        return {Defect.DAMAGED if "is damaged" in error.message else UNREADABLE}


def documents(path: Path) -> list[str]:
    """What the store's resumes say, in the order of their ids."""
    with open_store(f"sqlite:///{path}") as store:
        account_id = accounts.get_account(store, "ada").id
        return [
            stored_resumes.get_resume(store, account_id, resume_id).document
            for resume_id, _ in checker.iter_stored(store)
        ]


@dataclass(slots=True)
class Tries:
    """What became of damaged copies."""

    found: int = 0
    named: int = 0
    """So many of those found were called what they are."""
    told: int = 0
    """Not found, and an error when the resumes were read."""
    changed: int = 0
    """Not found, and read, though not as they were."""
    restored: int = 0
    restore_at_most_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of damage. So many of a hundred are found at least; the others change no document."""

    damage: Damage
    least_percent: int
    defects: frozenset[str] = frozenset()
    """What it is called; empty: it may be several."""


KINDS: Final = {
    "one bit": Kind(flip_a_bit, 1),
    "an invalid character": Kind(spoil_a_letter, 90, frozenset({Defect.DAMAGED_TEXT})),
    "two rows swapped": Kind(swap_rows, 100, frozenset({Defect.DAMAGED})),
    "a page of zeros": Kind(zero_a_page, 95),
    "a page of garbage": Kind(fill_a_page, 95),
    "the end missing": Kind(cut_short, 100),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.chaos(
    9,
    fault="the store's file is damaged",
    promise="structural damage and changed documents are detected when the store is opened or when `resumes db check` is run; everything can be restored from a backup",
)
def test_damage_is_found_and_a_backup_restores_all(
    tmp_path: Path, figures: Figures, seed: random.Random, kind: Kind
) -> None:
    """Each of 40 copies of a store with 300 resumes is damaged at a random position. Depending on the
    test, one bit is flipped, one character is made invalid, two rows of a page are swapped, a page is
    filled with zeros or garbage, or the file is truncated. The first three copies found to be damaged
    are restored from a backup with `db restore`. Undetected damage must not change any document."""
    stored = checker.a_full_store(tmp_path / "resumes.db", STORED)
    before = documents(tmp_path / "resumes.db")
    programs.succeed(tmp_path, "db", "backup", str(tmp_path / "backup.db"))
    tries = Tries()
    for number in range(EACH):
        home = tmp_path / f"{number}"
        home.mkdir()
        path = Path(shutil.copy(tmp_path / "resumes.db", home))
        kind.damage(path, seed)
        defects = find_defects(path)
        if not defects:
            note_unfound(tries, path, before)
        else:
            tries.found += 1
            tries.named += not kind.defects or defects == kind.defects
            if tries.restored < RESTORED:
                restore(tries, home, tmp_path / "backup.db")
                checker.check(path, stored)
        shutil.rmtree(home)
    figures["damaged_copies"] = EACH
    figures["detection_rate_percent"] = 100 * tries.found // EACH
    figures["read_errors"], figures["undetected_changes"] = tries.told, tries.changed
    figures["copies_restored"], figures["slowest_restore_s"] = (
        tries.restored,
        tries.restore_at_most_s,
    )
    assert figures["detection_rate_percent"] >= kind.least_percent
    assert tries.named == tries.found
    assert tries.told == 0
    assert tries.changed == 0
    assert tries.restored > 0


def note_unfound(tries: Tries, path: Path, before: list[str]) -> None:
    """It is known what a damage does to those who read that nobody found."""
    try:
        tries.changed += documents(path) != before
    except ResumesError:
        tries.told += 1


def restore(tries: Tries, home: Path, backup: Path) -> None:
    """The home has the backup's store."""
    began_s = time.monotonic()
    programs.succeed(home, "db", "restore", str(backup))
    tries.restored += 1
    tries.restore_at_most_s = max(tries.restore_at_most_s, time.monotonic() - began_s)
