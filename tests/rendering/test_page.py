"""What goes where on a page: the parts that a document becomes, before anything is drawn."""

from typing import Any

import pytest

from resumes.rendering import PageOptions, Paper, compose
from resumes.rendering.fonts import fallbacks
from resumes.rendering.page import CHARS_PER_TEXT, LONG_CHARS, MAX_CHARS, MAX_RUNNING_CHARS, TooLong
from tests.support.documents import a_document, admitting, with_section

ID = "0" * 24


def styled(**style: Any) -> dict[str, Any]:
    found: dict[str, Any] = compose(a_document(style=style), ID)["style"]
    return found


def items(section_type: str, *given: Any) -> list[dict[str, Any]]:
    """The items of a section as they are drawn."""
    ((section,),) = compose(with_section(section_type, *given), ID)["columns"]
    drawn: list[dict[str, Any]] = section["items"]
    return drawn


# Style


def test_a_resume_without_a_style_has_the_middle_of_everything() -> None:
    page = compose(a_document(), ID)
    assert (page["layout"], page["paper"]) == ("double", "a4")
    style = page["style"]
    measures = ("size", "leading", "spacing", "margin", "share", "extra")
    assert [style[name] for name in measures] == [9.6, 0.35, 1.0, 15, 0.63, 0]
    assert (style["body"], style["heading"], style["serif"]) == (
        "Open Sans", "Open Sans", "Libertinus Serif",
    )  # fmt: skip
    assert style["accent"] == style["second"] == style["solid"] == "#1f5f7a"


@pytest.mark.parametrize(
    ("option", "measure", "values"),
    [
        ("fontSize", "size", [8.4, 9.0, 9.6, 10.2, 10.8]),
        ("lineHeightOption", "leading", [0.26, 0.35, 0.48]),
        ("marginOption", "spacing", [0.7, 0.85, 1.0, 1.2, 1.4]),
        ("pageMarginOption", "margin", [9, 12, 15, 18, 21, 24]),
        ("columnLayoutOption", "share", [0.58, 0.63, 0.67, 0.71]),
        ("headerExtraSpacing", "extra", [0, 5, 10, 16, 22]),
    ],
)
def test_an_option_chooses_a_measure_and_one_beyond_the_nearest(
    option: str, measure: str, values: list[float]
) -> None:
    chosen = [styled(**{option: number})[measure] for number in range(len(values))]
    assert chosen == values
    assert styled(**{option: -1})[measure] == values[0]
    assert styled(**{option: len(values)})[measure] == values[-1]
    # What is no number counts as absent.
    assert styled(**{option: True})[measure] == styled(**{option: "1"})[measure]
    assert styled(**{option: None})[measure] == styled()[measure]


@pytest.mark.parametrize(
    ("body", "heading", "fonts"),
    [
        ("roboto", None, ("Roboto", "Roboto")),
        ("InterUI", "interui", ("Inter", "Inter")),
        ("ptsans", "bitter", ("Open Sans", "Libertinus Serif")),
        *(
            ("somebodys", font, ("Open Sans", "Libertinus Serif"))
            for font in ("Tinos", "volkhov", "robotoslab", "playfair", "abril", "gelasio")
        ),
    ],
)
def test_fonts_that_the_package_lacks_have_one_of_its_own(
    body: str, heading: str | None, fonts: tuple[str, str]
) -> None:
    style = styled(fontBody=body, fontHeading=heading)
    assert (style["body"], style["heading"]) == fonts


def test_the_first_two_colors_are_used_and_are_darkened_until_they_can_be_read() -> None:
    style = styled(colors=["#036", "#112233", "#ffffff"])
    assert (style["accent"], style["solid"], style["second"]) == ("#003366", "#003366", "#112233")
    assert (style["tint"], style["accent_on_tint"], style["second_on_tint"]) == (
        "#e8edf1", "#003366", "#112233",
    )  # fmt: skip
    assert styled(colors=["#036", "#112233"])["second"] == "#112233"
    yellow = styled(colors=["#ffff00"])
    assert yellow["accent"] == yellow["solid"] == yellow["second"] == "#7a7a00"
    assert yellow["accent_on_tint"] == yellow["second_on_tint"]
    # Of a color with transparency the rest counts.
    assert styled(colors=["#00336680"])["accent"] == styled(colors=["#0368"])["accent"] == "#003366"


