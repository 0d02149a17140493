"""What is looked at."""

from pathlib import Path

from resumes.health.installation import Installation


def test_the_home_s_inbox_is_watched_by_up(installation: Installation, tmp_path: Path) -> None:
    inbox = str((tmp_path / "inbox").resolve())

    assert installation.start_line(inbox) == "resumes up"
    assert installation.start_line(None) == "resumes up"
    assert installation.start_line("/srv/in box") == "resumes watch '/srv/in box'"
