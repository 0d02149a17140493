"""Places: three fields in a JSON Resume, one line in the analyzer format, and back.

A line is taken apart by position: `Paris, Île-de-France, FR` is city, region and country. Of two
words the second is the country when it can be nothing else. `CA` can: after a city it is taken for
California, so Canada is written out there.
"""

from collections.abc import Mapping
from typing import Final

from resumes.analyzer.kinds import MAX_TEXT_CHARS

SEPARATOR: Final = ", "

# ISO 3166-1 alpha-2.
# fmt: off
_COUNTRIES: Final = frozenset(
    {
        "AD", "AE", "AF", "AG", "AI", "AL", "AM", "AO", "AQ", "AR", "AS", "AT", "AU", "AW",
        "AX", "AZ", "BA", "BB", "BD", "BE", "BF", "BG", "BH", "BI", "BJ", "BL", "BM", "BN",
        "BO", "BQ", "BR", "BS", "BT", "BV", "BW", "BY", "BZ", "CA", "CC", "CD", "CF", "CG",
        "CH", "CI", "CK", "CL", "CM", "CN", "CO", "CR", "CU", "CV", "CW", "CX", "CY", "CZ",
        "DE", "DJ", "DK", "DM", "DO", "DZ", "EC", "EE", "EG", "EH", "ER", "ES", "ET", "FI",
        "FJ", "FK", "FM", "FO", "FR", "GA", "GB", "GD", "GE", "GF", "GG", "GH", "GI", "GL",
        "GM", "GN", "GP", "GQ", "GR", "GS", "GT", "GU", "GW", "GY", "HK", "HM", "HN", "HR",
        "HT", "HU", "ID", "IE", "IL", "IM", "IN", "IO", "IQ", "IR", "IS", "IT", "JE", "JM",
        "JO", "JP", "KE", "KG", "KH", "KI", "KM", "KN", "KP", "KR", "KW", "KY", "KZ", "LA",
        "LB", "LC", "LI", "LK", "LR", "LS", "LT", "LU", "LV", "LY", "MA", "MC", "MD", "ME",
        "MF", "MG", "MH", "MK", "ML", "MM", "MN", "MO", "MP", "MQ", "MR", "MS", "MT", "MU",
        "MV", "MW", "MX", "MY", "MZ", "NA", "NC", "NE", "NF", "NG", "NI", "NL", "NO", "NP",
        "NR", "NU", "NZ", "OM", "PA", "PE", "PF", "PG", "PH", "PK", "PL", "PM", "PN", "PR",
        "PS", "PT", "PW", "PY", "QA", "RE", "RO", "RS", "RU", "RW", "SA", "SB", "SC", "SD",
        "SE", "SG", "SH", "SI", "SJ", "SK", "SL", "SM", "SN", "SO", "SR", "SS", "ST", "SV",
        "SX", "SY", "SZ", "TC", "TD", "TF", "TG", "TH", "TJ", "TK", "TL", "TM", "TN", "TO",
        "TR", "TT", "TV", "TW", "TZ", "UA", "UG", "UM", "US", "UY", "UZ", "VA", "VC", "VE",
        "VG", "VI", "VN", "VU", "WF", "WS", "YE", "YT", "ZA", "ZM", "ZW",
    }
)
# fmt: on

# The countries whose code is that of a US state too.
_NAMES: Final = {
    "AL": "Albania",
    "AR": "Argentina",
    "AZ": "Azerbaijan",
    "CA": "Canada",
    "CO": "Colombia",
    "DE": "Germany",
    "GA": "Gabon",
    "ID": "Indonesia",
    "IL": "Israel",
    "IN": "India",
    "KY": "Cayman Islands",
    "LA": "Laos",
    "MA": "Morocco",
    "MD": "Moldova",
    "ME": "Montenegro",
    "MN": "Mongolia",
    "MO": "Macao",
    "MS": "Montserrat",
    "MT": "Malta",
    "NC": "New Caledonia",
    "NE": "Niger",
    "PA": "Panama",
    "SC": "Seychelles",
    "SD": "Sudan",
    "TN": "Tunisia",
    "VA": "Vatican City",
}
_CODES: Final = {name: code for code, name in _NAMES.items()}


def line_of(city: str | None, region: str | None, country: str | None) -> str:
    """The place on one line, empty when nothing of it is known."""
    if country and not region and country in _NAMES:
        if len(city or "") + len(SEPARATOR) + len(_NAMES[country]) > MAX_TEXT_CHARS:
            return SEPARATOR.join((city or "", "", country))
        country = _NAMES[country]
    return SEPARATOR.join(word for word in (city, region, country) if word)


def parse_line(line: str) -> Mapping[str, str]:
    """What of `city`, `region` and `countryCode` the line says; nothing between two separators
    stands for nothing."""
    words: list[str] = []
    is_third = False
    for position, word in enumerate(line.split(SEPARATOR)):
        if word and not word.isspace():
            words.append(word)
            is_third = position > 1
    country = _find_country(words[-1], is_third=is_third) if words else None
    if country is not None:
        words.pop()
    # Of a single word nobody can tell; a city it is.
    region = words.pop() if len(words) > 1 else ""
    place = {"city": SEPARATOR.join(words), "region": region, "countryCode": country or ""}
    return {name: word for name, word in place.items() if word}


def _find_country(word: str, *, is_third: bool) -> str | None:
    if word in _COUNTRIES and (is_third or word not in _NAMES):
        return word
    return _CODES.get(word)