@pytest.mark.parametrize(
    ("is_letter", "choice", "paper"),
    [
        (True, None, "us-letter"), (False, None, "a4"),
        (True, Paper.A4, "a4"), (False, Paper.LETTER, "us-letter"),
    ],
)  # fmt: skip
def test_the_paper_is_that_of_the_style_unless_one_is_chosen(
    is_letter: bool, choice: Paper | None, paper: str
) -> None:
    document = a_document(style={"isLetterSize": is_letter})
    assert compose(document, ID, PageOptions(paper=choice))["paper"] == paper


def test_the_layout_is_that_of_the_style_unless_one_is_chosen() -> None:
    document = a_document(style={"layout": "classic"})
    assert compose(document, ID)["layout"] == "classic"
    assert compose(document, ID, PageOptions(layout="elegant"))["layout"] == "elegant"
    assert compose(a_document(style={"layout": "nobodys"}), ID)["layout"] == "double"


# Header


def test_contacts_are_links_where_they_are_addresses() -> None:
    header = {
        "name": "Ada", "location": "London", "website": "https://www.ada.example/",
        "phone": "+44 (161) 496-0142", "email": "ada@example.com",
    }  # fmt: skip
    page = compose(a_document(header=header), ID)
    assert page["header"]["contacts"] == [
        {"text": "ada@example.com", "url": "mailto:ada@example.com"},
        {"text": "+44 (161) 496-0142", "url": "tel:+441614960142"},
        {"text": "ada.example", "url": "https://www.ada.example/"},
        {"text": "London", "url": None},
    ]


@pytest.mark.parametrize(
    ("phone", "dialed"),
    [
        # A 0 that is for calls within the country is not dialed from abroad.
        ("+49 (0)171 5550123", "+491715550123"),
        ("+44 (0)20 7946 0958", "+442079460958"),
        ("+49(0)171-5550123", "+491715550123"),
        ("(+49) (0) 171 / 5550123", "+491715550123"),
        ("+44 (020) 7946 0958", "+442079460958"),
        ("+90 0532 555 01 23", "+905325550123"),
        ("+36 (06) 30 555 0123", "+36305550123"),
        ("+7 (8) 495 555-01-23", "+74955550123"),
        ("+7 (0)495 5550123", "+74955550123"),
        ("+36 (0)30 555 0123", "+36305550123"),
        ("+39 (0)6 5550 0123", "+390655500123"),
        ("+39 06 5550 0123", "+390655500123"),
        ("(0)171 5550123", "01715550123"),
        ("+(49) 171 5550123", "+491715550123"),
        ("00 (49) (0)171 5550123", "00491715550123"),
        ("+38 (044) 555-01-23", "+380445550123"),
        ("+380 (0)44 555 01 23", "+380445550123"),
        ("+370 (8) 615 50123", "+37061550123"),
        ("+375 (8029) 555-01-23", "+375295550123"),
        ("+1 (1) 242-555-0123", "+12425550123"),
        ("+226 07 55 01 23", "+22607550123"),
        ("+241 06 55 01 23", "+24106550123"),
        ("0011 64 21 555 012", "00116421555012"),
        ("+241 077 55 01 23", "+24177550123"),
        # One number, however it is grouped.
        ("(555) 555-0100", "5555550100"),
        ("030/5550123", "0305550123"),
        ("+49 - 171 - 5550123", "+491715550123"),
        ("+86 138 0013 0800", "+8613800130800"),
        ("12345", "12345"),
        # As address books and keyboards write it.
        ("+49\u00a0171\u00a0555\u20110123", "+491715550123"),
        ("\u202a+49 171 5550123\u202c", "+491715550123"),
        ("\uff0b\uff14\uff19 \uff11\uff17\uff11 5550123", "+491715550123"),
        ("\u0660\u0661\u0667\u0661 5550123", "01715550123"),
        ("０９０ー５５５５ー０１２３", "09055550123"),
        # Several numbers.
        ("030 555012 / 0171 5550123", None),
        ("555.0100/555.0101", None),
        ("555 0100 - 555 0101", None),
        ("030 5550123, 0171 5550123", None),
        ("030 5550123 \u00b7 0171 5550123", None),
        ("030 5550123 or 0171 5550123", None),
        ("030 555012 0171 5550123", None),
        ("(555) 555-0100 (555) 555-0101", None),
        ("+49 30 555012 +49 171 5550123", None),
        # What cannot be dialed.
        ("+1 555 0100 x12", None),
        ("+1 (555) 555-0100 ext. 12", None),
        ("1-800-FLOWERS", None),
        ("Fax 030 5550123", None),
        ("++49 171 5550123", None),
        ("49 (0)171 5550123", None),
        ("86 138 0013 0800", None),
        ("+0049 171 5550123", None),
        ("+0 171 5550123", None),
        ("01.02.2020", None),
        ("112", None),
        ("12345678901234567890", None),
        ("1 " * 10_000, None),
    ],
)
def test_a_phone_number_is_a_link_if_it_is_one_that_can_be_dialed(
    phone: str, dialed: str | None
) -> None:
    (contact,) = compose(a_document(header={"phone": phone}), ID)["header"]["contacts"]
    assert contact["url"] == (dialed and f"tel:{dialed}")


