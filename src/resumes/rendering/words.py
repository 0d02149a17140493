"""Detect a resume's language, and provide the few words that a page adds in this language."""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final, NamedTuple


class Words(NamedTuple):
    """The word for an ongoing date, and the label before a grade."""

    present: str
    grade: str = "GPA"


WORDS: Final = {
    "en": Words("Present"),
    "ar": Words("حتى الآن", "المعدل"),
    "cs": Words("současnost", "Průměr"),
    "da": Words("nu", "Karakter"),
    "de": Words("heute", "Note"),
    "el": Words("σήμερα", "Βαθμός"),
    "es": Words("actualidad", "Nota media"),
    "fi": Words("nykyhetki", "Keskiarvo"),
    "fr": Words("aujourd’hui", "Moyenne"),
    "he": Words("היום", "ממוצע"),
    "hi": Words("वर्तमान", "GPA"),
    "hu": Words("jelenleg", "Átlag"),
    "it": Words("oggi", "Voto"),
    "ja": Words("現在"),
    "ko": Words("현재", "학점"),
    "nl": Words("heden", "Cijfer"),
    "no": Words("nå", "Karakter"),
    "pl": Words("obecnie", "Średnia"),
    "pt": Words("atual", "Média"),
    "ro": Words("prezent", "Medie"),
    "ru": Words("настоящее время", "Средний балл"),
    "sv": Words("nu", "Betyg"),
    "tr": Words("devam ediyor", "Not ortalaması"),
    "uk": Words("дотепер", "Середній бал"),
    "zh": Words("至今", "绩点"),
}

_SIBLINGS: Final = {"id": "ms", "hr": "sr"}
"""Pairs of languages that a short text cannot distinguish; WORDS contains only the first one."""

_BY_SCRIPT: Final = {
    "ARMENIAN": "hy", "BENGALI": "bn", "ETHIOPIC": "am", "GEORGIAN": "ka", "GREEK": "el",
    "GUJARATI": "gu", "GURMUKHI": "pa", "HANGUL": "ko", "HAN": "zh", "KANA": "ja", "KANNADA": "kn",
    "KHMER": "km", "LAO": "lo", "MALAYALAM": "ml", "MYANMAR": "my", "ORIYA": "or", "SINHALA": "si",
    "TAMIL": "ta", "TELUGU": "te", "THAANA": "dv", "THAI": "th",
}  # fmt: skip
"""The only or most common language of a script. Scripts are named as in Unicode's letter names."""

_DEFAULT_BY_SCRIPT: Final = {"ARABIC": "ar", "DEVANAGARI": "hi", "HEBREW": "he"}
"""The default language of a script if there are no clues; for other scripts, it is English."""

RIGHT_TO_LEFT: Final = frozenset({"ar", "ckb", "dv", "fa", "he", "ps", "ug", "ur", "yi"})
UNSPACED: Final = RIGHT_TO_LEFT | {*_BY_SCRIPT.values(), "hi", "mr", "ne"} - {"el", "hy", "ka"}
"""Languages whose text is set without letter spacing."""

