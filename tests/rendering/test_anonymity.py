"""An anonymous PDF does not say whose it is."""

import re
import unicodedata
from typing import Any

import pytest

from resumes.rendering import PageOptions, Renderer, compose
from resumes.rendering.page import file_name
from tests.support.documents import a_document, admitting, secrets_of, with_section
from tests.support.pdfs import (
    EACH_SAMPLE,
    SAMPLES,
    Pdf,
    fold,
    load,
    read_with_pdftotext,
    require_fonts,
)

ID = "0123456789abcdef0123f7e2"


def composed(document: dict[str, Any], layout: str = "single") -> dict[str, Any]:
    return compose(document, ID, PageOptions(layout=layout, is_anonymous=True))


@pytest.mark.parametrize("sample", EACH_SAMPLE)
def test_who_it_is_of_stands_nowhere(renderer: Renderer, sample: str) -> None:
    require_fonts(sample)
    document = load(SAMPLES[sample])
    pdf = Pdf(renderer.render(composed(document)).body)
    found = check_anonymous(pdf, document)
    assert pdf.reader.metadata is not None
    assert pdf.reader.metadata.author == "Candidate 7E2"
    assert fold("Candidate 7E2") in found


def check_anonymous(pdf: Pdf, *documents: dict[str, Any]) -> str:
    """No part of it says whose the documents are; all that is read of it, folded."""
    spoken = "".join(each.text for each in pdf.elements())
    found = fold(" ".join([spoken, spoken[::-1], pdf.text, read_with_pdftotext(pdf.body)]))
    streams = pdf.streams
    for text in (text for document in documents for text in secrets_of(document)):
        assert fold(text) not in found
        for encoding in ("utf-8", "utf-16-be"):
            assert text.encode(encoding) not in streams
            assert text.encode(encoding).hex().encode() not in streams.lower()
    assert pdf.links == []
    return found


def shown(text: str, **header: str) -> str:
    """What is drawn of a text in the resume of somebody."""
    document = with_section("summaries", {"text": text}) | {"header": header}
    [[section]] = composed(document)["columns"]
    (item,) = section["items"]
    return str(item["text"])


