"""Fonts: which are used, and what is said of a text that none of them has."""

from contextlib import closing
from pathlib import Path

import pytest

from resumes.rendering import Renderer, compose
from resumes.rendering.fonts import font_folders, version
from tests.support.documents import a_document, with_section
from tests.support.pdfs import find_cjk_fonts


def test_a_text_that_no_font_has_is_named(tmp_path: Path) -> None:
    page = compose(
        with_section("summaries", {"text": "Builds \N{EGYPTIAN HIEROGLYPH A001} bridges"}), "0" * 24
    )
    with closing(Renderer([tmp_path])) as renderer:
        assert renderer.render(page).missing == "\N{EGYPTIAN HIEROGLYPH A001}"
        assert renderer.render(compose(a_document(), "0" * 24)).missing is None


def test_a_font_that_is_added_changes_the_version_and_a_broken_link_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resumes.rendering.fonts.VERSION_INTERVAL_S", 0)
    before = version([tmp_path])
    (tmp_path / "gone.ttf").symlink_to("nothing")
    assert version([tmp_path]) == before
    (tmp_path / "new.ttf").write_bytes(b"x")
    assert version([tmp_path]) != before


@pytest.mark.skipif(not find_cjk_fonts(), reason="no CJK font is installed")
def test_a_font_that_is_added_is_used_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resumes.rendering.fonts.VERSION_INTERVAL_S", 0)
    page = compose(with_section("summaries", {"text": "数据"}), "0" * 24)
    (font, *_) = sorted(Path("/usr/share/fonts").rglob("NotoSansCJK-Regular*"))
    with closing(Renderer([tmp_path])) as renderer:
        assert renderer.render(page).missing is not None
        (tmp_path / font.name).symlink_to(font)
        assert renderer.render(page).missing is None


def test_fonts_of_the_user_come_before_those_of_the_system(tmp_path: Path) -> None:
    assert font_folders(tmp_path)[0] == tmp_path / "fonts"