_CLUES: Final = {
    "LATIN": """
en - of in to for is as on at by an be am was it so me his her he she have had i’m the and with
  from that this these their they who our my your its has been will can into through across within
  between during using which while when where there are were we how all new each not but or if led
  built managed developed designed worked created trained taught helped wrote made grew ran kept
  won company work years people customers students lead leading building managing working -ing
  -ship -ness -ly -sed -ted -ned -ked -led -red -ded -ged -ved -ped
af êëéôïûîá kan moet alle ander nuwe ons tussen gebruik het van vir met op aan by deur na uit ook
  as sy haar word is tot maar oor hierdie onder en die in ek nie was gewerk kinders skool mense
  jaar werk ervaring
az əçğıöşü və bir ilə üçün olaraq bu çox komanda komandaya layihə şirkət müştəri müştərilərlə
  satış iş təhsil bacarıqlar dillər məsul -lar -lər -nın -nin -ması -məsi
ca àçèéíïòóúü per una més com sobre des fins seus els amb dels al als pels va també nostre durant
  segons empresa equip desenvolupament gestió projectes responsable experiència formació educació
  habilitats idiomes treball vendes atenció el la les de del en que un -ció -cions
cs áčďéěíňóřšťúůýž jsou bude není aby jen jeho své více může tento další nové pomocí roku při nebo
  jsem jako pro byl byla jejich také která které který včetně pracoval pracovala práce zákazníky
  vedení týmu vývoj školení zkušenosti vzdělání dovednosti jazyky řízení mezi pod před však což na
  se ze ve do od po za -ování -ských -ního
cy âêîôûŵŷï yn ar ac wedi gyda gan oedd fel gweithio datblygu profiad addysg sgiliau ieithoedd tîm
  am bobl siop
da æøåé skal kan ved være ikke deres denne disse alle mellem både flere andre nye og af med til på
  som der jeg har blev eller hos mig efter samt fra også hvor arbejdede ansvarlig udvikling ledede
  erfaring erhvervserfaring uddannelse kompetencer sprog virksomhed kunder salg børn hun han det
  for et en den -hed -elser års år sygeplejerske
de äöüß ist haben werden wird kann alle andere neue ihre seine und der die das für mit von im zu
  zur zum den auf bei eine als einer eines einem des sowie aus nach über durch oder sich wir ich
  nicht auch sind wurde seit unter bis vom leitung entwicklung betreuung planung erstellung
  durchführung mitarbeiter kunden aufbau schulung verantwortlich verkauf berufserfahrung
  ausbildung kenntnisse fähigkeiten sprachen kollegen in an -ung -ungen -keit -schaft zwei drei
  fünf sechs sieben acht zehn langjährige langjähriger jahre jahren erfahrung sehr gerne arbeite
es áéíñóúü enfermera unidad educación conocimientos este esta son ser han cuando puede todos otros
  así dentro bajo nuevos mi para por una más como sobre desde hasta sus fue fui años entre también
  nuestro cada durante según empresa empresas equipo equipos desarrollo gestión proyectos clientes
  responsable experiencia formación habilidades idiomas trabajo ventas dirigí desarrollé trabajé
  el la los las de del en con al que se un lo su -ción -ciones -miento diez
et äöõüšž ja on ning et koos oli olen või ka vastutasin juhtimine arendamine meeskonna klientide
  teenindamine töökogemus haridus oskused keeled müük ettevõtte -mine -stes -ses -tud
eu ñ edo baino zure duen behar beste bere hau daiteke ditu dute gabe eta bat da dira ere zen izan
  baten arte egin zuzendaritza taldearen garapena lana eskola hezkuntza hizkuntzak arreta -aren
  -etan -ekin -ren
fi äöåšž tämä ovat voi kaikki muut uusi jälkeen sekä olla ja on että kanssa oli olen mukaan tai
  myös vastasin kehitin johdin työkokemus koulutus taidot kielet asiakaspalvelu myynti tiimiä
  yrityksen kehittäminen hoito työ -ssa -ssä -inen -iden -sta -stä -lla -llä -minen -tiin vuoden
  vuotta kymmenen kokemus
fr àâæçéèêëîïôœùûüÿ ces cet être peut tous autres aussi nouveaux mon ma leurs ont sans vers dans
  pour une sur avec aux par est ses chez plus mais sous comme lors afin ainsi sont leur cette
  entre pendant depuis été équipe équipes gestion développement projets clients entreprise
  responsable expérience compétences langues formation travail ventes de la le les des et en du au
  un que qui il elle -eur -euse -ement ans dix
fy âêôúûë it fan foar mei oan by troch nei ek as har wurde oant mar oer ûnder en de is minsken
  wurk ôfdieling yn op
ga áéíóú agus ar le na an sa ag den chun mar bhí raibh obair oideachas scileanna teangacha taithí
  foireann forbairt
gl áéíñóúü son ser pode todos outros así dentro novos meu miña foron para por unha máis como sobre
  desde ata seu seus sua súa os as dos das foi anos entre tamén durante segundo empresa equipo
  desenvolvemento xestión proxectos clientes responsable experiencia formación educación
  habilidades linguas traballo vendas da do na no en con ao aos que un unhas non polo pola nun
  nunha cunha xa moi despois onde este ás -ción -cións
hr čćđšž nije mora može sve samo više datum korisnika unesite poslova znanja djelatnik tvrtke
  tisuću rujna ožujka na se za od po kao ili je bila bio bili sam koji koja koje te iz uz između
  tijekom vođenje rad razvoj tvrtka tvrtki kupcima klijentima djecu iskustvo obrazovanje vještine
  jezici školi tima tečaj su što gdje tko uvjeti prema dio suradnja sveučilište voditelj izrada odgovoran
  odgovorna radila radili
hu áéíóöőúüű ez ezt lehet kell minden más új után több majd az egy és hogy valamint által vagy
  mint szerint volt voltam nem is de meg csapat vezetése vezetője fejlesztése fejlesztés ügyfelek
  munka tanulmányok tapasztalat szakmai végzettség nyelvek készségek cég kezelése képzése raktár
  -ása -ése -ság -ség -nak -nek -ban -ben
id - yang dan untuk dengan dari pada dalam sebagai oleh adalah tim perusahaan bekerja
  mengembangkan memimpin mengelola pelanggan karena bahwa mengajar pengalaman pendidikan keahlian
  bahasa kerja magang proyek di ke orang kantor sekolah bisa saya seorang ingin membantu tahun
  lima
is áðéíóúýþæö og að í á við með sem til var er ég eða hjá um frá ekki fyrir ábyrgð starfaði þróun
  þjónustu menntun starfsreynsla tungumál -inu -inni -anna
it àèéìòùî questo questa essere stato stata può tutti altri così dentro nuovi mio mia loro che
  della delle degli dei nel nella nelle alla alle sono gli dal dalla sul anche una presso come tra
  fra durante più ho sviluppo gestione progetti clienti azienda responsabile esperienza esperienze
  formazione istruzione competenze lingue lavoro vendite gruppo persone di la il per con del in un
  da al le si -zione -zioni -mento -ità anni dieci
lb äéëüöè an vun fir mat ech hunn eng dem där och awer bei op sinn gemaach geschafft schoul
  aarbecht
lt ąčęėįšųūž ir su iš apie kaip yra buvo ar prie taip pat vadovavimas komandos kūrimas klientų
  aptarnavimas darbo patirtis išsilavinimas įgūdžiai kalbos įmonės -imas -imo
lv āčēģīķļņšūž un ar no uz par kā ir bija vai pie arī vadība komandas izstrāde klientu apkalpošana
  darba pieredze izglītība prasmes valodas uzņēmuma -šana -šanas
ms - yang dan untuk dengan dari pada dalam sebagai oleh ialah pasukan syarikat bekerja
  membangunkan mengetuai mengurus pelanggan kerana bahawa mengajar pengalaman pendidikan kemahiran
  bahasa kerja latihan projek di ke orang pejabat sekolah boleh saya seorang ingin membantu tahun
  lima
nl éëïóöüè dit deze kan moet alle andere nieuwe ons onze binnen tussen tijdens heeft ben het een
  van voor met op aan bij te door naar uit ook als zijn haar hebben wordt werden tot maar over
  onder en de in is of was werkervaring opleiding opleidingen vaardigheden talen afdeling klanten
  medewerkers verantwoordelijk ontwikkeling beheer vijf mensen -heid -elijk -elijke -ingen jaar
  ervaring ik werk graag zelfstandig tien zes zeven acht verpleegkundige rijbewijs
no æøåéòôó skal kan være ikke deres denne disse alle mellom både flere andre nye og av med til på
  som ved jeg har ble eller hos meg etter samt fra også hvor jobbet jobber ansvarlig utvikling
  ledet erfaring arbeidserfaring utdanning utdannelse kompetanse ferdigheter språk bedrift kunder
  salg barn hun han det for et en den -het -elser års år sykepleier liker
pl ąćęłńóśźż są być tylko jego jej swoje może ten tego dla nowe innych roku także na do oraz się
  przy od ze po jako lub jest był była były przez które który pod nad między zespołem zespołu
  kierowanie prowadzenie obsługa klientów firmie projektów doświadczenie wykształcenie
  umiejętności języki szkolenie pracowników sprzedaż praca -anie -enie -ości -ów doświadczeniem
pt áâãàçéêíóôõúü este esta são ser pode todos outros assim dentro novos não meu minha em foram
  para por uma mais como sobre desde até seus suas foi anos entre também nosso durante segundo
  pelo pela aos nos empresa empresas equipe equipa desenvolvimento gestão projetos clientes
  responsável experiência formação educação habilidades idiomas trabalho vendas atendimento de da
  do dos das com na no ao que um os as se -ção -ções -mento
ro ăâîșțşţ acest această fi poate toate alte noi fără către și şi pentru cu din pe ale un care
  este sunt prin după până între au fost am lucrat dezvoltat condus echipă echipe echipa proiecte
  clienți companie experiență educație competențe limbi vânzări de la în sau mai o -ilor -ului
sk áäčďéíĺľňóôŕšťúýž sú bude nie aby len jeho svoje viac môže tento ďalšie nové pomocou roku pri
  alebo som ako pre bol bola ich tiež ktorá ktoré ktorý vrátane pracoval pracovala práca prácu
  zákazníkmi vedenie tímu vývoj školenia skúsenosti vzdelanie zručnosti jazyky riadenie medzi pred
  však čo na sa zo vo do od po za viedla viedol -ovanie -ských -ného
sl čšž mora lahko ni več kjer tudi vse samo manj ima na se za od po kot ali je bila bil bili sem
  ki ter iz med pri vodenje delo razvoj podjetje podjetju strankami strank otroke izkušnje
  izobrazba znanja jeziki šoli ekipe tečaje so kaj pa da
sq çë dhe të në për me një nga që është ose si prej ekipi ekipit puna punës klientët drejtimi
  zhvillimi përvoja arsimi aftësi gjuhët
sr čćđšž nije mora može sve samo više na se za od po kao ili je bila bio bili sam koji koja koje
  iz uz između tokom vođenje rad razvoj kompanija kompaniji preduzeće kupcima klijentima decu
  iskustvo obrazovanje veštine jezici školi tima kurs su šta gde ko uslovi prema deo saradnja
  univerzitet sa da odgovoran odgovorna radila radili
sv åäöé ska kan vara inte deras denna dessa alla mellan både flera andra nya och av med till på
  som vid jag har blev eller hos mig efter samt från även arbetade arbetat ansvarig utveckling
  ledde erfarenhet arbetslivserfarenhet utbildning färdigheter kunskaper språk företag kunder
  försäljning barn hon han det för att ett en den är om års år tio åtta svenska engelska
  kundtjänst butik
sw - na ya wa kwa katika ni za la cha kama kuwa hii timu kazi wateja shule elimu uzoefu lugha
  huduma ujuzi watu
tl - ng mga ang sa at ay na para ko kung niya ito nag limang tao paaralan ospital karanasan
  edukasyon
tr çğıöşüâîû gibi daha sonra kadar tüm yeni ve veya olan diğer yıl bir ile için olarak da bu çok
  ekip ekibi proje projeler şirket müşteri satış yönetimi yönettim geliştirdim sorumlu deneyim iş
  eğitim beceriler diller -lar -ler -ları -leri -mak -mek -dım -tim -dim -nın -nin
vi àáâãèéêìíòóôõùúýăđĩũơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ và của các cho với trong
  được là những một người nhóm phát triển quản lý khách hàng kinh nghiệm công ty dự án học
""",
    "CYRILLIC": """
sr абвгдђежзијклљмнњопрстћуфхцчџш и у на се за од по као или је сам су био била није овај ова све
  мора може када ако нема који која са из не тим деца децу школи развој рад искуство образовање
  вештине језици компанија ће бити ово
ru абвгдежзийклмнопрстуфхцчшщъыьэюяё и в на с по для из к за при как от или что был была не у о
  компании работа работал работала опыт образование навыки языки клиентами разработка -ый -ий -ой
  -ого -его -ому -ых -их -ами -ями -ать -ить -ять -еть -ться -ция -ции -ую -ал -ил -ость -ение
  -ения -ов
uk абвгґдеєжзиіїйклмнопрстуфхцчшщьюя і та в у на з до для від за що як із або був була не компанії
  робота працював працювала досвід освіта навички мови клієнтами розробка й -ий -ій -ого -ому -их
  -ами -ями -ати -ити -ція -ції -ував -ість -ення -ання -ів
be абвгдеёжзійклмнопрстуўфхцчшыьэюя і ў у на з да для ад за што як або быў была не кампаніі праца
  працаваў досвед адукацыя навыкі мовы кліентамі распрацоўка -ага -аму -ых -амі -ць -цца
bg абвгдежзийклмнопрстуфхцчшщъьюя беше работи водене обучение могат може трябва и на в за с от по
  със във като при да се са е или който която към не екип клиенти опит образование умения езици
  управление разработка разработване софтуер деца училище компания -то -та -те -ът -ят -ите -ата
  -ане -ене -ния -ски
mk абвгдѓежзѕијклљмнњопрстќуфхцчџш има било или ова овој сите мора и на во се за од по како сум
  беше кој која со да не ги што ќе е може тим деца училиште развој работа искуство образование
  вештини јазици компанија -от -та -то -ите -ње
kk аәбвгғдеёжзийкқлмнңоөпрстуұүфхһцчшщъыіьэюя және мен бен үшін бар бойынша жұмыс топты білім
  тәжірибе -дар -дер -лар -лер -ның -нің
ky абвгдеёжзийклмнңоөпрстуүфхцчшщъыьэюя жана менен бар боюнча үчүн иш эмес болгон -дар -дер -лар
  -лер -дын -нын -нун -луу
tg абвгғдеёжзийӣкқлмнопрстуӯфхҳчҷшъэюя ва дар бо аз барои ки ин аст шуд -ҳо -ҳои
tt абвгдеёжзийклмнопрстуфхцчшщъыьэюяәҗңөүһ һәм белән өчен буенча эш бу -лар -ләр -ның -нең
mn абвгдеёжзийклмноөпрстуүфхцчшщъыьэюя ба нь бөгөөд дээр ажил ажилласан хөгжүүлж сургууль -сан
  -сэн -ийн -ын
""",
    "ARABIC": """
fa ابپتثجچحخدذرزژسشصضطظعغفقکگلمنوهیءآئؤأيك و در از به با که این را برای است شد خود هر یک می شما ها
  های شرکت مهارت زبان تجربه تیم
ur ابپتٹثجچحخدڈذرڑزژسشصضطظعغفقکگلمنںوہھءیےآئؤۂأ اور کی کے کا میں ہے ہیں سے کو نے پر کیا تجربہ
  تعلیم مہارت زبان
ckb ئابپتجچحخدرڕزژسشعغفڤقکگلڵمنوۆهەیێ و لە بۆ بە کە ئەم
ps اآبپتټثجځچڅحخدډذرړزژږسشښصضطظعغفقکګلمنڼوهۀيیېۍئء په د او کې چې له
ug ئاەبپتجچخدرزژسشغفقكگڭلمنھوۇۆۈۋېىي ۋە بىلەن ئۈچۈن
ar ابتثجحخدذرزسشصضطظعغفقكلمنهويةىءأإؤئآ في من على إلى عن مع التي الذي هذا هذه أو كما عمل العمل
  خبرة تعليم مهارات لغات
""",
    "HEBREW": """
he אבגדהוזחטיךכלםמןנסעףפץצקרשת של את על עם לא או כל גם אני
yi אבגדהוזחטיךכלםמןנסעףפץצקרשתאַאָײַוּפּפֿבֿשׂתּכּיִװױײ און איז פון מיט איך האב פאר אויף געארבעט
""",
    "DEVANAGARI": """
hi - का की के में और है हैं ने से को पर किया कार्य एक टीम
mr - -च्या -ाचे -ाची -ाचा -ून -ण्यात -ामध्ये -ांना आणि आहे मध्ये केले केली च्या साठी होते व तसेच
  ते
ne - -को -लाई -हरू -मा -ले -बाट -एको र छ मा लाई गरेको भएको तथा हुन् गर्ने छन्
""",
}
"""A row per language for each script; in a tie, the first row wins. A row contains the language's
letters (in Latin, only the letters beyond a to z; `-` if they prove nothing), words that are common
in its resumes, and endings. Words of one Latin letter occur in many languages and prove nothing."""

