"""What a page says by itself, in the resume's language, and in colours that can be read."""

import re
from typing import Any

import pytest

from resumes.rendering import compose
from resumes.rendering.page import CONTRAST, contrast, legible, style_of
from resumes.rendering.words import RIGHT_TO_LEFT, WORDS, count_scripts, find_language
from tests.support.documents import with_section

SENTENCES = {
    "en": "She led the team and worked with people in other countries for years.",
    "ar": "عملت في المدرسة مع فريق من المعلمين",
    "cs": "Vedla tým a pracovala na projektech, které se staly základem pro další rozvoj.",
    "da": "Hun arbejdede med børn og unge, og var ansvarlig for et hold på ti.",
    "de": "Leitung der Abteilung und Planung von Brücken für die Bahn, mit dem Amt.",
    "el": "Εργάστηκε ως δασκάλα σε σχολείο",
    "es": "Dirigió el equipo de la empresa y trabajó con los clientes en España.",
    "fi": "Hän johti tiimiä ja työskenteli sekä asiakkaiden että kumppaneiden kanssa.",
    "fr": "Elle a dirigé une équipe dans le service et travaillé avec les clients du groupe.",
    "he": "ניהלה צוות של עשרה אנשים",
    "hi": "टीम का नेतृत्व किया और गाँव में काम किया",
    "hu": "A csapat vezetője volt, és az ügyfelekkel dolgozott, hogy a munka kész legyen.",
    "it": "Ha diretto il gruppo di lavoro e la ricerca per una delle aziende che sono in città.",
    "ja": "チームを率いて、ゲームを開発しました。",
    "ko": "팀을 이끌고 브랜드를 만들었습니다",
    "nl": "Ze leidde het team van de afdeling en werkte met een groep voor het ziekenhuis.",
    "no": "Jeg jobbet med barn og ble leder for et team av ti på en skole.",
    "pl": "Prowadziła zespół w firmie i pracowała z klientami na całym świecie oraz do dziś.",
    "pt": "Dirigiu a equipe de uma empresa e trabalhou com os clientes para as obras do país.",
    "ro": "A condus echipa și a lucrat cu clienți din țară pentru un proiect care este în curs.",
    "ru": "Руководила отделом и работала с клиентами в компании по всей стране.",
    "sv": "Hon ledde ett team och arbetade med kunder för att det är viktigt på en skola.",
    "tr": "Bir ekip ile çalıştı ve şirket için çok sayıda proje yönetti.",
    "uk": "Керувала відділом та працювала з клієнтами у компанії за кордоном і вдома.",
    "zh": "负责数据分析，带领团队完成项目。",
}


def test_every_language_that_has_words_is_tried() -> None:
    assert SENTENCES.keys() == WORDS.keys()
    assert WORDS.keys() >= RIGHT_TO_LEFT


@pytest.mark.parametrize("language", WORDS)
def test_a_language_is_known_by_its_script_or_its_commonest_words(language: str) -> None:
    assert find_language([SENTENCES[language]]) == language


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        ([], "en"),
        (["", "123", "!?"], "en"),
        (["Ada Lovelace", "SQL"], "en"),
        (["Иван"], "ru"),
        (["Python Kubernetes PostgreSQL", SENTENCES["ja"] * 2], "ja"),
        (["日本語 in an English text about the history of the country"], "en"),
        ([SENTENCES["de"], "Привет"], "de"),
        (["x" * 30_000, SENTENCES["ru"] * 100], "en"),
    ],
)
def test_a_language_is_guessed_from_what_most_of_the_text_is_in(
    texts: list[str], language: str
) -> None:
    assert find_language(texts) == language


def test_scripts_are_counted_by_letters() -> None:
    assert count_scripts(["Ada, Иван", "数据 12"]) == {"latin": 3, "cyrillic": 4, "han": 2}


@pytest.mark.parametrize(
    ("dates", "shown"),
    [
        ({"fromYear": 2018, "fromMonth": 1, "isOngoing": True}, "02/2018 – Present"),
        ({"fromYear": 2018, "fromMonth": 0, "toYear": 2019, "toMonth": 11}, "01/2018 – 12/2019"),
        ({"fromYear": 2018, "toYear": 2018}, "2018"),
        ({"fromYear": 2018.0, "fromMonth": 12}, "2018"),
        ({"toYear": 2018}, "– 2018"),
        ({"isOngoing": True}, "Present"),
        ({"fromMonth": 3}, None),
        ({}, None),
    ],
)
def test_dates_are_shown_as_far_as_they_are_known(dates: dict[str, Any], shown: str | None) -> None:
    ((section,),) = compose(with_section("projects", {"title": "x", "dateRange": dates}), "0" * 24)[
        "columns"
    ]
    assert section["items"][0]["dates"] == shown


@pytest.mark.parametrize("language", WORDS)
def test_what_is_not_over_is_said_in_the_language_of_the_resume(language: str) -> None:
    item = {"title": SENTENCES[language], "dateRange": {"fromYear": 2018, "isOngoing": True}}
    page = compose(with_section("projects", item), "0" * 24)
    assert page["lang"] == language
    assert page["columns"][0][0]["items"][0]["dates"] == f"2018 – {WORDS[language].present}"
    assert (page["dir"] == "rtl") == (language in RIGHT_TO_LEFT)


def test_addresses_are_in_no_language() -> None:
    link = (
        "https://scholar.example.com/citations?view=article&for=the-history-of-schools-in-the-city"
    )
    page = compose(with_section("publications", {"title": SENTENCES["ar"], "link": link}), "0" * 24)
    assert (page["lang"], page["dir"]) == ("ar", "rtl")


@pytest.mark.parametrize(
    ("text", "shown"),
    [("Note", "Note 1.4 / 1"), ("sehr gut", "Note 1.4 / 1\nsehr gut"), (None, "Note 1.4 / 1")],
)
def test_what_a_grade_is_called_is_said_once(text: str | None, shown: str) -> None:
    item = {"degree": SENTENCES["de"], "gpa": "1.4", "maxGpa": "1", "gpaText": text}
    page = compose(with_section("educations", item), "0" * 24)
    assert page["columns"][0][0]["items"][0]["text"] == shown


COLOURS = ("#fff", "#FFFF00", "#000", "#008cff", "#12345678", "#f0f", "#abcd", "#7f7f7f")


@pytest.mark.parametrize("colour", COLOURS)
def test_any_colour_is_made_dark_enough_to_read(colour: str) -> None:
    def rgb(text: str) -> tuple[float, float, float]:
        red, green, blue = (int(text[at : at + 2], 16) for at in (1, 3, 5))
        return red, green, blue

    style = style_of({"colors": [colour, None, colour]}, "en")
    for name, ground in (
        ("accent", "#ffffff"), ("second", "#ffffff"), ("solid", "#ffffff"),
        ("accent_on_tint", style["tint"]), ("second_on_tint", style["tint"]),
    ):  # fmt: skip
        assert re.fullmatch("#[0-9a-f]{6}", style[name])
        assert contrast(rgb(style[name]), rgb(ground)) >= CONTRAST


def test_a_colour_that_can_be_read_stays() -> None:
    assert legible((0, 0, 128), (255, 255, 255)) == (0, 0, 128)
    assert contrast((0, 0, 0), (255, 255, 255)) == 21
