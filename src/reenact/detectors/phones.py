"""Telephone numbers: international, national as people of many countries write them, and any after a word for one.

A national number is told by its spelling: groups of digits as they are customary, which is why the formats are a table.
A run of digits without a separator is a telephone number only where a word says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from reenact.contracts.detector import Detector

_NATIONAL_FORMATS = (
    # North America; N stands for 2-9
    "(Z##) ###-####|(Z##)###-####|(N##) N## ####|(N##) N##.####|Z##-###-####|Z##.###.####|N## N## ####|N## N##-####|"
    "N##/N##-####|"
    # with the trunk prefix 0: Z stands for 1-9
    "0Z ## ## ## ##|0Z #### ####|0Z ### ####|0Z ### ## ##|0Z #######|0Z ########|0Z-### ## ##|0Z-### ### ##|"
    "(0Z) #### ####|(0Z) ### ####|(0Z) ########|0Z/### ## ##|0Z-######|0Z-### ###|0Z-####|"
    "0Z# ### ####|0Z# ### ## ##|0Z# #### ####|0Z# ########|0Z# #######|0Z# ######|0Z# ### ###|0Z#-### ## ##"
    "|0Z#-## ## ##|"
    "0Z#/########|0Z#/#######|0Z#/######|0Z#/### ## ##|0Z# / #######|0Z# / ########|0Z# ## ## ## ##|0Z# ## ## ##|"
    "(0Z#) ### ####|(0Z#) ### ## ##|(0Z#) ###-##-##|(0Z#) #### ####|(0Z#) #######|(0Z#) ########|(0Z#) ######|"
    "0Z# ###-##-##|0Z# ### ## ##|0Z# #### ###|0Z#-### ####|"
    "0Z## ### ####|0Z## ### ## ##|0Z## ### ###|0Z## ## ## ##|0Z##-#### ####|0Z## #### ###|0Z## ######|0Z## #######|"
    "0Z## ########|0Z##/######|0Z##/#######|0Z##/########|0Z##/## ## ##|0Z## / #######|0Z## / ########|0Z##"
    " ## ## ## ##|"
    "0Z##-## ## ##|0Z##-### ###|(0Z##) ######|(0Z##) #######|(0Z##) ### ####|(0Z##) ### ## ##|(0Z##) ## ## ##|"
    "0Z### ######|0Z### #####|0Z### ### ###|0Z### ## ## ##|0Z###/######|0Z###/#####|0Z### / ######|(0Z###) ######|"
    "(0Z###) #####|(0Z###) ## ## ##|"
    "(0Z##)#######|(0Z##)######|(0Z#)########|0Z-## ## ##|0Z##-### ##|Z# ### ## ##|Z# ####-####|"
    # without one: H stands for 5-9, M for 3-9, I for 6-9
    "H## ### ###|H## ## ## ##|3## #######|3## ### ####|I#### #####|(##) 9####-####|(##) ####-####|## 9####-####|"
    "Z# #### ####|1M# #### ####|8 (###) ###-##-##|8 ### ###-##-##|8 ### ### ## ##|1300 ### ###|1800 ### ###"
)
"""How people write national numbers, parted by `|`."""
_SIGNS = {"#": "[0-9]", "N": "[2-9]", "Z": "[1-9]", "H": "[5-9]", "M": "[3-9]", "I": "[6-9]"}


def _spellings() -> Iterator[str]:
    """Give each format as it stands, and with hyphens or dots for its spaces."""
    for spelled in dict.fromkeys(_NATIONAL_FORMATS.split("|")):
        yield spelled
        if " " in spelled and " / " not in spelled and "-" not in spelled:
            head, closed, tail = spelled.rpartition(") ")
            if tail.count(" ") >= 1 or (not closed and len(tail) >= 10):
                yield head + closed + tail.replace(" ", "-")
            if not closed and tail.count(" ") >= 3:
                yield tail.replace(" ", ".")


def _pattern(spelled: Iterable[str]) -> str:
    return "|".join("".join(_SIGNS.get(c) or re.escape(c) for c in each) for each in spelled)


def _shape(spelled: str) -> str:
    return "".join("0" if c in _SIGNS or c.isdigit() else c for c in spelled)


_FORMATS = sorted(set(_spellings()), key=lambda spelled: (-len(spelled), spelled))
_FIRM = [spelled for spelled in _FORMATS if spelled[0] in "(N8" and ("-" in spelled or "(" in spelled)]
_WEAK = [spelled for spelled in _FORMATS if spelled not in _FIRM]
_EXTENSION = r"(?:[ ,]{0,2}(?:x|[Ee]xt\.?|[Ee]xtension|[Dd]w\.?|poste)[ ]?[0-9]{1,6})?"
_DATE = (
    r"(?![0-9]{1,2}[ ./\-][0-9]{1,2}[ ./\-](?:19|20)[0-9]{2})(?!(?:19|20)[0-9]{2}[ ./\-][0-9]{2}["
    r" ./\-][0-9]{2}(?![0-9]))"
)
_STARTS = r"(?<![A-Za-z0-9_.+\-/#$%@])(?<![0-9A-Fa-f]{2}:)"
_STOPS = r"(?![A-Za-z0-9_]|[\-/][0-9A-Za-z]|\.[0-9])"
_ALONE = r"(?<![0-9A-F]{2}[ :\-])(?<! [0-9][0-9a-f] )(?<! [a-f][0-9] )"
_NOT_ON = r"(?![ :][0-9A-F]{2})"
"""Groups of digits that are a number only where no more of them follow, as they do in a table and in a dump."""

_LENGTHS = {
    # digits after the country's code: codes
    (10, 10): "1|7|91|52|90|30|63|92|98|58",
    (
        9,
        9,
    ): "33|34|31|41|48|61|27|351|380|420|421|40|254|255|256|94|212|213|216|56|51|593|966|998|996|995|992|994"
    "|593|233|237|251|260|263",
    (
        8,
        8,
    ): "45|47|65|852|853|386|387|372|371|370|373|356|357|503|502|504|505|506|507|216|974|965|968|973|961|976"
    "|855|225|221",
    (10, 11): "55|54|86|39|39",
    (9, 10): "44|81|82|20|84|62|60|234|880",
    (8, 9): "32|46|64|66|36|359|385|971|972|886|353|358|381|389|382|375|374|977|95|962|963|964|967",
    (7, 12): "49|43|57|352|354|423|62|39|886|298|350|376|377|378|355|960|673|679|680|685|299",
}
_BETWEEN = r"[ .\-/()]{0,3}"
_CODES = ("0000", "00000", "00 00", "000 00")
"""Shapes of what is dialled to leave a country, and of the code of another."""
_BEGUN = (
    r"(?=(?:[0-9]{4,5}|[0-9]{2,3} [0-9]{2})(?: ?\(|[ ./])[0-9]|(?:[0-9]{5}|[0-9]{2,3} [0-9]{2})-[0-9]"
    r"|[0-9]{12}|[0-9]{3}-[0-9]{3}-[0-9]{3}-[0-9]{4}|[0-9]{4}-[0-9]{4})"
)
"""Where `_CODES` end, and what may follow."""


def _international(first: str = "[0-9]") -> str:
    branches = [
        rf"(?:{codes})(?:[ .\-]?\(0\))?{_BETWEEN}{first}(?:{_BETWEEN}[0-9]){{{least - 1},{most - 1}}}"
        for (least, most), codes in _LENGTHS.items()
    ]
    return "|".join(branches)


def _is_number(value: str) -> bool:
    """Tell a telephone number from a date, a number with a point, and from zeros."""
    digits = [c for c in value if c.isdigit()]
    if "".join(digits) in "01234567890" or "".join(digits) in "09876543210":
        return False
    dated = re.fullmatch(
        r"(?:19|20)[0-9]{2}[ ./\-]?[0-9]{1,2}[ ./\-]?[0-9]{1,2}(?:[ T].{0,9})?|[0-9]{1,2}[./][0-9]{1"
        r",2}[./][0-9]{4}.{0,9}",
        value,
    )
    return (
        7 <= len(digits) <= 17
        and len(set(digits)) > 2
        and not dated
        and not re.fullmatch(r"\+? ?[0-9]+\.[0-9]+", value)
    )


_WORDS = (
    "phone",
    "telephone",
    "tel:",
    "tel.",
    "tel ",
    "tel=",
    'tel"',
    "telefon",
    "telefono",
    "mobile",
    "mobil",
    "cellphone",
    "cell:",
    "cell ",
    "cell phone",
    "fax",
    "whatsapp",
    "sms",
    "handy",
    "gsm",
    "celular",
    "portable",
    "call me",
    "call us",
    "call him",
    "call her",
    "call them",
    "reach me",
    "reach us",
    "hotline",
    "helpline",
    "contact number",
    "dial ",
    "msisdn",
    "viber",
    "text me",
    "ring me",
    "landline",
)

DETECTORS: tuple[Detector, ...] = (
    Detector(
        name="phone",
        group="personal",
        run="shapes",
        anchors=("+0", "+(0", "+ 0", "+ (0"),
        pattern=rf"(?<![A-Za-z0-9_+])\+ ?\(?(?:{_international()})(?![0-9]){_EXTENSION}",
        after=80,
        check=_is_number,
        order=70,
    ),
    Detector(
        name="phone",
        group="personal",
        run="shapes",
        anchors=(
            *(f"{code}{between}0" for code in _CODES for between in (" ", ".", "/", "(", " (")),
            *(f"{code}-0" for code in _CODES[1:]),
            *("000000000000", "000-000-000-0000", "0000-0000"),
        ),
        pattern=(
            rf"(?<![A-Za-z0-9_.\-]){_ALONE}{_BEGUN}(?:00|011 )[ ]?(?:{_international('[1-9]')})(?![0-9]){_EXTENSION}"
        ),
        after=80,
        check=_is_number,
        order=71,
    ),
    Detector(
        name="phone",
        group="personal",
        run="shapes",
        anchors=tuple(dict.fromkeys(map(_shape, _FIRM))),
        pattern=rf"{_STARTS}(?:1[ .\-])?{_DATE}(?:{_pattern(_FIRM)}){_EXTENSION}{_STOPS}",
        before=3,
        after=40,
        apart=True,  # what may stand before is `1` and a separator
        check=_is_number,
        order=74,
    ),
    Detector(
        name="phone",
        group="personal",
        run="shapes",
        anchors=tuple(dict.fromkeys(map(_shape, _WEAK))),
        pattern=rf"{_STARTS}{_ALONE}(?:1[ .\-])?{_DATE}(?:{_pattern(_WEAK)}){_EXTENSION}{_STOPS}{_NOT_ON}",
        before=3,
        after=40,
        apart=True,  # what may stand before is `1` and a separator
        check=_is_number,
        order=75,
    ),
    Detector(
        name="phone",
        group="personal",
        run="shapes",
        anchors=("0000000000",),
        pattern=(  # with a trunk prefix; mobile numbers of China where Chinese stands in front
            rf"{_STARTS}(?:0[1-9][0-9]{{8,9}}"
            rf"|(?:(?<=[\u3000-\u9fff\uff1a])|(?<=[\u3000-\u9fff\uff1a] ))1[3-9][0-9]{{9}}){_STOPS}"
        ),
        after=16,
        check=_is_number,
        order=76,
    ),
    Detector(
        name="phone",
        group="personal",
        anchors=_WORDS,
        any_case=True,
        pattern=(
            rf"(?i:(?<![a-z])(?:{'|'.join(map(re.escape, _WORDS))})[^0-9+(\r\n]{{0,28}}"
            rf"(?<![0-9.])(?P<secret>\+?\(?[0-9](?:[ .\-/()]{{0,2}}[0-9]){{6,14}})(?![0-9A-Za-z_]"
            rf"|[.\-:][0-9]){_EXTENSION})"
        ),
        after=120,
        check=_is_number,
        order=80,
    ),
)
