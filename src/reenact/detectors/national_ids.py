"""Numbers that states give to people: by their structure and checksum, and by the word in front where these are weak.

A bare run of digits whose checksum is one in ten or eleven is told only by a word, for order numbers are runs of digits
too; a number in its customary spelling, with a firm structure or a strong checksum, needs none.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from reenact.contracts.detector import Detector
from reenact.values.checksums import digits_of, ean_13, luhn, mod_11_10, mod_11_digit, verhoeff, weighted

_STARTS = r"(?<![A-Za-z0-9_.\-+/#$])(?<![0-9A-F]{4} )"
_STOPS = r"(?![A-Za-z0-9_]|[.\-/][0-9A-Za-z])"
_NOT_ON = r"(?! [0-9A-F]{4}(?![0-9A-Za-z]))"
"""Groups of four are a number only where no more of them follow, as they do in a table and in a dump."""
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _date(month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= _DAYS[month - 1]


def _born(value: str) -> bool:
    """Tell whether the first six digits are the year, month and day of a birth."""
    digits = "".join(c for c in value if c.isdigit())
    return _date(int(digits[2:4]), int(digits[4:6]))


def _born_day_first(value: str) -> bool:
    digits = "".join(c for c in value if c.isdigit())
    return _date(int(digits[2:4]), int(digits[:2]))


def _various(value: str) -> bool:
    return len(set(digits_of(value))) > 2


def _us_ssn(value: str) -> bool:
    area, group, serial = re.sub(r"[^0-9]", "", value)[:3], re.sub(r"[^0-9]", "", value)[3:5], value[-4:]
    taxpayer = area[0] == "9" and (50 <= int(group) <= 65 or 70 <= int(group) <= 99)
    return (area not in {"000", "666"} and (area[0] != "9" or taxpayer)) and group != "00" and serial != "0000"


def _uk_nino(value: str) -> bool:
    return value[:2].upper() not in {"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"}


def _uk_nhs(value: str) -> bool:
    digits = digits_of(value)
    check = 11 - weighted(digits[:9], range(10, 1, -1)) % 11
    return check % 11 == digits[9] and check != 10 and _various(value)


def _de_tax_id(value: str) -> bool:
    digits = digits_of(value)
    counts = sorted(digits[:10].count(digit) for digit in set(digits[:10]))
    return digits[0] != 0 and mod_11_10(value) and counts[-1] in {2, 3} and len(counts) in {8, 9}


_THREADS = range(0x7E0000000000, 0x800000000000, 64)
"""What a thread is numbered by on Linux (`threading.get_ident`): where its descriptor lies. Logs are full of it."""


def _fr_nir(value: str) -> bool:
    if value.isdigit() and int(value) in _THREADS:  # one in 120 has the right check digits
        return False
    compact = re.sub(r"[ .\-]", "", value).upper()
    number = compact[:13].replace("2A", "19", 1) if compact[5:7] == "2A" else compact[:13]
    number = number.replace("2B", "18", 1) if compact[5:7] == "2B" else number
    month = int(compact[3:5])
    return number.isdigit() and 97 - int(number) % 97 == int(compact[13:15]) and (1 <= month <= 12 or 20 <= month <= 99)


def _es_letter(value: str) -> bool:
    compact = re.sub(r"[ .\-]", "", value).upper()
    number = {"X": "0", "Y": "1", "Z": "2"}.get(compact[0], compact[0]) + compact[1:-1]
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == compact[-1] and _various(value)


_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def _it_codice_fiscale(value: str) -> bool:
    places = [int(c, 36) - 10 if c.isalpha() else int(c) for c in value.upper()]
    total = sum(_ODD[place] if at % 2 == 0 else place for at, place in enumerate(places[:15]))
    return total % 26 == places[15]


def _nl_bsn(value: str) -> bool:
    digits = digits_of(value)
    padded = [0] * (9 - len(digits)) + digits
    return weighted(padded, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0 and _various(value)


def _be_nrn(value: str) -> bool:
    digits = "".join(map(str, digits_of(value)))
    number, check = int(digits[:9]), int(digits[9:11])
    return check in {97 - number % 97, 97 - (2_000_000_000 + number) % 97} and int(digits[2:4]) % 20 <= 12


def _pl_pesel(value: str) -> bool:
    digits = digits_of(value)
    return (
        -weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3)) % 10 == digits[10]
        and 1 <= digits[2] * 10 % 20 + digits[3] <= 12
    )


def _luhn_and_born(value: str) -> bool:
    digits = "".join(map(str, digits_of(value)))[-10:]
    return luhn(digits) and (
        _date(int(digits[2:4]), int(digits[4:6])) or _date(int(digits[2:4]), int(digits[4:6]) - 60)
    )


def _br_cpf(value: str) -> bool:
    digits = digits_of(value)
    checks = (mod_11_digit(digits[:9], range(10, 1, -1)), mod_11_digit(digits[:10], range(11, 1, -1)))
    return checks == (digits[9], digits[10]) and len(set(digits)) > 1


def _br_cnpj(value: str) -> bool:
    digits = digits_of(value)
    first = mod_11_digit(digits[:12], (5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2))
    checks = (first, mod_11_digit(digits[:13], (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)))
    return checks == (digits[12], digits[13]) and len(set(digits)) > 1


def _au_tfn(value: str) -> bool:
    return weighted(digits_of(value), (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0 and _various(value)


def _au_medicare(value: str) -> bool:
    digits = digits_of(value)
    return 2 <= digits[0] <= 6 and weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9)) % 10 == digits[8]


def _cn_resident_id(value: str) -> bool:
    total = weighted([int(c) for c in value[:17]], (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2))
    born = value[6:8] in {"18", "19", "20"} and _date(int(value[10:12]), int(value[12:14]))
    return born and 11 <= int(value[:2]) <= 91 and "10X98765432"[total % 11] == value[17].upper()


def _tr_tckn(value: str) -> bool:
    digits = digits_of(value)
    tenth = (sum(digits[0:9:2]) * 7 - sum(digits[1:8:2])) % 10
    return digits[0] != 0 and digits[9] == tenth and sum(digits[:10]) % 10 == digits[10]


def _fi_hetu(value: str) -> bool:
    number = int(value[:6] + value[7:10])
    return "0123456789ABCDEFHJKLMNPRSTUVWXY"[number % 31] == value[10].upper() and _born_day_first(value)


def _no_fnr(value: str) -> bool:
    digits = digits_of(value)
    first = -weighted(digits[:9], (3, 7, 6, 1, 8, 9, 4, 5, 2)) % 11
    second = -weighted(digits[:10], (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return (first, second) == (digits[9], digits[10])


def _cz_rc(value: str) -> bool:
    digits = "".join(c for c in value if c.isdigit())
    month = int(digits[2:4]) % 50 % 20 or 20
    return _date(month, int(digits[4:6])) and (int(digits) % 11 == 0 or int(digits[:9]) % 11 % 10 == int(digits[9]))


def _ro_cnp(value: str) -> bool:
    digits = digits_of(value)
    rest = weighted(digits[:12], (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return (1 if rest == 10 else rest) == digits[12] and _born(value[1:])


def _bg_egn(value: str) -> bool:
    digits = digits_of(value)
    return weighted(digits[:9], (2, 4, 8, 5, 10, 9, 7, 3, 6)) % 11 % 10 == digits[9] and _various(value)


def _baltic(value: str) -> bool:
    digits = digits_of(value)
    rest = weighted(digits[:10], (1, 2, 3, 4, 5, 6, 7, 8, 9, 1)) % 11
    if rest == 10:
        rest = weighted(digits[:10], (3, 4, 5, 6, 7, 8, 9, 1, 2, 3)) % 11 % 10
    return rest == digits[10] and 1 <= digits[0] <= 6 and _date(int(value[3:5]), int(value[5:7]))


def _ie_pps(value: str) -> bool:
    second = (ord(value[8].upper()) - 64) * 9 if len(value) == 9 and value[8].upper() != "W" else 0
    total = weighted(digits_of(value), (8, 7, 6, 5, 4, 3, 2)) + second
    return "WABCDEFGHIJKLMNOPQRSTUV"[total % 23] == value[7].upper()


def _za_id(value: str) -> bool:
    return luhn(value) and _born(value) and value[10] in "012"


def _sg_nric(value: str) -> bool:
    total = weighted(digits_of(value), (2, 7, 6, 5, 4, 3, 2)) + {"T": 4, "G": 4, "M": 3}.get(value[0], 0)
    letters = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "M": "XWUTRQPNJLK"}.get(value[0], "XWUTRQPNMLK")
    rest = total % 11
    return letters[10 - rest if value[0] == "M" else rest] == value[8]


def _tw_id(value: str) -> bool:
    letter = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(value[0]) + 10
    total = letter // 10 + letter % 10 * 9 + weighted(digits_of(value), (8, 7, 6, 5, 4, 3, 2, 1, 1))
    return total % 10 == 0 and _various(value)


def _hk_id(value: str) -> bool:
    compact = re.sub(r"[()]|%28|%29", "", value)
    letters = [int(c, 36) for c in compact[:-7]]
    body = ([36] if len(letters) == 1 else []) + letters + [int(c) for c in compact[-7:-1]]
    check = 10 if compact[-1] == "A" else int(compact[-1])
    return (weighted(body, range(9, 1, -1)) + check) % 11 == 0


def _th_id(value: str) -> bool:
    digits = digits_of(value)
    return (11 - weighted(digits[:12], range(13, 1, -1)) % 11) % 10 == digits[12]


def _cl_rut(value: str) -> bool:
    number, check = re.sub(r"[.\-]", "", value)[:-1], value[-1].upper()
    rest = 11 - weighted([int(c) for c in reversed(number)], (2, 3, 4, 5, 6, 7, 2, 3)) % 11
    return check == {10: "K", 11: "0"}.get(rest, str(rest)) and _various(value)


def _ar_cuit(value: str) -> bool:
    digits = digits_of(value)
    return -weighted(digits[:10], (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11 == digits[10] and digits[0] in {2, 3}


def _pt_nif(value: str) -> bool:
    digits = digits_of(value)
    return mod_11_digit(digits[:8], range(9, 1, -1)) == digits[8] and digits[0] in {1, 2, 3, 4, 5, 6, 7, 8, 9}


def _ru_snils(value: str) -> bool:
    digits = digits_of(value)
    return weighted(digits[:9], range(9, 0, -1)) % 101 % 100 == digits[9] * 10 + digits[10] and _various(value)


def _jp_my_number(value: str) -> bool:
    digits = digits_of(value)
    rest = weighted(digits[:11], (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return (0 if rest < 2 else 11 - rest) == digits[11] and _various(value)


def _luhn_various(value: str) -> bool:
    return luhn(value) and _various(value)


def _shaped(name: str, shapes: str, pattern: str, check: Callable[[str], bool], order: int = 50) -> Detector:
    """Make a detector of a spelling that tells itself. `shapes`: how it is written, `0` a digit and `A` a letter."""
    anchors = tuple(shapes.split("|"))
    return Detector(
        name=name,
        group="personal",
        run="shapes",
        anchors=anchors,
        pattern=f"{_STARTS}(?:{pattern}){_STOPS}",
        after=32,
        check=check,
        order=order,
    )


def _worded(name: str, words: str, pattern: str, check: Callable[[str], bool]) -> Detector:
    """Make a detector of a number behind a word, at most 28 characters on and on the same line."""
    anchors = tuple(words.split("|"))
    return Detector(
        name=name,
        group="personal",
        anchors=anchors,
        any_case=True,
        pattern=(
            rf"(?i:(?<![a-z])(?:{'|'.join(map(re.escape, anchors))})(?![a-z]{{4}})[^0-9\r\n]{{0,28}}?"
            rf"(?<![0-9a-z.])(?P<secret>{pattern})(?![0-9A-Za-z_]|[.\-/][0-9]))"
        ),
        after=128,
        check=check,
        order=45,
    )


DETECTORS: tuple[Detector, ...] = (
    _shaped("us_ssn", "000-00-0000", "[0-9]{3}-[0-9]{2}-[0-9]{4}", _us_ssn, 46),
    _worded(
        "us_ssn",
        "ssn|social security|social_security|social-security|socialsecurity|itin|taxpayer id",
        "[0-9]{3}[ .-]?[0-9]{2}[ .-]?[0-9]{4}",
        _us_ssn,
    ),
    _shaped(
        "uk_nino",
        "AA000000A|AA 00 00 00 A|AA-00-00-00-A|AA 000000 A",
        "[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z](?:[0-9]{6}| [0-9]{2} [0-9]{2} [0-9]{2} "
        "|-[0-9]{2}-[0-9]{2}-[0-9]{2}-| [0-9]{6} )[A-D]",
        _uk_nino,
    ),
    _worded("uk_nhs", "nhs", "[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4}", _uk_nhs),
    _shaped("de_tax_id", "00 000 000 000", "[1-9][0-9] [0-9]{3} [0-9]{3} [0-9]{3}", _de_tax_id),
    _worded(
        "de_tax_id",
        "steuer-id|steuerid|steuer id|steuer_id|steueridentifikationsnummer|steuer-identifikationsnummer"
        "|identifikationsnummer|steuernummer|idnr|tax id|tax_id|tin",
        "[1-9][0-9][ ]?[0-9]{3}[ ]?[0-9]{3}[ ]?[0-9]{3}",
        _de_tax_id,
    ),
    _shaped(
        "fr_nir",
        "0 00 00 00 000 000 00|000000000000000|0 00 00 0A 000 000 00|000000A00000000|0 00 00 00 000 000 0",
        "[1278] [0-9]{2} [0-9]{2} (?:[0-9]{2}|2[AB]) [0-9]{3} [0-9]{3} [0-9]{2}|[1278][0-9]{4}(?:[0-9]{2}"
        "|2[AB])[0-9]{8}",
        _fr_nir,
    ),
    _shaped(
        "es_dni",
        "00000000A|00000000-A|00.000.000-A|00.000.000A",
        r"[0-9]{8}-?[A-HJ-NP-TV-Z]|[0-9]{2}\.[0-9]{3}\.[0-9]{3}-?[A-HJ-NP-TV-Z]",
        _es_letter,
    ),
    _worded("es_dni", "dni|nif", "[0-9]{8}[ -]?[A-HJ-NP-TV-Z]", _es_letter),
    _shaped("es_nie", "A0000000A|A-0000000-A|A0000000-A|A-0000000A", "[XYZ]-?[0-9]{7}-?[A-HJ-NP-TV-Z]", _es_letter),
    _shaped(
        "it_codice_fiscale",
        "AAAAAA00A00A000A",
        "(?i:[A-Z]{6}[0-9]{2}[ABCDEHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z])",
        _it_codice_fiscale,
    ),
    _worded("nl_bsn", "bsn|burgerservicenummer|sofinummer|sofi", r"[0-9]{3,4}[ .]?[0-9]{2,3}[ .]?[0-9]{3}", _nl_bsn),
    _shaped("be_nrn", "00.00.00-000.00", r"[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}\.[0-9]{2}", _be_nrn),
    _worded(
        "be_nrn",
        "rijksregisternummer|registre national|national register|numero national|nrn|niss|insz",
        r"[0-9]{2}[. ]?[0-9]{2}[. ]?[0-9]{2}[ -]?[0-9]{3}[. ]?[0-9]{2}",
        _be_nrn,
    ),
    _worded("pl_pesel", "pesel", "[0-9]{11}", _pl_pesel),
    _shaped(
        "se_personnummer",
        "000000-0000|000000+0000|00000000-0000|00000000+0000",
        "(?:18|19|20)?[0-9]{6}[-+][0-9]{4}",
        _luhn_and_born,
        51,
    ),
    _worded(
        "se_personnummer",
        "personnummer|samordningsnummer|personal identity number",
        "(?:18|19|20)?[0-9]{6}[-+ ]?[0-9]{4}",
        _luhn_and_born,
    ),
    _shaped("br_cpf", "000.000.000-00", r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", _br_cpf),
    _worded("br_cpf", "cpf", r"[0-9]{3}[. ]?[0-9]{3}[. ]?[0-9]{3}[ -]?[0-9]{2}", _br_cpf),
    _shaped("br_cnpj", "00.000.000/0000-00", r"[0-9]{2}\.[0-9]{3}\.[0-9]{3}/[0-9]{4}-[0-9]{2}", _br_cnpj),
    _worded("br_cnpj", "cnpj", "[0-9]{14}", _br_cnpj),
    _shaped(
        "in_aadhaar",
        "0000 0000 0000|0000-0000-0000",
        "[2-9][0-9]{3} [0-9]{4} [0-9]{4}" + _NOT_ON + "|[2-9][0-9]{3}-[0-9]{4}-[0-9]{4}",
        verhoeff,
    ),
    _worded("in_aadhaar", "aadhaar|aadhar|uidai|uid", "[2-9][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}", verhoeff),
    _shaped("in_pan", "AAAAA0000A", "[A-Z]{3}[ABCFGHLJPT][A-Z][0-9]{4}[A-Z]", lambda value: len(set(value)) > 4),
    _worded("au_tfn", "tfn|tax file number|tax file no", "[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3}", _au_tfn),
    _worded("au_medicare", "medicare", "[2-6][0-9]{3}[ -]?[0-9]{5}[ -]?[0-9](?:[ -]?[0-9])?", _au_medicare),
    _worded(
        "ca_sin", "sin|social insurance|social_insurance", "[1-79][0-9]{2}[ -]?[0-9]{3}[ -]?[0-9]{3}", _luhn_various
    ),
    _shaped("ca_sin", "000-000-000", "[1-79][0-9]{2}-[0-9]{3}-[0-9]{3}", _luhn_various),
    _shaped("cn_resident_id", "000000000000000000|00000000000000000A", "[1-9][0-9]{16}[0-9Xx]", _cn_resident_id),
    _shaped("kr_rrn", "000000-0000000", "[0-9]{6}-[1-8][0-9]{6}", _born),
    _worded("tr_tckn", "tckn|kimlik|tc no|tc kimlik|t.c.", "[1-9][0-9]{10}", _tr_tckn),
    _shaped(
        "ch_ahv",
        "000.0000.0000.00|0000000000000|000 0000 0000 00",
        r"756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2}|756[0-9]{10}|756 [0-9]{4} [0-9]{4} [0-9]{2}",
        ean_13,
    ),
    _shaped(
        "fi_hetu",
        "000000-000A|000000A000A|000000-0000|000000+000A|000000+0000|000000A0000",
        r"[0-3][0-9][01][0-9]{3}[-+A-FU-Y][0-9]{3}[0-9A-FHJ-NPR-Y]",
        _fi_hetu,
    ),
    _worded("dk_cpr", "cpr", "[0-3][0-9][01][0-9]{3}[ -]?[0-9]{4}", _born_day_first),
    _worded(
        "no_fnr",
        "fodselsnummer|dselsnummer|fnr|personnr|national identity number",
        "[0-7][0-9][0-9]{4}[ ]?[0-9]{5}",
        _no_fnr,
    ),
    _shaped("cz_rodne_cislo", "000000/0000", "[0-9]{6}/[0-9]{4}", _cz_rc),
    _worded("ro_cnp", "cnp", "[1-9][0-9]{12}", _ro_cnp),
    _worded("bg_egn", "egn", "[0-9]{10}", _bg_egn),
    _worded("hr_oib", "oib", "[0-9]{11}", mod_11_10),
    _worded("baltic_id", "isikukood|asmens kodas|personal code", "[1-6][0-9]{10}", _baltic),
    _worded("ie_pps", "pps|ppsn", "[0-9]{7}[A-W][A-IW]?", _ie_pps),
    _worded("za_id", "sa id|id number|identity number|id no|rsa id", "[0-9]{13}", _za_id),
    _shaped("sg_nric", "A0000000A", "[STFGM][0-9]{7}[A-Z]", _sg_nric),
    _shaped("tw_id", "A000000000", "[A-Z][1289][0-9]{8}", _tw_id),
    _shaped(
        "hk_id", "A000000(|A000000%00|AA000000(|AA000000%00", r"[A-Z]{1,2}[0-9]{6}(?:\([0-9A]\)|%28[0-9A]%29)", _hk_id
    ),
    _shaped("my_nric", "000000-00-0000", "[0-9]{6}-[0-9]{2}-[0-9]{4}", _born),
    _shaped(
        "th_id",
        "0-0000-00000-00-0|0 0000 00000 00 0",
        "[1-8]-[0-9]{4}-[0-9]{5}-[0-9]{2}-[0-9]|[1-8] [0-9]{4} [0-9]{5} [0-9]{2} [0-9]",
        _th_id,
    ),
    _worded("id_nik", "nik|ktp", "[1-9][0-9]{5}[0-7][0-9][01][0-9][0-9]{6}", lambda value: 1 <= int(value[8:10]) <= 12),
    _worded(
        "jp_my_number", "my number|mynumber|my_number|kojin bango", "[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}", _jp_my_number
    ),
    _shaped(
        "mx_curp", "AAAA000000AAAAAA", "[A-Z]{4}[0-9]{6}[HMX][A-Z]{5}[A-Z0-9][0-9]", lambda value: _born(value[4:10])
    ),
    _worded("mx_rfc", "rfc", "[A-Z]{4}[0-9]{6}[A-Z0-9]{3}", lambda value: _born(value[4:10])),
    _shaped(
        "cl_rut",
        "00.000.000-0|0.000.000-0|00.000.000-A|0.000.000-A",
        r"[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}-[0-9Kk]",
        _cl_rut,
    ),
    _worded("cl_rut", "rut", "[0-9]{7,8}-[0-9K]", _cl_rut),
    _shaped("ar_cuit", "00-00000000-0", "[23][0-9]-[0-9]{8}-[0-9]", _ar_cuit),
    _worded("pt_nif", "nif|contribuinte", "[1-9][0-9]{2}[ ]?[0-9]{3}[ ]?[0-9]{3}", _pt_nif),
    _shaped("ru_snils", "000-000-000 00|000-000-000-00", "[0-9]{3}-[0-9]{3}-[0-9]{3}[ -][0-9]{2}", _ru_snils, 44),
    _shaped("pk_cnic", "00000-0000000-0", "[1-7][0-9]{4}-[0-9]{7}-[0-9]", _various),
    _worded("il_id", "teudat|israeli id|id number|mispar zehut", "[0-9]{9}", _luhn_various),
    _worded("nz_ird", "ird", "[0-9]{2,3}-?[0-9]{3}-?[0-9]{3}", _various),
    _worded("ng_nin", "nin", "[1-9][0-9]{10}", _various),
)