_BORROWED: Final = """
aan ag al ale ali am an ang ar arte as at au av az bat be bil bio bir bu by care clients com comme
como con cu da dal dan dari de del den der des di die do door dos du el en eng entre er ere est et
fan fir for formation gan had han have he her hii his ho hun il in ir is it izan ja je ka kaip ke
ki ko kot kurs la lana las le les lo los ma mai mais mar me med met mi na nei ng nga ni no od of
om on op orang os ose over pa par para pat pe per plus po por pro que qui rad sa sam se segundo
ses she si so sobre son sous su sul sur tai tao te tim to tot um un uz van var volt von wa was ya
za ze zen és
"""
"""Words that also occur in English texts, mostly in names and phrases (`El Paso, LA`, `de facto`).
They distinguish other languages from one another, but not from English."""

MIN_KNOWN: Final = 2
"""The number of different words, except borrowed ones, that prove that a text is not in English."""
MIN_SCORE: Final = 5
MIN_SCORE_PER_WORD: Final = 0.2
MARGIN_OVER_ENGLISH: Final = 1.5
"""The minimum ratio to the score of English for another language in Latin letters, since many
English resumes contain foreign names and places."""
MARGIN: Final = 1.15
"""The minimum ratio to the second-best score for a language that is not in WORDS."""