def test_contacts_that_are_no_addresses_are_texts() -> None:
    header = {"name": "Ada", "email": "ask me", "phone": "ask Bob", "website": "on request"}
    contacts = compose(a_document(header=header), ID)["header"]["contacts"]
    assert contacts == [{"text": text, "url": None} for text in ("ask me", "ask Bob", "on request")]
    for header in ({"website": "https://"}, {"location": "https://a.example"}, {"email": "@ada"}):
        bare = compose(a_document(header={"name": "Ada", **header}), ID)
        assert bare["header"]["contacts"] == [
            {"text": text, "url": None} for text in header.values()
        ]


def test_a_long_name_is_cut_at_the_foot_of_a_page_only() -> None:
    name = "Ada " + "L" * MAX_RUNNING_CHARS
    page = compose(a_document(header={"name": name, "title": "Analyst"}), ID)
    header = page["header"]
    assert (header["name"], header["title"]) == (name, "Analyst")
    assert page["title"] == f"{name} Resume"
    assert header["running"] == name[:MAX_RUNNING_CHARS]


def test_lines_of_a_long_resume_are_broken_one_by_one() -> None:
    def linebreaks(chars: int) -> str:
        document = with_section("summaries", {"text": "x" * chars}, name="S")
        found: str = compose(document | {"header": {"name": "A"}}, ID)["linebreaks"]
        return found

    # The text, the heading and the name.
    others = 3 * CHARS_PER_TEXT + len("S") + len("A")
    most = LONG_CHARS - others
    assert (linebreaks(most), linebreaks(most + 1)) == ("optimized", "simple")
    assert linebreaks(MAX_CHARS - others) == "simple"
    with pytest.raises(TooLong):
        linebreaks(MAX_CHARS - others + 1)


@pytest.mark.parametrize(
    ("text", "lang", "direction", "hyphenates", "spaced"),
    [
        ("Ich habe die Anlage mit dem Team gebaut und betreut", "de", "ltr", True, True),
        ("قادت فريق التصميم في المصنع", "ar", "rtl", False, False),
        ("ניהלה את צוות התכנון", "he", "rtl", False, False),
        ("उन्होंने टीम का नेतृत्व किया", "hi", "ltr", False, False),
        ("ऑनलाइन दुकान विकसित केले आणि संघाचे नेतृत्व केले", "mr", "ltr", False, False),
        ("पाँच जनाको टोलीको नेतृत्व गरे र ग्राहकहरूसँग काम गरेको छु", "ne", "ltr", False, False),
        ("設計チームをまとめました", "ja", "ltr", True, False),
        ("설계 팀을 이끌었습니다", "ko", "ltr", True, False),
        ("带领设计团队完成项目", "zh", "ltr", True, False),
    ],
)
def test_how_lines_are_set_is_a_matter_of_the_language(
    text: str, lang: str, direction: str, hyphenates: bool, spaced: bool
) -> None:
    page = compose(with_section("summaries", {"text": text}), ID)
    found = (page["lang"], page["dir"], page["hyphenates"], page["spaced"])
    assert found == (lang, direction, hyphenates, spaced)
    assert page["style"]["fallbacks"] == fallbacks(lang)
    assert compose(a_document(header={"title": text}), ID)["lang"] == lang


# Sections


