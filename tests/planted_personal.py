"""Fake people's data of many countries: numbers with their check digits worked out here, by the states' own recipes.

Nothing here knows a detector or its pattern. Numbers are drawn; none is anybody's on purpose.
"""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator

from planted import Planted, drawn

Maker = Callable[[random.Random], str]


def number(chance: random.Random, count: int, first: str = "123456789") -> str:
    return chance.choice(first) + "".join(chance.choice(string.digits) for _ in range(count - 1))


def filled(chance: random.Random, spelled: str) -> str:
    """Put a digit for each `#`, one of 2-9 for `N`, one of 1-9 for `Z`."""
    kinds = {"#": string.digits, "N": "23456789", "Z": "123456789"}
    return "".join(chance.choice(kinds[c]) if c in kinds else c for c in spelled)


def with_luhn(body: str) -> str:
    total = 0
    for at, c in enumerate(reversed(body)):
        twice = int(c) * 2 if at % 2 == 0 else int(c)
        total += twice - 9 if twice > 9 else twice
    return body + str((10 - total % 10) % 10)


def trying(make: Callable[[str], bool], candidates: Iterator[str]) -> str:
    return next(candidate for candidate in candidates if make(candidate))


# mail

_FIRST = [
    "jane",
    "john",
    "maria",
    "wei",
    "ahmed",
    "olga",
    "søren",
    "jürgen",
    "fatima",
    "yuki",
    "carlos",
    "anne-marie",
    "o.neill",
    "li",
    "priya",
    "kofi",
]
_LAST = [
    "doe",
    "smith",
    "garcía",
    "müller",
    "chen",
    "ivanova",
    "haddad",
    "tanaka",
    "o'brien",
    "nakamura",
    "silva",
    "kowalska",
    "jensen",
    "patel",
    "mensah",
]
_HOSTS = [
    "gmail.com",
    "example.com",
    "mail.example.org",
    "uni-köln.de",
    "outlook.com",
    "acme.co.uk",
    "firma.de",
    "empresa.com.br",
    "proton.me",
    "yandex.ru",
    "qq.com",
    "corp.example.internal",
    "startup.io",
    "ministry.gov.in",
    "students.school.edu",
    "laposte.net",
    "seznam.cz",
    "naver.com",
]


def e_mail(chance: random.Random) -> str:
    first, last, host = chance.choice(_FIRST), chance.choice(_LAST), chance.choice(_HOSTS)
    local = chance.choice(
        [
            f"{first}.{last}",
            f"{first}_{last}{chance.randrange(99)}",
            f"{first[0]}{last}",
            f"{first}+news",
            f"{last}{chance.randrange(1950, 2010)}",
            first,
        ]
    )
    if chance.random() < 0.1:
        local = local.upper()
    return f"{local}@{host}"


# telephone: numbering plans, written as people there write them

