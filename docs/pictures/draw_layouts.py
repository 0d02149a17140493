"""The pictures of a resume as a PDF in the fifteen layouts, from a sample: `make pictures`.

    .venv/bin/python docs/pictures/draw_layouts.py [FOLDER]

Writes layouts.png, with the first page of each layout, and pdf.png, with three of them, next to this
file unless a FOLDER is given. Only the fonts of the package are used, so the same checkout draws the
same pictures.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
import typst

from resumes.analyzer.schema import LAYOUTS
from resumes.rendering import PageOptions, Paper, compose
from resumes.rendering.child import FOLDER, TEMPLATE

SAMPLE: Final = Path(__file__).parents[2] / "sample_data" / "nurse-double-column-en.json"
RESUME_ID: Final = "0006543de8f5b2a09c1f77e2"
OF_THE_README: Final = ("double", "polished", "classic")
THIRD_COLUMN: Final = frozenset({"languages", "certificates", "interests"})
"""Sections that the layout of three columns has in its third."""

A4_INCHES: Final = 8.27
"""How wide a page is."""

SHEET: Final = """
#let sheet = json(bytes(sys.inputs.data))
#set page(width: auto, height: auto, margin: 9pt, fill: rgb("#eceef1"))
#set text(font: "Inter", size: 11pt, fill: rgb("#30363d"))
#grid(
  columns: (sheet.wide * 1pt,) * sheet.across, column-gutter: 12pt, row-gutter: 12pt,
  ..sheet.pages.map(page => align(center, {
    box(fill: white, stroke: 0.5pt + rgb("#c9ced6"), image(page.file, width: 100%, scaling: "smooth", alt: page.name))
    if sheet.names { block(above: 6pt, text(page.name)) }
  }))
)
"""
"""The pictures of pages next to each other, in points: a point is a pixel."""


def document(layout: str) -> Mapping[str, Any]:
    """The sample; with something in each column of the layout."""
    sample: dict[str, Any] = orjson.loads(SAMPLE.read_bytes())
    if layout == "multicolumn":
        for name in THIRD_COLUMN & sample["sections"].keys():
            sample["sections"][name]["column"] = 2
    return sample


def compiler_of(source: Path) -> typst.Compiler:
    """What compiles the file, with the fonts of the package alone."""
    return typst.Compiler(
        input=str(source),
        root=str(source.parent),
        font_paths=[str(FOLDER / "fonts")],
        ignore_system_fonts=True,
    )


def draw_page(layout: str, wide: int) -> bytes:
    """The first page of the sample, as a PNG of twice the pixels."""
    page = compose(document(layout), RESUME_ID, PageOptions(layout, Paper.A4))
    drawn = compiler_of(TEMPLATE).compile(
        format="png", ppi=2 * wide / A4_INCHES, sys_inputs={"data": orjson.dumps(page).decode()}
    )
    first = drawn[0] if isinstance(drawn, list) else drawn
    assert isinstance(first, bytes)
    return first


def draw_sheet(layouts: Sequence[str], *, across: int, wide: int, names: bool) -> bytes:
    """The first pages in these layouts as a PNG, each this many pixels wide."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for layout in layouts:
            (folder / f"{layout}.png").write_bytes(draw_page(layout, wide))
        (folder / "sheet.typ").write_text(SHEET, encoding="utf-8")
        pages = [{"file": f"{layout}.png", "name": LAYOUTS[layout]} for layout in layouts]
        sheet = {"pages": pages, "across": across, "wide": wide, "names": names}
        compiler = compiler_of(folder / "sheet.typ")
        drawn = compiler.compile(
            format="png", ppi=72, sys_inputs={"data": orjson.dumps(sheet).decode()}
        )
    assert isinstance(drawn, bytes)
    return drawn


def draw(folder: Path) -> None:
    """The folder has both pictures."""
    whole = draw_sheet([*LAYOUTS], across=5, wide=220, names=True)
    (folder / "layouts.png").write_bytes(whole)
    three = draw_sheet(OF_THE_README, across=3, wide=420, names=False)
    (folder / "pdf.png").write_bytes(three)


def main() -> None:
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)


if __name__ == "__main__":
    main()
