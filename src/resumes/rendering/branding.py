"""Read an account's house style: the logo and `branding.toml` in `HOME/branding/<account>/`.

Pages are rendered without a broken file, and `resumes doctor` reports it.
"""

import base64
import os
import re
import stat
import tomllib
import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree

from resumes.rendering.page import clean

FOLDER: Final = "branding"
MAX_LOGO_BYTES: Final = 256 * 1024
MAX_TOML_BYTES: Final = 16 * 1024
MAX_PIXELS: Final = 2_000
"""The maximum width and height of a PNG."""

MAX_ELEMENTS: Final = 5_000
MAX_TEXT_CHARS: Final = 120
MAX_LINES: Final = 6

_SVG: Final = "{http://www.w3.org/2000/svg}"
_ELEMENTS: Final = frozenset(
    {
        "svg", "g", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "defs",
        "linearGradient", "radialGradient", "stop", "clipPath", "title", "desc", "style",
    }
)  # fmt: skip
"""The elements that a logo may contain: none loads a file, needs a font or repeats an element."""

_OUTSIDE: Final = re.compile(
    r"@import|url\(\s*['\"]?(?!['\"]?#)|expression|javascript:", re.IGNORECASE
)


class Branding(NamedTuple):
    """A house style. `brand` is the input of `compose`, or None if there is nothing to show."""

    brand: Mapping[str, Any] | None
    problems: tuple[str, ...]
    """The errors, each with the path of the broken file."""


def load_branding(home: Path, account: str) -> Branding:
    """Return the house style of the account. Errors are returned in `problems`, not raised."""
    folder = home / FOLDER / account
    if folder.parent != home / FOLDER:
        return Branding(None, ())
    seen = []
    for name in ("branding.toml", "logo.svg", "logo.png"):
        try:
            status = (folder / name).stat()
        except OSError:
            continue
        seen.append((name, status.st_mtime_ns, status.st_size))
    return _load(folder, tuple(seen))


@lru_cache(maxsize=64)
def _load(folder: Path, seen: tuple[tuple[str, int, int], ...]) -> Branding:
    """Return the house style. `seen` changes with the files, which invalidates the cache."""
    found, problems = dict[str, Any](), list[str]()
    readers = {"branding.toml": _read_texts, "logo.svg": _read_svg, "logo.png": _read_png}
    for name, _, _ in seen:
        if "logo" in found:
            continue
        try:
            found |= readers[name](folder / name)
        except OSError as error:
            problems.append(f"{folder / name}: {error.strerror}")
        except (ValueError, ElementTree.ParseError, zlib.error) as error:
            problems.append(f"{folder / name}: {error}")
        except RecursionError:
            problems.append(f"{folder / name}: nested too deeply")
    brand = {"name": "", "lines": [], "footer": "", "replace_contact": False, "logo": ""} | found
    brand["alt"] = brand["name"] or folder.name
    shows = any(brand[part] for part in ("name", "lines", "footer", "logo"))
    return Branding(brand if shows else None, tuple(problems))


def _read(path: Path, max_bytes: int) -> bytes:
    # Otherwise, opening a pipe would wait for a program that writes to it.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("not a regular file")
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"larger than {max_bytes // 1024} KiB")
    return content


def _read_texts(path: Path) -> dict[str, Any]:
    found = tomllib.loads(_read(path, MAX_TOML_BYTES).decode())
    if unknown := found.keys() - {"name", "contact_lines", "footer", "replace_contact"}:
        raise ValueError(
            f"unknown: {', '.join(sorted(unknown))}. Use name, contact_lines, footer and replace_contact"
        )
    lines = found.get("contact_lines", [])
    if not isinstance(lines, list) or len(lines) > MAX_LINES:
        raise ValueError(f"contact_lines must be a list of up to {MAX_LINES} texts")
    texts = {"name": found.get("name", ""), "footer": found.get("footer", "")}
    for text in (*texts.values(), *lines):
        if not isinstance(text, str) or len(text) > MAX_TEXT_CHARS:
            raise ValueError(f"each text must have up to {MAX_TEXT_CHARS} characters")
    replaces = found.get("replace_contact", False)
    if not isinstance(replaces, bool):
        raise ValueError("replace_contact must be true or false")
    shown = {name: clean(text) or "" for name, text in texts.items()}
    return shown | {"lines": [*filter(None, map(clean, lines))], "replace_contact": replaces}


def _read_svg(path: Path) -> dict[str, str]:
    text = _read(path, MAX_LOGO_BYTES).decode("utf-8-sig")
    if re.search(r"<!(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise ValueError("a DOCTYPE is not accepted: save it as plain SVG")
    root = ElementTree.fromstring(text)
    if root.tag != f"{_SVG}svg":
        raise ValueError("not an SVG image")
    for number, element in enumerate(root.iter()):
        if number >= MAX_ELEMENTS:
            raise ValueError(f"more than {MAX_ELEMENTS:,} elements")
        name = element.tag.removeprefix(_SVG)
        # Accept the elements of other namespaces, which editors add: they are not rendered.
        if element.tag.startswith(_SVG) and name not in _ELEMENTS:
            raise ValueError(f"<{name}> is not accepted: turn it into paths")
        for key, value in element.attrib.items():
            is_link = key.rpartition("}")[2] == "href" and not value.startswith("#")
            if is_link or _OUTSIDE.search(value):
                raise ValueError("refers to something outside the file")
        if _OUTSIDE.search(element.text or ""):
            raise ValueError("refers to something outside the file")
    return {"logo": text}


def _read_png(path: Path) -> dict[str, str]:
    content = _read(path, MAX_LOGO_BYTES)
    if not content.startswith(b"\x89PNG\r\n\x1a\n"):
        raise ValueError("not a PNG image")
    place, kinds = 8, list[bytes]()
    while place < len(content) and kinds[-1:] != [b"IEND"]:
        length = int.from_bytes(content[place : place + 4], "big")
        chunk = content[place + 4 : place + 8 + length]
        if (
            zlib.crc32(chunk).to_bytes(4, "big")
            != content[place + 8 + length : place + 12 + length]
        ):
            raise ValueError("the image is damaged")
        kinds.append(chunk[:4])
        place += 12 + length
    if kinds[:1] != [b"IHDR"] or kinds[-1] != b"IEND" or b"IDAT" not in kinds:
        raise ValueError("the image is damaged")
    width, height = (int.from_bytes(content[at : at + 4], "big") for at in (16, 20))
    if not (0 < width <= MAX_PIXELS and 0 < height <= MAX_PIXELS):
        raise ValueError(f"larger than {MAX_PIXELS:,} pixels")
    data = base64.b64encode(content).decode()
    return {
        "logo": f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
        f'<image width="{width}" height="{height}" href="data:image/png;base64,{data}"/></svg>'
    }
