"""What a page says by itself, in the resume's language, and in colours that can be read."""

import re

import pytest

from resumes.rendering import compose
from resumes.rendering.page import CONTRAST, contrast, style_of
from resumes.rendering.words import RIGHT_TO_LEFT, WORDS, find_language
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


ENGLISH = [
    "Built a web shop | Led a team | Trained a colleague",
    "I code | I lead | I drive",
    "Built shop.example.com | Built mail.example.com | Maintained www.example.com",
    "e-commerce | e-mail marketing | e-learning | No. 1 in sales | No. 2 in region | No. 3",
    "I/O scheduling | Async I/O | A/B testing | Ran A/B tests | Class A license | V. Smith award",
    "Van driver | Delivery van | Van der Berg account | Worked with van de Velde on van Gogh",
    "El Paso, LA | San Jose, CA | De Anza College | Los Alamos | Des Moines, IA | Las Vegas",
    "Universidad de La Laguna | Colegio de los Santos | Escuela de Artes y Oficios",
    "Studied at Universidad de los Andes y de la Costa | Tutor at Colegio de las Artes, El Paso",
    "Universität der Künste | Technische Universität München | Hochschule für Musik",
    "Université de la Sorbonne | Lycée de la Mer | École des Ponts et des Chaussées",
    "Universidade de São Paulo | Instituto Superior Técnico da Universidade de Lisboa",
    "Led a team at Kis és társa Kht. | Built a shop for Kovács és Simon | Szabadság utca 49",
    "Project en route | De facto lead | Pro bono | Ad hoc analysis | Per diem nurse | Et al.",
    "Made crème brûlée | Baked soufflés | À la carte chef | Pâtisserie | Jalapeño sauce",
    "José Pérez García | María de los Ángeles Núñez | Łukasz Wiśniewski | Dvořák Jiří",
    "Die Hard | Der Spiegel | Das Auto | Le Monde | La Quinta | El Corte Inglés | Il Divo",
    "Mäkinen | Järvinen Oy | Lehtinen | Tuulia Sirviö | Säkylä | Yrjöntie 42",
    "Jag Motors | Han Solo LLC | Det Norske Veritas | Om Prakash | Nu shell | Vi editor | Sed",
    "Deutsch | Français | Español | Nederlands | Polski | Čeština | Italiano | Português",
    "LED A TEAM | BUILT A SHOP | SAN JOSE DE LA CRUZ, CA | I/O | A/B | CLASS A | EL PASO, LA",
    "Python | Kubernetes | NoSQL | Java | Node.js | C++ | Kaizen | Six Sigma",
    "日本語 in an English text about the history of the country",
    "Worked at Kunden und Partner AG, Jahre der Erfahrung GmbH | Managed Verpleegkundige Zorg BV",
    "Lima beans, tien tsin tea, Anni Dieci brand | Taught acht and dix in class | Acht Brasserie",
    "Engineer | Built tools at 東京 and Москва for teams of ten",
]
"""English, whatever names, places and terms there are in it."""

