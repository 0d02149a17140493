from resumes.analyzer.icons import ICONS


def test_the_icon_set_holds_the_230_names_that_are_known() -> None:
    assert {"001-free-plus", "21-free-star", "youtube-square"} <= ICONS
    assert all(name == name.strip().lower() for name in ICONS)
    assert len(ICONS) == 230
