"""The sample files are found and dropped whole."""

from pathlib import Path

from cli.samples import drop, find_samples


def test_good_and_bad_ones_are_found(repository: Path) -> None:
    good, bad = find_samples()

    folder = repository / "sample_data"
    assert [file.name for file in good] == sorted(file.name for file in folder.glob("*.json"))
    assert [file.name for file in bad] == sorted(
        file.name for file in (folder / "bad").glob("*.json")
    )
    assert len(good) > 10
    assert len(bad) > 10


def test_a_sample_is_dropped_under_its_own_name(tmp_path: Path) -> None:
    good, _ = find_samples()

    drop(good[0], tmp_path)

    assert [file.name for file in tmp_path.iterdir()] == [good[0].name]
    assert (tmp_path / good[0].name).read_bytes() == good[0].read_bytes()
