"""The picture of the API's page, by a browser without a window: `make pictures`.

    .venv/bin/python docs/pictures/draw_page.py [FOLDER]

Writes api.png next to this file unless a FOLDER is given. Without Chromium nothing is written.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
SIZE: Final = "1000,760"
LIMIT_S: Final = 120.0


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.stderr.write("There is no Chromium: api.png stays as it is.\n")
        return
    with tempfile.TemporaryDirectory() as scratch:
        draw(browser, folder / "api.png", Path(scratch))


def draw(browser: str, picture: Path, scratch: Path) -> None:
    """The picture shows the page of a service that was started for it."""
    words = ["-m", "cli", "--home", str(scratch / "home"), "serve", "--json", "--port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, *words], stdout=pipe, text=True) as service:
        try:
            assert service.stdout is not None
            url = json.loads(service.stdout.readline())["url"]
            take(browser, f"{url}/docs", picture, scratch / "profile")
        finally:
            service.terminate()


def take(browser: str, url: str, picture: Path, profile: Path) -> None:
    """The picture shows what a browser has at the address."""
    subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
         f"--user-data-dir={profile}", "--virtual-time-budget=20000", f"--window-size={SIZE}",
         f"--screenshot={picture.absolute()}", url],
        check=True, capture_output=True, timeout=LIMIT_S,
    )  # fmt: skip


if __name__ == "__main__":
    main()
