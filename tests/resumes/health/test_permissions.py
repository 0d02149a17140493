"""Who may use a file, and who should."""

import os
import pwd
from pathlib import Path

from resumes.health.permissions import find_owner, remedy_for

ME = os.getuid()
MY_NAME = pwd.getpwuid(ME).pw_name


def test_the_owner_is_named(tmp_path: Path) -> None:
    assert find_owner(tmp_path) == MY_NAME
    assert find_owner(tmp_path / "no") is None


def test_another_user_is_sent_to_the_owner(tmp_path: Path) -> None:
    other = 4_000_000_000
    path = tmp_path / "file"
    path.touch()

    assert remedy_for(path, user_id=other) == f"Run this as its owner, {MY_NAME}"
    assert (
        remedy_for(tmp_path, user_id=other)
        == f"Run this as its owner, {MY_NAME}, or chown it to {other}"
    )


def test_the_owner_gives_the_right_back(tmp_path: Path) -> None:
    path = tmp_path / "my file"
    path.touch(mode=0o000)

    assert remedy_for(path) == f"chmod u+rwX '{path}'"


def test_who_has_the_right_looks_at_the_file_system(tmp_path: Path) -> None:
    assert remedy_for(tmp_path).startswith("See why its file system takes no writes")


def test_what_cannot_be_seen_is_a_matter_of_its_folder(tmp_path: Path) -> None:
    assert remedy_for(tmp_path / "no") == f"Give user {MY_NAME} the right to look into its folder"