OTHERS = {
    "af": "Ontwikkeling van 'n webwinkel | Ek het by die skool gewerk en kinders onderrig",
    "az": "Onlayn mağazanın hazırlanması və komandaya rəhbərlik | Müştərilərlə iş üçün məsul",
    "be": "Распрацоўка праграмнага забеспячэння і праца з кліентамі банкаў у Мінску",
    "bg": "Учител | Работа с деца в училище и обучение на колеги, която е част от програма",
    "bn": "অনলাইন দোকান তৈরি | দলের নেতৃত্ব",
    "ca": "Infermera a la unitat de cures de l'hospital, atenció als pacients i a les famílies",
    "ckb": "گەشەپێدانی فرۆشگای ئۆنلاین و بەڕێوەبردنی تیم",
    "cy": "Datblygu siop ar-lein ac arwain tîm o bump o bobl | Gweithio gyda'r cwsmeriaid yn y siop",
    "et": "Veebipoe arendamine ja meeskonna juhtimine | Klientide teenindamine ning lao haldamine",
    "eu": "Lineako denda baten garapena eta bost laguneko taldearen zuzendaritza",
    "fa": "توسعه فروشگاه اینترنتی | مدیریت تیم پنج نفره | آموزش همکاران",
    "gl": "Desenvolvín unha tenda en liña | Dirixín un equipo na empresa | Xestión dos clientes",
    "hr": "Radila sam u školi i na fakultetu tijekom studija, što je bio voditelj tečaja djece",
    "hy": "Առցանց խանութի մշակում | Թիմի ղեկավարում",
    "id": "Bekerja di kantor pusat di Jakarta | Mengembangkan aplikasi untuk perusahaan, bisa memimpin tim",
    "is": "Þróun vefverslunar og umsjón með teymi | Ábyrgð á þjónustu við viðskiptavini",
    "ka": "ონლაინ მაღაზიის შექმნა | გუნდის ხელმძღვანელობა",
    "kk": "Бағдарламалық жасақтаманы әзірлеу және банк клиенттерімен жұмыс | Топты басқару",
    "lt": "Internetinės parduotuvės kūrimas ir komandos vadovavimas | Klientų aptarnavimas",
    "lv": "Interneta veikala izstrāde un komandas vadība | Klientu apkalpošana veikalā",
    "mk": "Работев во училиште и на факултет, водев проекти за деца во Скопје што ќе се изведат",
    "mr": "ऑनलाइन दुकान विकसित केले आणि संघाचे नेतृत्व केले | शाळेत मुलांना शिकवले",
    "ms": "Membangunkan kedai untuk syarikat | Mengetuai pasukan di Kuala Lumpur dengan lima orang",
    "sk": "Vývoj internetového obchodu | Vedenie tímu piatich ľudí | Práca so zákazníkmi",
    "sl": "Delala sem kot učiteljica na osnovni šoli in vodila tečaje za otroke v knjižnici",
    "sq": "Zhvillimi i një dyqani në internet | Drejtimi i një ekipi | Puna me klientët në dyqan",
    "sr": "Радио сам у школи и на факултету, водио пројекте за децу у Београду",
    "sw": "Nilifanya kazi katika shule ya msingi na kuongoza timu ya watu watano | Huduma kwa wateja",
    "ta": "இணைய கடை உருவாக்கம் | குழு தலைமை",
    "th": "พัฒนาระบบ example.com | ดูแลเซิร์ฟเวอร์ shop.example.com | ดูแล mail.example.com",
    "tl": "Nagtrabaho sa paaralan at namuno ng grupo ng limang tao | Nag-alaga ng mga pasyente",
    "ur": "آن لائن دکان بنائی | پانچ لوگوں کی ٹیم کی قیادت کی",
    "vi": "Phát triển cửa hàng trực tuyến | Lãnh đạo nhóm năm người | Đào tạo đồng nghiệp",
    "yi": "איך האב געארבעט אין א שולע און געפירט א גרופע פון קינדער",
}
"""Languages that a page has no words for."""


@pytest.mark.parametrize("language", [*SENTENCES, *OTHERS])
def test_a_language_is_known_and_what_a_page_says_is_in_it_or_in_english(language: str) -> None:
    bullets = (SENTENCES | OTHERS)[language].split(" | ")
    assert find_language(bullets) == language
    item = {"bullets": bullets, "dateRange": {"fromYear": 2018, "isOngoing": True}}
    page = compose(with_section("projects", item), "0" * 24)
    assert page["lang"] == language
    present = WORDS.get(language, WORDS["en"]).present
    assert page["columns"][0][0]["items"][0]["dates"] == f"2018 – {present}"
    assert (page["dir"] == "rtl") == (language in RIGHT_TO_LEFT)
    terms = ["Senior Software Engineer", "Google Cloud Platform", "Machine Learning", "Docker"]
    assert language not in SENTENCES or find_language([*terms, *bullets]) == language


def test_every_language_with_words_or_from_right_to_left_is_tried() -> None:
    assert SENTENCES.keys() == WORDS.keys()
    assert SENTENCES.keys() | OTHERS >= RIGHT_TO_LEFT - {"dv", "ps", "ug"}


@pytest.mark.parametrize("texts", ENGLISH)
def test_what_may_be_english_is_english(texts: str) -> None:
    assert find_language(texts.split(" | ")) == "en"