def test_shares_are_of_the_whole() -> None:
    data = [
        {"title": "Sleep", "value": 1}, {"title": "Work", "value": 3},
        {"title": "", "value": 5}, {"title": "Lost", "value": -2}, {"title": "Tea"},
    ]  # fmt: skip
    assert items("mytime", {"data": data}) == [
        {"title": "Sleep", "level": 0.25, "note": "25%"},
        {"title": "Work", "level": 0.75, "note": "75%"},
        {"title": "Lost", "level": 0.0, "note": "0%"},
        {"title": "Tea", "level": 0.0, "note": "0%"},
    ]
    vast = [{"title": "One", "value": 1e300}, {"title": "Two", "value": 1e6}]
    assert [one["note"] for one in items("mytime", {"data": vast})] == ["50%", "50%"]
    nothing = items("mytime", {"data": [{"title": "Rest", "value": 0}]})
    assert nothing == [{"title": "Rest", "level": 0.0, "note": None}]
    fractions = items(
        "mytime", {"data": [{"title": "A", "value": 0.25}, {"title": "B", "value": 0.75}]}
    )
    assert [one["level"] for one in fractions] == [0.25, 0.75]


def test_levels_are_parts_of_the_highest_one() -> None:
    drawn = items(
        "languages",
        {"name": "Welsh", "level": 5, "levelText": "native"},
        {"name": "Manx", "level": 1}, {"name": "Cornish"},
        {"name": "Scots", "level": 9}, {"name": "Irish", "level": -1},
        {"levelText": "a little", "level": 2},
    )  # fmt: skip
    assert drawn == [
        {"title": "Welsh", "note": "native", "level": 1.0},
        {"title": "Manx", "note": None, "level": 0.2},
        {"title": "Cornish", "note": None, "level": None},
        {"title": "Scots", "note": None, "level": 1.0},
        {"title": "Irish", "note": None, "level": 0.0},
        {"title": "a little", "note": None, "level": 0.4},
    ]
    (engines,) = items("industryExperiences", {"name": "Engines", "level": 5})
    assert engines["level"] == 0.5


def test_an_entry_has_each_part_in_its_place() -> None:
    (entry,) = items(
        "experiences",
        {
            "position": "Analyst", "workplace": "Engine Ltd", "location": "London",
            "link": "https://www.engine.example/", "description": "Notes",
            "dateRange": {"fromYear": 1842, "fromMonth": 1, "isOngoing": True},
            "bullets": ["A", "", "B"],
        },
    )  # fmt: skip
    assert entry == {
        "title": "Analyst", "sub": "Engine Ltd", "by": None, "dates": "02/1842 – Present",
        "place": "London", "text": "Notes", "bullets": ["A", "B"],
        "link": "https://www.engine.example/", "shown-link": "engine.example",
    }  # fmt: skip


def test_without_a_title_an_entry_is_called_by_where_or_by_whom() -> None:
    (at,) = items("experiences", {"workplace": "Engine Ltd", "description": "x"})
    assert (at["title"], at["sub"]) == ("Engine Ltd", None)
    (by,) = items("books", {"author": "Ada"})
    assert (by["title"], by["by"]) == ("Ada", None)


@pytest.mark.parametrize(
    ("education", "text"),
    [
        ({"gpa": "3.9", "maxGpa": "4.0"}, "GPA 3.9 / 4.0"),
        ({"gpa": "3.9", "gpaText": "GPA"}, "GPA 3.9"),
        ({"gpa": "3.9", "gpaText": "First class"}, "GPA 3.9\nFirst class"),
        ({"maxGpa": "4.0", "gpaText": "First class"}, "First class"),
        # In the words of another language, and said once.
        *(
            ({"degree": "Leitung der Abteilung und Planung von Brücken für die Bahn",
              "gpa": "1.4", "maxGpa": "1", "gpaText": called}, text)
            for called, text in (
                ("Note", "Note 1.4 / 1"), ("sehr gut", "Note 1.4 / 1\nsehr gut"), (None, "Note 1.4 / 1"),
            )
        ),
    ],
)  # fmt: skip
def test_a_grade_stands_before_what_it_is_called(education: dict[str, Any], text: str) -> None:
    (entry,) = items("educations", {"degree": "BSc", **education})
    assert entry["text"] == text