_PHONES = """
+1 NNN-NNN-####|+1 (NNN) NNN-####|+1NNNNNN####|(NNN) NNN-####|NNN-NNN-####|NNN.NNN.####
1-8##-NNN-####|+1-NNN-NNN-####|NNN NNN ####
+44 20 7### ####|+44 7### ######|020 7### ####|07### ######|(020) 8### ####|01### ######
+44 (0)161 ### ####|0161 ### ####|0800 ### ####
+49 30 ########|+49 (0)89 #######|+49 151 ########|030 ########|030/#######|0151 ########
(089) #######|0221 / #######|+49-40-######-0|0176-########
+33 6 ## ## ## ##|+33 1 ## ## ## ##|06 ## ## ## ##|01.##.##.##.##|+336########|04-##-##-##-##
+34 6## ### ###|+34 9## ## ## ##|6## ### ###|91# ## ## ##
+39 06 #### ####|+39 3## ### ####|3## #######|02 #### ####|+39 02 ########
+31 6 ########|+31 20 ### ####|06-########|020-#######|020 ### ## ##
+32 2 ### ## ##|+32 4## ## ## ##|02 ### ## ##|04## ## ## ##
+41 44 ### ## ##|+41 79 ### ## ##|044 ### ## ##|079 ### ## ##
+43 1 ######|+43 664 #######|0664 #######|01 #######
+46 8 ### ### ##|+46 70 ### ## ##|070-### ## ##|08-### ### ##
+45 ## ## ## ##|+47 4## ## ###|+358 40 ### ####|040 ### ####
+48 5## ### ###|+48 22 ### ## ##|5## ### ###
+420 6## ### ###|+36 30 ### ####|+40 7## ### ###|+30 69# ### ####|+351 9## ### ###
+7 9## ###-##-##|8 (9##) ###-##-##|+7 (495) ###-##-##
+90 5## ### ## ##|0532 ### ## ##|+972 5#-###-####|05#-###-####|+971 50 ### ####
+91 98### #####|98### #####|+91-99########|022 2### ####
+86 138 #### ####|138 #### ####|+86 10 8### ####|010-8#######
+81 90-####-####|090-####-####|03-####-####|+81 3 #### ####
+82 10-####-####|010-####-####|02-###-####
+61 4## ### ###|04## ### ###|(02) 9### ####|+61 2 9### ####|1300 ### ###
+64 21 ### ####|021 ### ####|09 ### ####
+65 9### ####|+852 9### ####|+60 12-### ####|+66 8# ### ####|+62 812-####-####|+63 917 ### ####
+84 91# ### ###
+55 11 9####-####|(11) 9####-####|(21) ####-####|+55 (11) 9#### ####
+52 55 #### ####|55 #### ####|+54 9 11 ####-####|+56 9 #### ####|+57 3## ### ####
+27 82 ### ####|082 ### ####|+234 80# ### ####|0803 ### ####|+254 7## ### ###|+20 10 #### ####
""".strip().splitlines()
"""International and national spellings by country, as its own directories give them."""


def phone(chance: random.Random) -> str:
    spelled = chance.choice(chance.choice(_PHONES).split("|"))
    return filled(chance, spelled.replace("NNN", "N##")) + (
        chance.choice([" ext. ##", " x###"]).replace("#", "4") if chance.random() < 0.04 else ""
    )


def phone_in_context(chance: random.Random) -> str:
    word = chance.choice(
        [
            "Phone: ",
            "Tel. ",
            "tel:",
            "mobile ",
            "Call me at ",
            "WhatsApp ",
            "fax: ",
            '"phone": "',
            "phone=",
            "Telefon: ",
            "cell: ",
        ]
    )
    bare = filled(
        chance, chance.choice(["Z#########", "0Z########", "0Z#########", "Z####### ", "### ####", "8### ####"])
    ).strip()
    return f"{word}«{bare}»"


# cards and accounts


def payment_card(chance: random.Random) -> str:
    head, count = chance.choice(
        [
            ("4", 16),
            ("51", 16),
            ("55", 16),
            ("2221", 16),
            ("2699", 16),
            ("34", 15),
            ("37", 15),
            ("6011", 16),
            ("65", 16),
            ("3530", 16),
            ("36", 14),
            ("62", 16),
        ]
    )
    digits = with_luhn(head + "".join(chance.choice(string.digits) for _ in range(count - 1 - len(head))))
    between = chance.choice(["", " ", " ", "-"])
    cuts = [4, 10] if count in {14, 15} else [4, 8, 12]
    return between.join(digits[a:b] for a, b in zip([0, *cuts], [*cuts, count], strict=True))