MAX_CHARS: Final = 20_000
"""The number of characters that are examined; more would not change the result."""

_ADDRESS: Final = re.compile(r"@|://|\w\.\w")
_WORD: Final = re.compile(
    r"[A-Za-z\u00aa-\u1fff\u2c00-\u2fef\u3005-\u3007\u3040-\ud7ff\uf900-\uffef]+(?:[-/&+]\w+)*"
)
"""A word, including marks and hyphens: `e-mail`, `en-suite`."""

_FOREIGN: Final = re.compile(r"[^\x00-\x7f]+")


class _Clues(NamedTuple):
    letters: dict[str, frozenset[str]]
    words: dict[str, set[str]]
    endings: dict[str, set[str]]
    tails: set[str]
    """The last two letters of each ending."""


@cache
def _clues(script: str) -> _Clues:
    found = _Clues({}, defaultdict(set), defaultdict(set), set())
    for row in re.split(r"\n(?=\S)", _CLUES[script].strip()):
        language, letters, *words = row.split()
        found.letters[language] = frozenset(letters)
        for word in words:
            if word[0] == "-":
                found.endings[word[1:]].add(language)
                found.tails.add(word[-2:])
            else:
                found.words[word].add(language)
    return found


_borrowed: Final = frozenset(_BORROWED.split())


