import os
from pathlib import Path

import pytest

from resumes.store.sqlite.private import make_private

pytestmark = pytest.mark.sqlite("its files")


def test_a_file_is_its_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private(tmp_path / "made")
    finally:
        os.umask(before)
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_there_is_left(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("kept")
    with pytest.raises(FileExistsError):
        make_private(tmp_path / "there")
    assert (tmp_path / "there").read_text() == "kept"