_BANKS = {
    "DE": "##################",
    "FR": "####################A##",
    "GB": "AAAA##############",
    "NL": "AAAA##########",
    "ES": "####################",
    "IT": "A######################",
    "BE": "############",
    "AT": "################",
    "CH": "#################",
    "PL": "########################",
    "SE": "####################",
    "NO": "###########",
    "DK": "##############",
    "FI": "##############",
    "IE": "AAAA##############",
    "PT": "#####################",
    "CZ": "####################",
    "GR": "#######################",
    "RO": "AAAA################",
    "SA": "####################",
    "AE": "###################",
    "TR": "######0###############",
    "BR": "#######################AA",
    "MT": "AAAA#####AA################",
    "LU": "################",
    "HU": "########################",
    "IL": "###################",
    "SK": "####################",
}


def iban(chance: random.Random) -> str:
    country, structure = chance.choice(sorted(_BANKS.items()))
    body = "".join(
        chance.choice(string.digits) if c == "#" else chance.choice(string.ascii_uppercase) if c == "A" else c
        for c in structure
    )
    if country == "FR":
        body = body[:22] + body[23:] if len(body) > 23 else body
    as_number = int("".join(str(int(c, 36)) for c in f"{body}{country}00"))
    compact = f"{country}{98 - as_number % 97:02d}{body}"
    if chance.random() < 0.5:
        return compact
    return " ".join(compact[at : at + 4] for at in range(0, len(compact), 4))


# people's numbers


def _born(chance: random.Random) -> tuple[str, str, str]:
    return f"{chance.randrange(40, 99):02d}", f"{chance.randrange(1, 13):02d}", f"{chance.randrange(1, 29):02d}"


def us_ssn(chance: random.Random) -> str:
    area = chance.choice([each for each in range(1, 900) if each != 666])
    spelled = f"{area:03d}-{chance.randrange(1, 100):02d}-{chance.randrange(1, 10000):04d}"
    return spelled if chance.random() < 0.8 else f"SSN: «{spelled.replace('-', '')}»"


def uk_nino(chance: random.Random) -> str:
    head = chance.choice(["AB", "CE", "JK", "PW", "ST", "YZ", "HR", "MX"])
    digits = number(chance, 6, string.digits)
    tail = chance.choice("ABCD")
    return chance.choice([f"{head}{digits}{tail}", f"{head} {digits[:2]} {digits[2:4]} {digits[4:]} {tail}"])


def uk_nhs(chance: random.Random) -> str:
    while True:
        body = number(chance, 9, "4679")
        check = (11 - sum(int(c) * (10 - at) for at, c in enumerate(body)) % 11) % 11
        if check != 10:
            return f"NHS number «{body[:3]} {body[3:6]} {body[6:]}{check}»"


def de_tax_id(chance: random.Random) -> str:
    signs = chance.sample(string.digits, 9)
    body = [*signs, signs[0]]
    chance.shuffle(body)
    while body[0] == "0" or any(a == b == c for a, b, c in zip(body, body[1:], body[2:], strict=False)):
        chance.shuffle(body)
    product = 10
    for c in body:
        total = (int(c) + product) % 10
        product = (total or 10) * 2 % 11
    digits = "".join(body) + str((11 - product) % 10)
    spaced = f"{digits[:2]} {digits[2:5]} {digits[5:8]} {digits[8:]}"
    return chance.choice([spaced, f"Steuer-ID: «{digits}»", f"Steueridentifikationsnummer «{digits}»"])


def fr_nir(chance: random.Random) -> str:
    year, month, _ = _born(chance)
    place = chance.choice(["75", "13", "69", "2A"])
    body = f"{chance.choice('12')}{year}{month}{place}{number(chance, 6, string.digits)}"
    key = 97 - int(body.replace("2A", "19")) % 97
    spaced = f"{body[0]} {body[1:3]} {body[3:5]} {body[5:7]} {body[7:10]} {body[10:]} {key:02d}"
    return chance.choice([spaced, f"{body}{key:02d}"])


_SPANISH = "TRWAGMYFPDXBNJZSQVHLCKE"


def es_dni(chance: random.Random) -> str:
    body = number(chance, 8, string.digits)
    return body + chance.choice(["", "-"]) + _SPANISH[int(body) % 23]