@pytest.mark.parametrize(
    ("dates", "shown"),
    [
        ({"fromYear": 2018, "fromMonth": 1, "isOngoing": True}, "02/2018 – Present"),
        ({"fromYear": 2018, "fromMonth": 0, "toYear": 2019, "toMonth": 11}, "01/2018 – 12/2019"),
        ({"fromYear": 2018, "toYear": 2018}, "2018"),
        ({"fromYear": 2018.0, "fromMonth": 13}, "2018"),
        ({"fromYear": 2018, "fromMonth": 1.5, "toYear": 2018, "toMonth": 12.0}, "2018 – 12/2018"),
        ({"toYear": 2018}, "– 2018"),
        ({"isOngoing": True}, "Present"),
        ({"fromMonth": 3}, None),
        ({}, None),
    ],
)
def test_dates_are_shown_as_far_as_they_are_known(dates: dict[str, Any], shown: str | None) -> None:
    (entry,) = items("projects", {"title": "x", "dateRange": dates})
    assert entry["dates"] == shown


def test_months_are_counted_as_the_resume_counts_them() -> None:
    dates = {"fromYear": 2018, "fromMonth": 3, "isOngoing": True}
    document = with_section("projects", {"title": "x", "dateRange": dates})
    for first_month, shown in ((None, "04"), (0, "04"), (1, "03")):
        [[section]] = compose(document, ID, first_month=first_month)["columns"]
        assert section["items"][0]["dates"] == f"{shown}/2018 – Present"


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("これは説明です", "2018.02 – 2019.12"),
        ("이것은 설명입니다", "2018.02 – 2019.12"),
        ("这是一段说明文字", "2018.02 – 2019.12"),
        ("This is the description", "02/2018 – 12/2019"),
    ],
)
def test_dates_begin_with_the_year_where_the_language_has_it_so(text: str, dates: str) -> None:
    span = {"fromYear": 2018, "fromMonth": 1, "toYear": 2019, "toMonth": 11}
    (entry,) = items("experiences", {"position": text, "description": text, "dateRange": span})
    assert entry["dates"] == dates


def test_every_kind_of_line_break_is_one_and_what_no_page_can_show_is_left_out() -> None:
    (drawn,) = items("summaries", {"text": "a\r\nb\rc\u2028d\u2029e\x0bf\x0cg\x85h\ti\x07\ufeff"})
    assert drawn["text"] == "a\nb\nc\nd\ne\nf\ng\nh i"


def test_an_item_of_a_type_beyond_the_table_is_its_texts_a_line_each() -> None:
    document = with_section("hobbies", {"a": "Chess", "b": ["Go", {"c": "Shogi"}]})
    page = compose(document, ID, format=admitting("hobbies"))
    assert page["columns"][0][0]["items"] == [{"text": "Chess\nGo\nShogi"}]


def test_the_address_of_a_picture_is_no_text_of_the_resume() -> None:
    job = {"position": "עבדה בבית ספר", "companyLogo": "data:image/png;base64," + "A" * 19_000}
    page = compose(with_section("experiences", *[job] * 11), ID)
    assert (page["lang"], page["dir"]) == ("he", "rtl")


def test_columns_without_sections_are_left_out_and_the_main_one_is_first() -> None:
    sections = {
        "summaries": {"column": 2, "items": [{"text": "At the side"}]},
        "skills": {"column": 0, "items": [{"title": "Nets", "tags": ["knots"]}]},
        "books": {"column": 1, "items": [{}]},
    }
    columns = compose(a_document(sections=sections), ID)["columns"]
    assert [[one["heading"] for one in column] for column in columns] == [["Skills"], ["Summary"]]
    assert columns[0][0]["items"] == [{"title": "Nets", "text": None, "tags": ["knots"]}]
    assert compose(a_document(), ID)["columns"] == [[]]


# Letters that nobody can read


@pytest.mark.parametrize("mark", ["\u0336", "\u200b"], ids=["accents", "format characters"])
def test_a_letter_keeps_30_marks(mark: str) -> None:
    ((text,),) = ([one["text"] for one in items("summaries", {"text": f"é{mark * 60}é"})],)
    assert text == f"é{mark * 30}é"
    ((whole,),) = ([one["text"] for one in items("summaries", {"text": f"é{mark * 30}é" * 3})],)
    assert whole == f"é{mark * 30}é" * 3


def test_consonants_that_are_joined_are_parted_after_30() -> None:
    (drawn,) = items("summaries", {"text": "क्" * 60})
    longest = max(len(part) for part in drawn["text"].split("\u200b"))
    assert drawn["text"].count("क") == 60
    assert longest <= 31