@pytest.mark.parametrize(
    ("name", "text", "gone"),
    [
        ("Ada Lovelace", "Ada wrote it; ADA LOVELACE, ada  lovelace, Ms Lovelace's", "Lovelace"),
        ("Philippa Corrigan-Osei", "Dr Osei and Corrigan met", "Osei"),
        ("Hélène Vauquelain", unicodedata.normalize("NFD", "Hélène said"), "le\u0300ne"),
        ("Sant\u2019Ambroset Ludovica", "Prof. Ambroset", "Ambroset"),
        ("禹书瑶", "我是禹书瑶", "书瑶"),
        ("柊木 澄香", "柊木澄香です。柊木と申します。", "柊木"),
        ("탁나래", "저는 탁나래입니다", "나래"),
        ("佐々木 健", "佐々木です", "佐々木"),
        ("𠮷田 太郎", "𠮷田です", "𠮷田"),
        # Capitals of Turkish and Greek.
        ("Yıldız Aydın", "Prof. YILDIZ", "YILDIZ"),
        ("YILDIZ AYDIN", "Aydın ile", "Aydın"),
        ("Deniz Kaya", "DENİZ ile", "DENİZ"),
        ("Γιώργος Μαΐστρος", "ΓΙΩΡΓΟΣ", "ΓΙΩΡΓΟΣ"),
        ("Γιώργος Μαΐστρος", "ΜΑΪΣΤΡΟΣ", "ΜΑΪΣΤΡΟΣ"),
        # A word of another script stands alone among those that have no blanks between words.
        ("Ada Lovelace", "私はAdaです", "Ada"),
        ("Ada Lovelace", "Ada Lovelace는 개발자", "Lovelace"),
        # Vowel signs are no letters, and yet parts of words.
        ("प्रिया शर्मा", "प्रिया ने काम किया", "प्रिया"),
        ("দেবাশীষ রায়", "দেবাশীষ কাজ করেন", "দেবাশীষ"),
        ("مُحَمَّد علي", "مُحَمَّد هنا", "مُحَمَّد"),
        # What nobody sees parts words, or stands within one.
        ("Ada\u200bLovelace", "Ada\u200bLovelace", "Lovelace"),
        ("Ada Lovelace", "Love\u2060lace wrote it", "lace"),
        ("Ada Lovelace", "Lovelace\u200bwrote it", "Lovelace"),
        ("Ada\u0001Lovelace", "AdaLovelace", "Lovelace"),
        ("Ada Lovelace", "ada_lovelace and Lovelace_CV", "Lovelace"),
        ("Ada Lovelace", "Love\u00adlace", "lace"),
        ("Ada Weiß", "WEISS", "WEISS"),
        (" ".join(f"w{number:04}" for number in range(3_000)), "w0001", "w0001"),
    ],
)
def test_the_name_is_replaced_within_texts(name: str, text: str, gone: str) -> None:
    found = shown(text, name=name)
    assert gone.casefold() not in found.casefold()
    assert "Candidate 7E2" in found


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("Ada Al Ve", *["Adamant about canvas; the cave of Al. An example."] * 2),
        # How a text is set stays where nothing is hidden.
        ("Ada", *["\u2067שלום\u2069 ไทย\u200bไทย"] * 2),
        # Words that are too short on their own are replaced together, where they are words.
        (
            "Al Bo",
            "Al  Bo met Sal Bob, an Alibi, Al Bott and Al.",
            "{} met Sal Bob, an Alibi, Al Bott and Al.",
        ),
        ("书 瑶", "我书瑶是", "我{}是"),
        ("राम", "रामा और राम", "रामा और {}"),
        # The name of several words is one name.
        ("Ada King Lovelace", "Ada King Lovelace wrote it", "{} wrote it"),
        ("Love\u00adlace", "Lovelace's", "{}'s"),
        # What an apostrophe or a hyphen joins is one name.
        (
            "Sean O'Neil",
            "O'Neil, O’NEIL's, oʼneil, ONEIL and Oʹ Neil",
            "{}, {}'s, {}, {} and Oʹ {}",
        ),
        ("Ann O’Reilly-Vance", "Ms O'Reilly-Vance, O’Reilly‐Vance", "Ms {}, {}"),
        ("Guy L'Hôpital", "L’HÔPITAL, L'Hopital; LHÔPITAL", "{}, {}; {}"),
        ("Guy d'Artagnan", "d’Artagnan, D'Artagnan, d＇Artagnan, l'Artagnan", "{}, {}, {}, l'{}"),
        ("Sa'id M`Baye", "She said: Said, Sa‘id, M'Baye", "She said: Said, {}, {}"),
        ("Hélène Nuñez", "Helene NUNEZ", "{}"),
        ("Jerome Nguyen", "JÉRÔME Nguyễn", "{}"),
        # Of an address, all is hidden.
        ("Ada Lovelace", "See https://www.example.com/in/ada-lovelace-123/.", "See {}."),
        ("Ada Lovelace", "(ada.lovelace@example.org), Lovelace.", "({}), {}."),
        ("Ada Lovelace", "见lovelace.example/cv。ＡＤＡ", "见{}。{}"),
        ("Sean O'Neil", "o'neil@example.com and example.com/o'neil", "{} and {}"),
        ("Ada Lovelace", "Lovelace.She led Ada's Node.js.", "{}.She led {}'s Node.js."),
        ("Ada Lovelace", "github.com/lovelace99 and lovelaceada@x.example", "{} and {}"),
        ("Ada Lovelace", "GitHub.Com/LovelaceA, www．lovelace．dev, lovelace＠corp", "{}, {}, {}"),
        ("Ada Byron", *["ada99.example, cadabyte, Byronic and node.js"] * 2),
        # Genitives without an apostrophe, as in German.
        ("Ada Lovelace", "Lovelaces Team, ADAS; Lovelacess", "{}s Team, {}S; Lovelacess"),
        ("Sean O'Neil", "O'Neils, ONeils and ONEILS team", "{}s, {}s and {}S team"),
        ("Li Wu", "Li Wus Team, Wus Team", "{}s Team, Wus Team"),
    ],
)
def test_the_alias_stands_once_for_a_name(name: str, text: str, found: str) -> None:
    assert shown(text, name=name) == found.replace("{}", "Candidate 7E2")


