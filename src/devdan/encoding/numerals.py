"""Numbers as people write them: thousands, decimal commas, money, percentages, units, and suffixes such as k.

A text is one number, perhaps with a **mark**: the currency, the unit or the percent sign beside it. Units with a prefix
are converted to those without one, and times to seconds, so 500 g and 0.5 kg are the same. Percentages stay as they
are: 5 % is 5. Only one comma or point before three digits is ambiguous (``1,234``): the column decides what it is.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import NamedTuple

_LONGEST = 60  # characters
_PLAIN = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_DIGIT = re.compile(r"\d", re.ASCII)
_FORM = re.compile(
    r"(?P<sign>[-+])? ?(?P<before>[^\d .,()'+-][^\d,()'+-]{0,8}?)? ?(?P<inner>[-+])? ?"
    r"(?P<digits>\d[\d.,' ]*(?<! )|[.,]\d+)(?P<exponent>[eE][-+]?\d+)? ?(?P<after>[^\d ,()'+-][^()'+,]{0,20}|-)?",
    re.ASCII,
)
_FLAT = re.compile(r"(?<=\d)[.,] ?[-\u2013\u2014]+")  # 12.- and 12,-- are whole amounts
_SPACES = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-", "\u2019": "'"})
# How digits are grouped, and what the point and the comma in them mean.
_DIGITS = (
    ("", re.compile(r"\d+|[1-9]\d{0,2}(?:[ ']\d{3})+", re.ASCII)),
    ("?.", re.compile(r"[1-9]\d{0,2}\.\d{3}", re.ASCII)),  # ambiguous
    ("?,", re.compile(r"[1-9]\d{0,2},\d{3}", re.ASCII)),
    (".", re.compile(r"\d*\.\d+|\d+\.|[1-9]\d{0,2}(?:[ ']\d{3})+\.\d+", re.ASCII)),
    (".", re.compile(r"[1-9]\d{0,2}(?:,\d{3}){2,}|[1-9]\d?(?:,\d\d)+,\d{3}|[1-9]\d{0,2}(?:,\d{2,3})*,\d{3}\.\d+",
                     re.ASCII)),
    (",", re.compile(r"\d*,\d+|[1-9]\d{0,2}(?:[ ']\d{3})+,\d+", re.ASCII)),
    (",", re.compile(r"[1-9]\d{0,2}(?:\.\d{3}){2,}|[1-9]\d{0,2}(?:\.\d{3})+,\d+", re.ASCII)),
)  # fmt: skip

# --- Currencies --------------------------------------------------------------------------------------------------

_ISO_4217 = """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTC BTN BWP BYN BZD
    CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ
    GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD
    LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP
    PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND
    TOP TRY TTD TWD TZS UAH UGX USD USDT UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW
"""
_CODES = frozenset(_ISO_4217.split())
_USUAL = "AUD BRL CAD CHF CNY CZK DKK EUR GBP HKD HUF INR JPY KRW MXN NOK NZD PLN RUB SEK SGD USD ZAR"
_IN_ANY_CASE = frozenset(_USUAL.split())  # others may be words in lower case: all, top, try
_NAMES = {
    "$": "USD", "US$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₽": "RUB", "₩": "KRW", "A$": "AUD",
    "AU$": "AUD", "C$": "CAD", "CA$": "CAD", "HK$": "HKD", "NZ$": "NZD", "R$": "BRL", "S$": "SGD",
    "euro": "EUR", "euros": "EUR", "dollar": "USD", "dollars": "USD", "pound": "GBP", "pounds": "GBP", "yen": "JPY",
    "franc": "CHF", "francs": "CHF", "franken": "CHF", "fr": "CHF", "sfr": "CHF", "rupee": "INR", "rupees": "INR",
    "rs": "INR", "yuan": "CNY", "rmb": "CNY", "kč": "CZK", "zł": "PLN", "ft": "HUF", "kr": "kr", "lei": "RON",
    "real": "BRL", "reais": "BRL", "rubles": "RUB", "won": "KRW", "peso": "peso", "pesos": "peso",
}  # fmt: skip
CURRENCIES = frozenset((*_CODES, *_NAMES.values()))


def _currency(text: str) -> str:
    """The code of a currency that is written as a sign, a code or a word; nothing for anything else."""
    bare = text.removesuffix(".")
    if bare in _CODES or bare.upper() in _IN_ANY_CASE:
        return bare.upper()
    if found := _NAMES.get(bare.upper() if "$" in bare else bare.lower(), ""):
        return found
    return bare if len(bare) == 1 and unicodedata.category(bare) == "Sc" else ""


# --- Units and suffixes ------------------------------------------------------------------------------------------

_PREFIXES = {"": 1.0, "n": 1e-9, "µ": 1e-6, "u": 1e-6, "m": 1e-3, "c": 1e-2, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_WITH_PREFIX = {
    "m": "mcnkµu", "g": "mkµu", "s": "mnµu", "l": "mc", "L": "mc", "A": "mkµu", "V": "mkµuM", "W": "mkMG",
    "Wh": "mkMGT", "J": "mkMG", "Hz": "mkMGT", "Pa": "mkM", "N": "mkM", "F": "mnµu", "Ω": "mkM", "ohm": "mkM",
    "B": "kMGT", "bit": "kMGT", "eV": "mkMGT", "cal": "k", "bar": "mk", "VA": "kM",
}  # fmt: skip
_ALONE: dict[str, tuple[float, str]] = {
    "h": (3600.0, "s"), "hr": (3600.0, "s"), "hrs": (3600.0, "s"), "hour": (3600.0, "s"), "hours": (3600.0, "s"),
    "min": (60.0, "s"), "mins": (60.0, "s"), "minute": (60.0, "s"), "minutes": (60.0, "s"),
    "sec": (1.0, "s"), "secs": (1.0, "s"), "second": (1.0, "s"), "seconds": (1.0, "s"),
    "d": (86400.0, "s"), "day": (86400.0, "s"), "days": (86400.0, "s"),
    "week": (604800.0, "s"), "weeks": (604800.0, "s"),
    "month": (2629800.0, "s"), "months": (2629800.0, "s"),
    "year": (31557600.0, "s"), "years": (31557600.0, "s"), "yrs": (31557600.0, "s"), "yr": (31557600.0, "s"),
    "t": (1e6, "g"), "lb": (453.59237, "g"), "lbs": (453.59237, "g"), "oz": (28.349523125, "g"),
    "mile": (1609.344, "m"), "miles": (1609.344, "m"), "mi": (1609.344, "m"), "yd": (0.9144, "m"),
    "foot": (0.3048, "m"), "feet": (0.3048, "m"), "inch": (0.0254, "m"), "inches": (0.0254, "m"),
    "hPa": (100.0, "Pa"), "psi": (1.0, "psi"), "hl": (100.0, "l"), "gal": (1.0, "gal"),
    "km/h": (1 / 3.6, "m/s"), "kmh": (1 / 3.6, "m/s"), "kph": (1 / 3.6, "m/s"), "m/s": (1.0, "m/s"),
    "mph": (0.44704, "m/s"), "kn": (0.514444, "m/s"), "m²": (1.0, "m²"), "m2": (1.0, "m²"), "sqm": (1.0, "m²"),
    "qm": (1.0, "m²"), "km²": (1e6, "m²"), "km2": (1e6, "m²"), "ha": (1e4, "m²"), "sqft": (0.09290304, "m²"),
    "m³": (1.0, "m³"), "m3": (1.0, "m³"), "KB": (1e3, "B"), "KiB": (2.0**10, "B"), "MiB": (2.0**20, "B"),
    "GiB": (2.0**30, "B"), "TiB": (2.0**40, "B"), "bytes": (1.0, "B"), "mAh": (1.0, "mAh"), "Ah": (1e3, "mAh"),
    **{unit: (1.0, unit) for unit in ("°", "°C", "°F", "°K", "ppm", "ppb", "bpm", "rpm", "px", "pt", "dB", "mol", "PS",
                                      "hp", "cc", "ccm", "pH", "mmHg", "lux", "lm", "cd", "mg/dl", "mg/l", "g/l",
                                      "mmol/l", "km/l", "mpg", "l/100km", "kbps", "kg/m²", "bps", "fps", "dpi")},
    **{word: (1.0, "pcs") for word in ("pc", "pcs", "pieces", "items", "units", "x", "×")},
    "%": (1.0, "%"), "percent": (1.0, "%"), "pct": (1.0, "%"), "‰": (1.0, "‰"),
}  # fmt: skip
UNITS: dict[str, tuple[float, str]] = _ALONE | {
    prefix + unit: (_PREFIXES[prefix], unit) for unit, prefixes in _WITH_PREFIX.items() for prefix in ("", *prefixes)
}
UNITS |= {name: (factor / 1000, "kg") for name, (factor, unit) in UNITS.items() if unit == "g"}
_UNITS_IN_LOWER_CASE: dict[str, tuple[float, str]] = {name.lower(): found for name, found in reversed(UNITS.items())}
_TIMES = {
    "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "mn": 1e6, "mio": 1e6, "million": 1e6, "millions": 1e6,
    "bn": 1e9, "mrd": 1e9, "mia": 1e9, "billion": 1e9, "billions": 1e9, "tn": 1e12, "trillion": 1e12,
    "thousand": 1e3, "tsd": 1e3, "lakh": 1e5, "crore": 1e7,
}  # fmt: skip
_WITH_MONEY = {"m": 1e6, "b": 1e9, "mm": 1e6}  # what these are beside a currency: $5m is no length


def _marked(text: str, money: str) -> tuple[float, str] | None:
    """What stands behind a number, as a factor and a mark; ``money`` is the currency before it, if there is one."""
    if found := _currency(text):
        return (1.0, found) if money in ("", found) else None
    bare = text.removesuffix(".")
    times = _TIMES.get(bare) or _TIMES.get(bare.lower() if len(bare) > 1 else bare, 0.0)
    if money:
        times = times or _WITH_MONEY.get(bare.lower(), 0.0)
        return (times, money) if times else None
    if times:
        return times, ""
    if text == "B":
        return 1e9, ""  # 3.2B beside 500M; bytes have a prefix, or a blank before them
    found_unit = UNITS.get(text.strip()) or UNITS.get(bare.strip()) or _UNITS_IN_LOWER_CASE.get(bare.strip().lower())
    if found_unit:
        return found_unit
    if _DIGIT.search(bare):
        return None
    for place in range(1, min(len(bare), 9)):  # 5 Mio. €, 3k€
        factor = _marked(bare[:place].rstrip(" ."), "USD")
        if factor is not None and factor[0] != 1.0 and (found := _currency(text[place:].strip(" ."))):
            return factor[0], found
    return None


# --- Numbers -----------------------------------------------------------------------------------------------------


class Numeral(NamedTuple):
    """A number as it was written: its value, the mark beside it, and what tells ``.`` from ``,``.

    ``separator`` is the decimal one, as far as the text says it, ``?.`` or ``?,`` if it may be one of thousands
    instead, and empty if there is none.
    """

    value: float
    mark: str = ""
    separator: str = ""


def numeral(text: str, decimal: str = ".") -> Numeral | None:
    """The number that a text is, if it is one. ``decimal`` is the decimal separator where a text is ambiguous.

    A number too large for a float is none.

    >>> numeral("3,94"), numeral("(€ 1.234,50)").value, numeral("1,234").value, numeral("1,234", decimal=",").value
    (Numeral(value=3.94, mark='', separator=','), -1234.5, 1234.0, 1.234)
    >>> numeral("12 apples")
    """
    if len(text) > _LONGEST:
        return None
    if _PLAIN.fullmatch(text) and not (decimal == "," and _DIGITS[1][1].fullmatch(text.lstrip("+-"))):
        value = float(text)
        separator = "" if text.lstrip("+-").isdigit() else "?." if _DIGITS[1][1].fullmatch(text.lstrip("+-")) else "."
        return Numeral(value, "", separator) if math.isfinite(value) else None
    if not _DIGIT.search(text):
        return None
    written = _FLAT.sub("", text.translate(_SPACES)).strip()
    negative = written.endswith(")") and written.count("(") == written.count(")") == 1
    if negative:
        written = written[:-1].replace("(", "").strip()
        if "-" in written or "+" in written or text.index("(") > 4:
            return None
    match = _FORM.fullmatch(written)
    if match is None or (match["sign"] and match["inner"]):
        return None
    before, after = (match["before"] or "").strip(), (match["after"] or "").strip()
    trailing = after.endswith("-")
    if trailing and (match["sign"] or match["inner"] or negative):
        return None
    mark, factor = "", 1.0
    if before:
        mark = _currency(before)
        if not mark:
            return None
    if after := after.removesuffix("-").strip():
        is_apart = match["digits"] and written[: match.start("after")].endswith(" ")
        known = (1.0, "B") if after == "B" and is_apart and not mark else _marked(after, mark)
        if known is None or (mark and after in _NAMES):  # two signs, as in $5$
            return None
        factor, mark = known
    value, separator = _value(match["digits"], match["exponent"] or "", decimal)
    if math.isnan(value):
        return None
    minus = negative or trailing or "-" in (match["sign"], match["inner"])
    value = (-value if minus else value) * factor
    return Numeral(value, mark, separator) if math.isfinite(value) else None


def _value(digits: str, exponent: str, decimal: str) -> tuple[float, str]:
    """The value of digits with points and commas, and what these mean; NaN if they are grouped like no number."""
    for separator, form in _DIGITS:
        if form.fullmatch(digits):
            point = decimal if separator.startswith("?") else separator
            bare = re.sub(r"[ ']", "", digits)
            if point == ",":
                bare = bare.replace(".", "").replace(",", ".")
            return float(bare.replace(",", "") + exponent), separator
    return math.nan, ""