def es_nie(chance: random.Random) -> str:
    head = chance.randrange(3)
    body = number(chance, 7, string.digits)
    return "XYZ"[head] + body + _SPANISH[int(f"{head}{body}") % 23]


def it_codice_fiscale(chance: random.Random) -> str:
    odd = dict(zip(string.digits, (1, 0, 5, 7, 9, 13, 15, 17, 19, 21), strict=True))
    odd |= dict(
        zip(
            string.ascii_uppercase,
            (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
            strict=True,
        )
    )
    letters = "".join(chance.choice("BCDFGLMNPRSTVZ") for _ in range(6))
    year, _, day = _born(chance)
    month, place = chance.choice("ABCDEHLMPRST"), chance.choice("ABCDEFGHL")
    body = f"{letters}{year}{month}{day}{place}{number(chance, 3, string.digits)}"
    total = sum(odd[c] if at % 2 == 0 else (int(c) if c.isdigit() else ord(c) - 65) for at, c in enumerate(body))
    return body + string.ascii_uppercase[total % 26]


def nl_bsn(chance: random.Random) -> str:
    while True:
        body = number(chance, 8)
        rest = sum(int(c) * (9 - at) for at, c in enumerate(body)) % 11
        if rest < 10:
            return chance.choice(["BSN: ", "burgerservicenummer ", "bsn="]) + f"«{body}{rest}»"


def be_nrn(chance: random.Random) -> str:
    year, month, day = _born(chance)
    serial = f"{chance.randrange(1, 998):03d}"
    check = 97 - int(f"{year}{month}{day}{serial}") % 97
    return f"{year}.{month}.{day}-{serial}.{check:02d}"


def pl_pesel(chance: random.Random) -> str:
    body = "".join(_born(chance)) + number(chance, 4, string.digits)
    total = sum(int(c) * weight for c, weight in zip(body, (1, 3, 7, 9) * 3, strict=False))
    return "PESEL {}".replace("{}", f"«{body}{(10 - total % 10) % 10}»")


def se_personnummer(chance: random.Random) -> str:
    year, month, day = _born(chance)
    digits = with_luhn(f"{year}{month}{day}{number(chance, 3, string.digits)}")
    return chance.choice([f"{digits[:6]}-{digits[6:]}", f"19{digits[:6]}-{digits[6:]}"])


def _brazilian(body: str, longest: int) -> str:
    for _ in range(2):
        weights = [at % (longest - 1) + 2 for at in range(len(body))]
        rest = sum(int(c) * weight for c, weight in zip(reversed(body), weights, strict=True)) % 11
        body += str(0 if rest < 2 else 11 - rest)
    return body


def br_cpf(chance: random.Random) -> str:
    digits = _brazilian(number(chance, 9, string.digits), 13)
    return chance.choice([f"{digits[:3]}.{digits[3:6]}.{digits[6:9]}-{digits[9:]}", f"CPF «{digits}»"])


def br_cnpj(chance: random.Random) -> str:
    digits = _brazilian(number(chance, 8) + "0001", 9)
    return f"{digits[:2]}.{digits[2:5]}.{digits[5:8]}/{digits[8:12]}-{digits[12:]}"


def in_aadhaar(chance: random.Random) -> str:
    """By the dihedral group itself: a rotation and a reflection, no tables."""
    turns = [list(range(10)), [1, 5, 7, 6, 2, 8, 3, 0, 9, 4]]
    while len(turns) < 8:
        turns.append([turns[1][each] for each in turns[-1]])

    def times(a: int, b: int) -> int:
        if a < 5:
            return (a + b) % 5 if b < 5 else (a + b - 5) % 5 + 5
        return (a - 5 - b) % 5 + 5 if b < 5 else (a - b) % 5

    body = number(chance, 11, "23456789")
    for last in string.digits:
        check = 0
        for at, c in enumerate(reversed(body + last)):
            check = times(check, turns[at % 8][int(c)])
        if check == 0:
            digits = body + last
            return chance.choice([f"{digits[:4]} {digits[4:8]} {digits[8:]}", f"Aadhaar: «{digits}»"])
    raise AssertionError


def in_pan(chance: random.Random) -> str:
    letters = "".join(chance.choice(string.ascii_uppercase) for _ in range(3))
    return (
        f"{letters}P{chance.choice(string.ascii_uppercase)}{number(chance, 4)}{chance.choice(string.ascii_uppercase)}"
    )


def au_tfn(chance: random.Random) -> str:
    while True:
        digits = number(chance, 9)
        if sum(int(c) * weight for c, weight in zip(digits, (1, 4, 3, 7, 5, 8, 6, 9, 10), strict=True)) % 11 == 0:
            return f"TFN «{digits[:3]} {digits[3:6]} {digits[6:]}»"


def ca_sin(chance: random.Random) -> str:
    digits = with_luhn(number(chance, 8, "1234567"))
    return chance.choice(
        [f"SIN: «{digits[:3]} {digits[3:6]} {digits[6:]}»", f"{digits[:3]}-{digits[3:6]}-{digits[6:]}"]
    )


def cn_resident_id(chance: random.Random) -> str:
    year, month, day = _born(chance)
    place = chance.choice(["110101", "310115", "440305", "510107"])
    body = f"{place}19{year}{month}{day}{number(chance, 3, string.digits)}"
    total = sum(int(c) * (2 ** (17 - at) % 11) for at, c in enumerate(body))
    return body + "10X98765432"[total % 11]


def kr_rrn(chance: random.Random) -> str:
    return f"{''.join(_born(chance))}-{chance.choice('12')}{number(chance, 6, string.digits)}"


def tr_tckn(chance: random.Random) -> str:
    body = number(chance, 9)
    tenth = (7 * sum(map(int, body[::2])) - sum(map(int, body[1::2]))) % 10
    return f"TCKN: «{body}{tenth}{(sum(map(int, body)) + tenth) % 10}»"


def ch_ahv(chance: random.Random) -> str:
    body = f"756{number(chance, 9, string.digits)}"
    total = sum(int(c) * (3 if at % 2 else 1) for at, c in enumerate(body))
    digits = body + str(-total % 10)
    return f"{digits[:3]}.{digits[3:7]}.{digits[7:11]}.{digits[11:]}"


def fi_hetu(chance: random.Random) -> str:
    year, month, day = _born(chance)
    serial = f"{chance.randrange(2, 900):03d}"
    return f"{day}{month}{year}-{serial}{'0123456789ABCDEFHJKLMNPRSTUVWXY'[int(f'{day}{month}{year}{serial}') % 31]}"


def cz_rodne_cislo(chance: random.Random) -> str:
    while True:
        digits = "".join(_born(chance)) + number(chance, 4, string.digits)
        if int(digits) % 11 == 0:
            return f"{digits[:6]}/{digits[6:]}"


def sg_nric(chance: random.Random) -> str:
    body = number(chance, 7, string.digits)
    total = sum(int(c) * weight for c, weight in zip(body, (2, 7, 6, 5, 4, 3, 2), strict=True))
    return f"S{body}{'JZIHGFEDCBA'[total % 11]}"


def cl_rut(chance: random.Random) -> str:
    body = number(chance, 8, "12")
    rest = 11 - sum(int(c) * (at % 6 + 2) for at, c in enumerate(reversed(body))) % 11
    return f"{body[:2]}.{body[2:5]}.{body[5:]}-{ {10: 'K', 11: '0'}.get(rest, rest) }"


def ar_cuit(chance: random.Random) -> str:
    while True:
        body = chance.choice(["20", "27"]) + number(chance, 8, "1234")
        rest = 11 - sum(int(c) * (at % 6 + 2) for at, c in enumerate(reversed(body))) % 11
        if rest != 10:
            return f"{body[:2]}-{body[2:]}-{rest % 11}"


def mx_curp(chance: random.Random) -> str:
    letters = "".join(chance.choice("BCDFGLMPRS") for _ in range(4))
    inner = "".join(chance.choice("BCDFGLMPRS") for _ in range(3))
    return f"{letters}{''.join(_born(chance))}{chance.choice('HM')}DF{inner}0{chance.randrange(10)}"


def passport(chance: random.Random) -> str:
    spelled = chance.choice(
        [number(chance, 9), drawn(chance, "UP", 2).replace("0", "C") + number(chance, 7), f"C{number(chance, 8)}"]
    )
    return chance.choice(["Passport number: ", "passport no. ", '"passport": "', "passport "]) + f"«{spelled}»"


def driver_licence(chance: random.Random) -> str:
    spelled = chance.choice(
        [
            f"D{number(chance, 7)}",
            f"{number(chance, 8)}",
            f"S{number(chance, 3)}-{number(chance, 4)}-{number(chance, 4)}",
        ]
    )
    return chance.choice(["Driver's license: ", "driving licence no ", "driver_license: "]) + f"«{spelled}»"


# machines


def ip_v4(chance: random.Random) -> str:
    net = chance.choice(
        [
            f"10.{chance.randrange(256)}.{chance.randrange(256)}",
            f"192.168.{chance.randrange(256)}",
            "203.0.113",
            f"{chance.randrange(11, 223)}.{chance.randrange(256)}.{chance.randrange(256)}",
        ]
    )
    while net.startswith("127."):
        net = f"{chance.randrange(11, 120)}.{chance.randrange(256)}.{chance.randrange(256)}"
    return f"{net}.{chance.randrange(1, 255)}"


def ip_v6(chance: random.Random) -> str:
    groups = [f"{chance.randrange(1, 65536):x}" for _ in range(8)]
    groups[0] = chance.choice(["2001", "2a02", "2607", "fe80", "fd12", "2003"])
    if chance.random() < 0.5:
        return ":".join(groups)
    keep = chance.randrange(1, 4)
    return f"{':'.join(groups[:keep])}::{':'.join(groups[-chance.randrange(1, 4) :])}"


def mac_address(chance: random.Random) -> str:
    pairs = [f"{chance.randrange(256):02x}" for _ in range(6)]
    made = chance.choice([":", ":", "-"]).join(pairs)
    return made.upper() if chance.random() < 0.4 else made


PERSONAL: dict[str, tuple[Maker, ...]] = {
    "e_mail": (e_mail,),
    "phone": (phone, phone, phone, phone_in_context),
    "payment_card": (payment_card,),
    "iban": (iban,),
    "ip_address": (ip_v4, ip_v6),
    "mac_address": (mac_address,),
    **{
        make.__name__: (make,)
        for make in (
            us_ssn, uk_nino, uk_nhs, de_tax_id, fr_nir, es_dni, es_nie, it_codice_fiscale, nl_bsn, be_nrn, pl_pesel,
            se_personnummer, br_cpf, br_cnpj, in_aadhaar, in_pan, au_tfn, ca_sin, cn_resident_id, kr_rrn, tr_tckn,
            ch_ahv, fi_hetu, cz_rodne_cislo, sg_nric, cl_rut, ar_cuit, mx_curp, passport, driver_licence,
        )
    },
}  # fmt: skip


def personal(chance: random.Random, each: int = 1) -> Iterator[Planted]:
    """Give `each` fake values of every maker of every class."""
    for name, makers in PERSONAL.items():
        for make in makers:
            for _ in range(each):
                text = make(chance)
                value = text[text.index("«") + 1 : text.index("»")] if "«" in text else text
                yield Planted(name, text.replace("«", "").replace("»", ""), value)
