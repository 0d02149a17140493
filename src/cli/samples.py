"""The sample files that `demo` drops: good ones, and bad ones in `bad/`."""

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from cli.failures import Failed


def find_samples() -> tuple[list[Traversable], list[Traversable]]:
    """Good samples and bad ones, by name. Raises Failed when this installation has none."""
    folder = _find_folder()
    return _files(folder), _files(folder / "bad")


def _find_folder() -> Traversable:
    """In a wheel they are package data; in a checkout they lie beside `src`."""
    packaged = resources.files("resumes") / "sample_data"
    checkout = Path(__file__).parents[2] / "sample_data"
    for folder in (packaged, checkout):
        if folder.is_dir():
            return folder
    raise Failed("The sample files are missing from this installation; install it again")


def _files(folder: Traversable) -> list[Traversable]:
    found = [file for file in folder.iterdir() if file.name.endswith(".json")]
    return sorted(found, key=lambda file: file.name)


def drop(sample: Traversable, folder: Path) -> None:
    """The sample is in the folder, whole from the first moment that it can be seen there."""
    draft = folder / f".{sample.name}.part"
    draft.write_bytes(sample.read_bytes())
    draft.rename(folder / sample.name)