@pytest.mark.parametrize(
    ("field", "contact", "text"),
    [
        ("email", "gone@example.com", "请联系gone@example.com或来电"),
        ("email", "gone@example.com", "gone@example.com으로"),
        ("phone", "13800GONE", "致电13800gone。"),
        ("phone", "+44 161 GONE", "Call +44\u00a0161\ngone"),
        # As address books copy them.
        ("phone", "\u202a+44 161 GONE\u202c", "Call +44 161 gone"),
        ("phone", "054\u200e-12GONE", "Call 054\u200e-12gone"),
        ("email", "me@\u200bgone.example", "Write to me@\u200bgone.example"),
        ("email", "mailto:gone@example.com", "Write to gone@example.com"),
        ("email", "Ada <me@gone.example>, ada@example.org", "Write to me@gone.example"),
        ("email", "[gone@example.com]", "Write to gone@example.com"),
        ("email", "gone@example.com.", "Write to gone@example.com, please"),
        ("email", "mailto:gone@example.com?subject=Hi", "Write to gone@example.com"),
        # As people write them for other people.
        ("email", "me@gone.example", "Write to me (at) gone.example"),
        ("email", "me.too@gone.example", "Write to ME [dot] TOO [at] gone [dot] example"),
        ("email", "me@gone.example", "Write to me at gone dot example"),
        ("email", "me (at) gone.example", "Write to me@gone.example"),
        ("email", "me@gone.example", "Write to me＠gone.example"),
        ("email", "me@gone.example", "Write to me﹫gone．example"),
        ("email", "me＠gone.example", "Write to me@gone.example"),
        ("website", f"https://x.example/{'a' * 200}-gone", f"x.example/{'a' * 200}-gone"),
        ("website", "HTTPS://www.gone.example/", "See gone.example."),
        ("website", "www.gone.example", "See https://gone.example"),
        ("email", "al@gone.com", "Write to AL@gone.com"),
        ("email", "iam.gone@mail.example", "github.com/IAM.gone or @iam.gone_1815"),
    ],
)
def test_contacts_are_hidden_as_they_read(field: str, contact: str, text: str) -> None:
    found = shown(text, **{"name": "Ada Lovelace", field: contact})
    assert "gone" not in found
    assert "Candidate 7E2" in found


@pytest.mark.timeout(60)  # with any number of blanks around each separator it takes hours
@pytest.mark.parametrize(
    ("email", "text"),
    [
        ("a...b@c.de", "a" + (" (dot)" + " " * 6_000) * 3 + "x"),
        ("a..b..c@d..e", "a" + (" (dot) (dot) b") * 1_400),
        (".a@b.c", "( " * 10_000),
        ("(@)@x", " " * 20_000),
    ],
)
def test_separators_and_blanks_of_an_address_take_no_time(email: str, text: str) -> None:
    assert shown(f"{text}z", email=email)


@pytest.mark.parametrize("word", ["1 ", "x."])
def test_of_a_long_contact_the_beginning_is_looked_for(word: str) -> None:
    # To look for 20,000 characters in each text takes a minute, in which nobody else is answered.
    assert word not in shown(word * 200, name="Ada Lovelace", phone=word * 5_000)


SPELLINGS = [
    "+49 170 55443322", "0170/55443322", "(0170) 55 44 33 22", "0049 170 55443322",
    "00 49 (0) 170-554 433 22", "+49 (0)170 55443322", "+49 0170 55443322", "(+49) 170 55443322",
    "011 49 170 55443322", "170.55443322", "+4917055443322", "0 170 5544 3322",
    "+\u0664\u0669 \u0661\u0667\u0660 \u0665\u0665\u0664\u0664\u0663\u0663\u0662\u0662",
]  # fmt: skip
"""One number."""