@pytest.mark.parametrize(
    ("texts", "language"),
    [
        ([], "en"),
        (["", "123", "!?"], "en"),
        (["Иван"], "en"),
        (["مهندس"], "ar"),
        (["مدير مبيعات"], "ar"),
        # Letters that Arabic does not have.
        (["پرستار بخش اورژانس بیمارستان"], "fa"),
        (["مدیر فروش"], "fa"),
        (["معلم ریاضی دبیرستان"], "fa"),
        (["گرافیست"], "fa"),
        (["پرستار بيمارستان كودكان"], "fa"),  # as an Arabic keyboard writes it
        (["مهندس في شركة چيبوتي للبناء مع فريق"], "ar"),
        # Where siblings tie, the commoner.
        (
            [
                "Saya seorang guru matematika dengan pengalaman delapan tahun di sekolah menengah. "
                "Saya suka mengajar dan ingin membantu siswa yang merasa sulit belajar."
            ],
            "id",
        ),
        (["Perawat dengan pengalaman lima tahun di rumah sakit, terampil dalam merawat"], "id"),
        (["Saya seorang guru dan boleh mengajar dengan baik kerana pengalaman di sekolah"], "ms"),
        (["Bila sam medicinska sestra na odjelu i radila sam s djecom koja su bolesna"], "hr"),
        (["Odgovoran za nabavu u hotelu, radila sam kao kuharica"], "hr"),
        (["Radila sam kao medicinska sestra tokom studija, odgovorna za decu"], "sr"),
        # Short, and yet known at once.
        (["Koch mit zehn Jahren Erfahrung. Menüplanung, Einkauf, Führung von acht Köchen."], "de"),
        (["Krankenschwester mit langjähriger Erfahrung in der Pflege"], "de"),
        (["Undersköterska med tio års erfarenhet av äldrevård"], "sv"),
        (["Lärare i svenska och engelska"], "sv"),
        (["Timmerman met tien jaar ervaring. Ik werk graag zelfstandig."], "nl"),
        (["Verpleegkundige met ervaring in de ouderenzorg"], "nl"),
        (["Sykepleier med ti års erfaring fra sykehus"], "no"),
        (["Sygeplejerske med ti års erfaring"], "da"),
        (["Cuisinier, dix ans d’expérience en restauration"], "fr"),
        (["Infermiera con dieci anni di esperienza"], "it"),
        (["Sairaanhoitaja, kymmenen vuoden kokemus"], "fi"),
        (["Разработка на софтуер и работа с клиенти на банки в София"], "en"),
        (["Ansvarlig for kundeservice og salg i butikken"], "en"),
        (["Python Kubernetes PostgreSQL", SENTENCES["ja"] * 2], "ja"),
        (
            [
                "负责游戏本地化，包括ポケモン，带领团队完成多个项目，提升用户体验和产品质量，管理预算"
            ],
            "zh",
        ),
        ([SENTENCES["de"], "Привет"], "de"),
        ([SENTENCES["de"].upper()], "de"),
        (["x" * 30_000, SENTENCES["ru"] * 100], "en"),
    ],
)
def test_a_language_is_that_of_most_of_the_text_and_english_in_doubt(
    texts: list[str], language: str
) -> None:
    assert find_language(texts) == language


def test_names_and_quotations_do_not_say_what_language_a_resume_is_in() -> None:
    job = {
        "position": "Tutor", "location": "Región de los Ríos, más al sur",
        "workplace": "Escuela de una Sociedad para los Años sin Hogar", "bullets": ["Taught"],
    }  # fmt: skip
    document = with_section("experiences", job)
    document["sections"]["quotes"] = {
        "column": 0, "items": [{"quote": SENTENCES["es"], "author": "Una amiga de la empresa"}],
    }  # fmt: skip
    assert compose(document, "0" * 24)["lang"] == "en"


def test_addresses_are_in_no_language() -> None:
    link = (
        "https://scholar.example.com/citations?view=article&for=the-history-of-schools-in-the-city"
    )
    page = compose(with_section("publications", {"title": SENTENCES["ar"], "link": link}), "0" * 24)
    assert (page["lang"], page["dir"]) == ("ar", "rtl")


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
