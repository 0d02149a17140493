from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from resumes.rendering import Renderer
from resumes.rendering.fonts import font_folders


@pytest.fixture(scope="session")
def renderer() -> Iterator[Renderer]:
    """Draws with the fonts of the package and the system; one child for all tests."""
    # A busy machine takes its time.
    with closing(Renderer(font_folders(Path("/nonexistent")), timeout_s=60)) as renderer:
        yield renderer