@pytest.mark.parametrize(
    ("phone", "written"),
    [
        *(
            (phone, "+44 161 496 0142, +44.161.496.0142, (+44) 161/4960142, 44161496\u20110142")
            for phone in (
                "+44 161 496 0142", "+44 (161) 496-0142", "+441614960142", "Tel. +44 161 496 0142",
                "+44 20 7946 0958 / +44 161 496 0142, +44 117 496 0100",
            )
        ),
        *(
            (phone, "; ".join(SPELLINGS))
            for phone in (*SPELLINGS, "030 555012 / 0170 55443322", "Tel. 0170 55443322")
        ),
        ("+1 (555) 555-0100", "555.555.0100 and 1-555-555-0100 and 001 555 5550100"),
        ("(555) 555-0100", "+1 555 555 0100 and 1 (555) 555-0100"),
        ("+7 916 555-01-23", "8 (916) 555-01-23"),
        ("8 (916) 555-01-23", "+7 916 5550123"),
        ("+36 30 555 0123", "06 30 555 0123"),
        ("+39 06 5550123", "06 5550123 and 0039 06 555 0123"),
        ("030 5550123\n0171 5550124", "+49 30 5550123 and 0049 171 5550124"),
        ("030 5550123 0171 5550124", "+49 30 5550123 and 0049 171 5550124"),
        ("555.0100/555.0101", "555 0100 and 5550101"),
        ("030 5550123 oder +49 171 5550124", "+49 (0)30 5550123 and 0171-5550124"),
        # In the digits, dashes and brackets of other scripts.
        ("090-1234-5678", "０９０－１２３４－５６７８、（０９０）１２３４・５６７８"),
        ("090-1234-5678", "090ー1234ー5678、090ｰ1234─5678、０９０〜１２３４〜５６７８"),
        ("０９０ー１２３４ー５６７８", "090-1234-5678 and +81 90 1234 5678"),
        ("+98 (0)912 345 6789", "۰۹۱۲ ۳۴۵ ۶۷۸۹ and ۰۹۱۲۳۴۵۶۷۸۹ and ۰۰۹۸۹۱۲۳۴۵۶۷۸۹"),
        ("۰۹۱۲ ۳۴۵ ۶۷۸۹", "0912 345 6789 and +98 912 345 6789"),
        ("020 7946 0123", "０２０ ７９４６ ０１２３ and 【020】7946﹣0123"),
        (
            "+44 (0)20 7946 0123",
            "٠٢٠ ٧٩٤٦ ٠١٢٣ and ०२०७९४६०१२३ and ＋４４（０）２０７９４６０１２３",
        ),
        ("٠٢٠ ٧٩٤٦ ٠١٢٣", "০২০ ৭৯৪৬ ০১২৩ and 𝟎𝟐𝟎 𝟕𝟗𝟒𝟔 𝟎𝟏𝟐𝟑 and ๐๒๐๗๙๔๖๐๑๒๓"),
    ],
)  # fmt: skip
def test_each_number_of_a_header_is_hidden_however_it_is_written_or_dialed(
    phone: str, written: str
) -> None:
    found = shown(f"Tel: {written}.", name="Ada Lovelace", phone=phone)
    assert not re.search(r"\d{2}", found.replace("7E2", ""))


@pytest.mark.parametrize(
    ("phone", "text"),
    [
        ("2014", "20/14"),
        ("+44 161 496 0142", "1441614960142 and 44161496014 and 0142"),
        ("+49 170 55443322", "from 2001 to 2014, 170 people, 55,443 EUR, No. 322, 49 of 55443322"),
        ("030 2014 / 0171 5550123", "2014, 30/2014, 20.14.2014 and 0171"),
        ("+298 201499", "201499 EUR in 2014"),
        ("090-1234-5678", "２０１４年〜２０１８年、１２３４人、5,678万円、٢٠١٤"),
        ("020 7946 0123", "㎡² ۲۰۱۴–۲۰۱۸ 7946 ٠١٢٣"),
        ("555-0100", "555 of 0100"),
    ],
)
def test_other_numbers_stay(phone: str, text: str) -> None:
    assert shown(text, name="Ada Lovelace", phone=phone) == text


def test_contacts_links_and_references_are_left_out() -> None:
    sections = {
        "findMeOnline": {"column": 0, "items": [{"title": "Site", "link": "https://ada.example"}]},
        "references": {"column": 0, "items": [{"name": "Bob", "contact": "bob@example.com"}]},
        "projects": {"column": 0, "items": [{"title": "Engine", "link": "https://ada.example"}]},
    }
    header = {"name": "Ada Lovelace", "email": "ada@example.com", "location": "Horsley Towers"}
    page = composed(a_document(header=header, sections=sections, title="Ada Lovelace, engineer"))
    assert page["header"]["contacts"] == []
    assert page["title"] == "Candidate 7E2, engineer"
    assert page["header"]["name"] == page["author"] == "Candidate 7E2"
    ((section,),) = page["columns"]
    assert (section["heading"], section["items"][0]["link"]) == ("Projects", None)
    assert "ada.example" not in str(page)


def test_the_file_is_not_named_after_the_person() -> None:
    shown = "AdaLovelaceResume.pdf"
    assert file_name(shown, ID, PageOptions()) == shown
    assert file_name(shown, ID, PageOptions(is_anonymous=True)) == "Candidate7E2Resume.pdf"


def test_links_of_sections_beyond_the_table_are_left_out() -> None:
    document = with_section("hobbies", {"link": "https://chess.example/u/c", "a": "Chess"})
    page = compose(document, ID, PageOptions(is_anonymous=True), admitting("hobbies"))
    assert page["columns"][0][0]["items"] == [{"text": "Chess"}]