def find_language(texts: Iterable[str]) -> str:
    """Return the language of most of the texts as an ISO 639 code. If in doubt, return `en`."""
    whole = unicodedata.normalize("NFC", "\n".join(texts)[:MAX_CHARS])
    lines = [
        _WORD.findall(" ".join(text for text in line.split() if not _ADDRESS.search(text)))
        for line in whole.split("\n")
    ]
    said = Counter(word for line in lines for word in _iter_said(line))
    latin = sum(len(word) * count for word, count in said.items() if word.isascii())
    named = sum(len(word) for line in lines for word in line if word.isascii())
    script = _find_script(whole, max(latin, named // 4))
    if script in _BY_SCRIPT:
        return _BY_SCRIPT[script]
    if script != "LATIN":
        said = Counter(word.lower() for line in lines for word in line if not word.isascii())
    return _find_by_words(script, said)


def _iter_said(line: Sequence[str]) -> Iterator[str]:
    """Yield the words of a line in lower case, except words that may be names."""
    is_loud = len(line) > 4 and all(map(str.isupper, line))
    for at, word in enumerate(line):
        if word.islower():
            yield word
        elif is_loud or (len(word) > 3 and word.isupper()):
            yield word.lower()
        elif at == 0 and word[1:].islower():
            small = word.lower()
            if line[1].islower() if len(line) > 1 else small in _clues("LATIN").words:
                yield small


def _find_script(text: str, latin: int) -> str:
    """Return the script of a text. `latin` is the number of Latin letters to count."""
    found = Counter({"LATIN": latin})
    for char, count in Counter("".join(_FOREIGN.findall(text))).items():
        script = unicodedata.name(char, "").partition(" ")[0] if char.isalpha() else ""
        if script in ("HIRAGANA", "KATAKANA"):
            found["KANA"] += count
        if script in ("HIRAGANA", "KATAKANA", "CJK"):
            found["HAN"] += 3 * count  # a text needs fewer of these characters
        elif script == "HANGUL":
            found[script] += 2 * count
        elif script in _CLUES or script in _BY_SCRIPT:
            found[script] += count
    kana = found.pop("KANA", 0)
    [(script, count)] = found.most_common(1)
    # A few kana do not make a text Japanese: a Chinese text may name a Japanese product.
    return "KANA" if script == "HAN" and 24 * kana > count else script


def _find_by_words(script: str, said: Mapping[str, int]) -> str:
    """Return the language, among those of the script, that most of the words indicate."""
    clues = _clues(script)
    scores, known = Counter[str](), Counter[str]()
    total = 0
    for word, count in said.items():
        if len(word) == 1 and word.isascii():
            continue
        total += count
        languages = clues.words.get(word, set())
        if not languages and word[-2:] in clues.tails:
            endings = (word[at:] for at in range(3, len(word) - 1))
            languages = set().union(*(clues.endings.get(tail, ()) for tail in endings))
        is_borrowed = word in _borrowed
        for language in languages:
            scores[language] += count if is_borrowed else 2 * count
            known[language] += not is_borrowed
        if not word.isascii():
            letters = {char for char in word if not char.isascii()}
            for language, own in clues.letters.items():
                if language != "en":  # English borrows words such as `café`
                    scores[language] += count if letters <= own else -2 * count
    english = scores.pop("en", 0)
    default = _DEFAULT_BY_SCRIPT.get(script, "en")
    best = max(clues.letters, key=lambda language: scores[language])
    score = scores.pop(best, 0)
    if script == "ARABIC" and not clues.letters[default].issuperset("".join(said)):
        return best
    next_score = max((scores[each] for each in scores if each != _SIBLINGS.get(best)), default=0)
    if score <= next_score or (score <= 0 and default == "en"):
        return default
    if default == "en" and best not in WORDS and score < MARGIN * next_score:
        return default
    is_english = known[best] < MIN_KNOWN or score < max(
        MIN_SCORE, MIN_SCORE_PER_WORD * total, MARGIN_OVER_ENGLISH * english
    )
    return default if script == "LATIN" and is_english else best
