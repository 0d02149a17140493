"""Whether there are fonts for the scripts that resumes are written in."""

import pytest

from resumes.health import checks
from resumes.health.checks import read_names
from resumes.health.findings import Installation, Severity
from resumes.rendering import fonts as drawing_fonts
from resumes.rendering.fonts import find_scripts, font_packages
from resumes.settings import Settings
from resumes.store import Store
from resumes.store.accounts import AccountInfo
from resumes.store.creation import create
from tests.health.conftest import find
from tests.support.pdfs import find_cjk_fonts
from tests.support.resumes import a_resume


@pytest.fixture(autouse=True)
def _package_fonts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing_fonts, "SYSTEM_FONTS", ())


def put(store: Store, account: AccountInfo, *names: str) -> None:
    create(store, account.id, [a_resume(name=name) for name in names])


def test_the_package_has_fonts_for_these(
    installation: Installation, store: Store, account: AccountInfo
) -> None:
    put(store, account, "Zoë Ångström", "Олена", "Ελένη", "سلمى", "דוד", "प्रिया", "Ada 👩‍🔬 ª")

    [finding] = find(installation, "fonts")

    assert (finding.severity, finding.text) == (
        Severity.OK,
        "fonts for the newest resumes are installed",
    )


def test_scripts_without_a_font_are_named_with_the_packages_to_install(
    installation: Installation, store: Store, account: AccountInfo, settings: Settings
) -> None:
    put(store, account, "山田 はな", "김서연", "สมชาย", "Ada")

    [finding] = find(installation, "fonts")

    assert finding.severity is Severity.WARNING
    assert finding.text == (
        "some resumes are in Japanese, Korean and Thai, for which no font is installed: their PDFs show "
        "boxes"
    )
    assert finding.remedy == (
        f"Install fonts-noto-cjk and fonts-noto-core, or put a font into {settings.home / 'fonts'}"
    )


@pytest.mark.skipif(not find_cjk_fonts(), reason="no CJK font is installed")
def test_a_font_in_the_home_will_do(
    installation: Installation, store: Store, account: AccountInfo, settings: Settings
) -> None:
    put(store, account, "李小明")
    [before] = find(installation, "fonts")

    (settings.home / "fonts").mkdir()
    for font in find_cjk_fonts():
        (settings.home / "fonts" / font.name).symlink_to(font)
    [after] = find(installation, "fonts")

    assert "in Chinese/Japanese, for which no font is installed" in before.text
    assert after.severity is Severity.OK


def test_where_nothing_can_be_drawn_it_says_so(
    installation: Installation,
    store: Store,
    account: AccountInfo,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("resumes.rendering.renderer._PROGRAM", "/nonexistent")
    put(store, account, "Հայկ")  # of which no other test asks

    [finding] = find(installation, "fonts")

    assert finding.severity is Severity.WARNING
    assert finding.text == "PDFs cannot be drawn: The process that draws PDFs ended"


def test_the_newest_resumes_are_looked_at_and_no_more(
    store: Store, account: AccountInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "MAX_RESUMES", 2)
    put(store, account, "First", "Second", "Third")

    assert [name.split()[0] for name in read_names(store)] == ["Third", "Second"]


def test_letters_that_chinese_and_japanese_share_are_japanese_beside_kana() -> None:
    assert {script.name for script in find_scripts("職務経歴書")} == {"Chinese/Japanese"}
    assert {script.name for script in find_scripts("山田 ハナ")} == {"Japanese"}
    assert {script.name for script in find_scripts("山田 ハナ, 김")} == {"Japanese", "Korean"}
    assert find_scripts("Zoë, Олена, Ελένη, سلمى, דוד, प्रिया, ª, 👩‍🔬, 1️⃣") == {}


def test_the_packages_of_every_script_and_of_emoji_are_named() -> None:
    assert font_packages("日本") == "fonts-noto-cjk"
    assert font_packages("สมชาย 日本") == "fonts-noto-cjk and fonts-noto-core"
    assert font_packages("日本 🇫🇷") == "fonts-noto-cjk and fonts-noto-color-emoji"
    assert font_packages("🇫🇷") == "fonts-noto-color-emoji"
    assert font_packages("\U0003fff0") == "fonts-noto-core"
