import stat
import subprocess
import sys
from pathlib import Path

import pytest

from server.shared_memory import map_shared


def test_what_another_process_writes_is_seen_at_once(tmp_path: Path) -> None:
    path = tmp_path / "run" / "counts"
    memory = map_shared(path, 16)
    assert memory[:] == bytes(16)

    script = (
        "import sys; from pathlib import Path; from server.shared_memory import map_shared;"
        "map_shared(Path(sys.argv[1]), 16)[3:6] = b'abc'"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)

    assert memory[3:6] == b"abc"


def test_it_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "run" / "counts"
    map_shared(path, 16)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_shorter_file_grows_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    path.write_bytes(b"abc")
    assert map_shared(path, 8)[:] == b"abc" + bytes(5)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"x" * 8)
    (tmp_path / "counts").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        map_shared(tmp_path / "counts", 8)
