"""Policies in TOML: what they mean, and what is refused, with its line."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from reenact.errors import InputError
from reenact.redact import policy
from reenact.redact.engine import Engine
from reenact.redact.plan import DEFAULT, Place
from reenact.redact.policy import Policy

OURS = r"""
name = "ours"

[classes]
personal = "mask"
credentials = "pseudonymise"

[[find]]
class = "customer_number"
pattern = 'ACME-[0-9]{6,10}'
do = "drop"

[[find]]
class = "projects"
group = "credentials"
words = ["Falcon", "Blue Condor"]
any_case = true

[[rule]]
class = "customer_number"
tool = "crm_*"
do = "keep"

[[rule]]
whole = true
attribute = "input.value"
path = "messages.*.metadata"
do = "drop"
"""


def test_the_default_is_in_force_where_a_policy_says_nothing() -> None:
    assert policy.parse("", "empty.toml").plan().digest == DEFAULT.digest
    assert policy.parse('extends = "default"\n', "x.toml").source() == ""
    assert Policy(name="default").plan() is DEFAULT


def test_what_a_policy_says_is_what_its_plan_does() -> None:
    plan = policy.parse(OURS).plan(b"k")
    assert not plan.uniform
    assert plan.takes_whole
    assert plan.action("customer_number", Place(tool="search")) == "drop"
    assert plan.action("customer_number", Place(tool="crm_lookup")) == "keep"
    assert plan.action("e_mail", Place()) == "mask"
    assert plan.action("projects", Place()) == "pseudonymise"
    assert plan.action("known_secret", Place()) == "pseudonymise"
    below = Place(attribute="input.value", path=("messages", 2, "metadata", "note"))
    assert plan.whole(below) == "drop"
    assert plan.whole(replace(below, path=("messages", 2, "content"))) is None
    assert plan.whole(replace(below, attribute="output.value")) is None


def test_a_class_of_its_own_is_found_by_patterns_and_words() -> None:
    plan = policy.parse(OURS).plan(b"k")
    found = {each.name: each for each in plan.detectors}
    number, projects = found["customer_number"], found["projects"]
    assert number.anchors == ("ACME-",)
    assert re.search(number.pattern, "see ACME-123456, please")
    assert projects.group == "credentials"
    flags = re.IGNORECASE if projects.any_case else 0
    assert [hit[0] for hit in re.finditer(projects.pattern, "falcon, BLUE CONDOR; falconry", flags)] == [
        "falcon",
        "BLUE CONDOR",
    ]


def test_words_are_neither_in_the_source_nor_to_be_guessed_from_the_digest() -> None:
    read = policy.parse(OURS)
    source = read.source()
    assert "Falcon" not in source
    assert "Condor" not in source
    assert "withheld = 2" in source
    assert read.plan(b"one key").digest != read.plan(b"another").digest
    plain = policy.parse(OURS.replace('words = ["Falcon", "Blue Condor"]', "pattern = 'Falcon[0-9]{2}'"))
    assert plain.plan(b"one key").digest == plain.plan(b"another").digest


def test_a_policy_read_from_its_own_source_is_the_same() -> None:
    read = policy.parse(OURS.replace('words = ["Falcon", "Blue Condor"]', "pattern = 'Falcon[0-9]{2}'"))
    again = policy.parse(read.source(), "trace")
    assert again.plan().digest == read.plan().digest
    assert again.source() == read.source()


def test_a_policy_goes_on_where_another_ends(tmp_path: Path) -> None:
    (tmp_path / "below.toml").write_text('[classes]\ne_mail = "keep"\npersonal = "drop"\n')
    (tmp_path / "top.toml").write_text('extends = "below.toml"\n[classes]\ne_mail = "mask"\n')
    plan = policy.load(tmp_path / "top.toml").plan()
    assert plan.action("e_mail", Place()) == "mask"
    assert [each.name for each in plan.detectors] == [each.name for each in DEFAULT.detectors]


@pytest.mark.parametrize("file", sorted((Path(__file__).parents[2] / "examples" / "policies").glob("*.toml")))
def test_the_examples_can_be_read(file: Path) -> None:
    plan = policy.load(file).plan(b"k")
    assert plan.name == file.stem
    if file.stem == "default":
        assert plan.uniform
        assert plan.detectors == DEFAULT.detectors
        for name in ("e_mail", "openai_key", "known_secret", "keyed_value"):
            assert plan.action(name, Place()) == DEFAULT.action(name, Place())
    if file.stem == "by-tool":
        place = Place(attribute="output.value", tool="crm_find", kind="TOOL", boundary="function")
        assert plan.whole(replace(place, path=("account", "owner"))) == "pseudonymise"
        assert plan.whole(replace(place, path=("account", "plan", "name"))) is None


def test_nothing_looks_for_nothing_but_what_is_known() -> None:
    plan = policy.parse('extends = "nothing"\n').plan()
    assert plan.detectors == ()
    assert plan.action("known_secret", Place()) == "pseudonymise"


def test_words_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("# staff\nAda Lovelace\n\nGrace Hopper\n")
    (tmp_path / "p.toml").write_text('[[find]]\nclass = "staff"\nwords_file = "words.txt"\n')
    read = policy.load(tmp_path / "p.toml")
    assert read.words == 2
    assert read.own[0].words == ("Ada Lovelace", "Grace Hopper")


MALFORMED = {
    "no value": ("name =\n", "1:7", "is no TOML"),
    "a table twice": ('[classes]\ne_mail = "mask"\n[classes]\n', "3:9", "is no TOML"),
    "an open string": ('name = "a\n', "1:", "is no TOML"),
    "an unknown key": ('\nnme = "a"\n', "2:1", "there is no key 'nme' here"),
    "an unknown key, indented": (
        '[[rule]]\n  do = "keep"\n  klass = "e_mail"\n',
        "3:3",
        "there is no key 'klass' here",
    ),
    "an unknown class": ('[classes]\n\n# why not\nemail = "mask"\n', "4:1", "there is no class or group 'email'"),
    "an unknown class in the second rule": (
        '[[rule]]\nclass = "e_mail"\ndo = "keep"\n\n[[rule]]\ndo = "keep"\nclass = [\n  "e_mail",\n  "telefone",\n]\n',
        "7:1",
        "there is no class 'telefone'",
    ),
    "an unknown action": ('[[rule]]\nclass = "e_mail"\ndo = "kepe"\n', "3:1", "'do' cannot be 'kepe'"),
    "no action": ('name = "x"\n[[rule]]\nclass = "e_mail"\n', "2:1", "'do' is missing"),
    "an unknown payload": ('payloads = "redact"\n', "1:1", "'payloads' cannot be 'redact'"),
    "a number for a text": ("payloads = 3\n", "1:1", "has to be a text, not a number"),
    "an empty text": ('name = ""\n', "1:1", "has to be a text, not an empty one"),
    "a table for an array": ('[rule]\ndo = "keep"\n', "1:1", "write [[rule]]"),
    "a text for a table": ('key = "abc"\n', "1:1", "has to be a table"),
    "two keys": ('[key]\nenv = "A"\nfile = "b"\n', "3:1", "in a variable or in a file"),
    "an unknown start": ('extends = "defualt"\n', "1:1", "no policy 'defualt'"),
    "a start that is not there": ('\nextends = "other.toml"\n', "2:1", "no file other.toml"),
    "a boundary that is none": ('[[rule]]\ngroup = "personal"\nboundary = "tcp"\ndo = "keep"\n', "3:1", "no boundary"),
    "everything whole": ('[[rule]]\nwhole = true\ndo = "drop"\n', "2:1", "say where"),
    "whole and a class": (
        '[[rule]]\nwhole = true\nclass = "e_mail"\ntool = "x"\ndo = "drop"\n',
        "2:1",
        "leave `class` and `group` out",
    ),
    "a class with a capital": ('[[find]]\nclass = "Customer"\nwords = ["ab"]\n', "2:1", "lower-case"),
    "a class that is taken": (
        '[[find]]\nclass = "e_mail"\nwords = ["ab"]\n',
        "2:1",
        "there is a class 'e_mail' already",
    ),
    "a class that finds nothing": ('[[find]]\nclass = "own"\n', "2:1", "nothing says how 'own' is found"),
    "a short word": ('[[find]]\nclass = "own"\nwords = [\n  "good",\n  "x",\n]\n', "5:3", "a word has 2 to 200"),
    "a pattern without end": (
        "[[find]]\nclass = \"own\"\npattern = 'ab[0-9]+'\n",
        "3:1",
        "at its character 8: `+` has no end",
    ),
    "a nested repeat": ("[[find]]\nclass = \"own\"\npattern = '(?:a{1,9}){1,20}b'\n", "3:1", "more than 20000 ways"),
    "a reference back": (
        "[[find]]\nclass = \"own\"\npattern = [\n  'ab[0-9]{2}',\n  '(ab)\\1',\n]\n",
        "5:3",
        "pattern 2 is refused: it refers back",
    ),
    "a pattern that is none": ("[[find]]\nclass = \"own\"\npattern = 'ab('\n", "3:1", "it is no pattern of `re`"),
    "an empty list": ('[[rule]]\nclass = []\ndo = "keep"\n', "2:1", "is an empty list"),
    "true for a text": ('[[find]]\nclass = "own"\nwords = ["ab", true]\n', "3:1", "list of texts, not true or false"),
    "a kind of name that is none": (
        '[names]\npresidio = true\nentities = ["PERSON", "CAT"]\n',
        "3:1",
        "there is no kind of name 'CAT'",
    ),
    "no words file": ('[[find]]\nclass = "own"\nwords_file = "none.txt"\n', "3:1", "cannot be read"),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_what_is_wrong_is_told_with_its_line(what: str, tmp_path: Path) -> None:
    text, place, problem = MALFORMED[what]
    file = tmp_path / "policy.toml"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        policy.load(file)
    assert refused.value.place.startswith(f"{file}:{place}"), refused.value
    assert problem in str(refused.value)


def test_a_file_that_is_no_text_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_bytes(b'name = "a"\n# \xff\n')
    with pytest.raises(InputError, match=r"p\.toml:2: is not UTF-8"):
        policy.load(tmp_path / "p.toml")
    with pytest.raises(InputError, match="cannot be read"):
        policy.load(tmp_path / "none.toml")


def test_policies_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('extends = "b.toml"\n')
    (tmp_path / "b.toml").write_text('\nextends = "a.toml"\n')
    with pytest.raises(InputError, match=r"b\.toml:2:1: a\.toml extends this policy in turn"):
        policy.load(tmp_path / "a.toml")


def test_an_error_in_what_is_extended_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('extends = "b.toml"\n')
    (tmp_path / "b.toml").write_text('payloads = "x"\n')
    with pytest.raises(InputError, match=r"b\.toml:1:1"):
        policy.load(tmp_path / "a.toml")


def test_no_error_shows_a_word_that_is_to_be_hidden() -> None:
    with pytest.raises(InputError) as refused:
        policy.parse('[[find]]\nclass = "own"\nwords = ["Hush Hush", 5]\nany_case = true\n')
    assert "Hush" not in str(refused.value)


def test_a_policy_that_cannot_be_read_leaves_the_payloads_out() -> None:
    plan = policy.failing(InputError("/somewhere/policy.toml:3:1", "there is no key 'x' here"))
    assert plan.payloads == "drop"
    assert plan.failed == "policy.toml:3:1: there is no key 'x' here"
    assert plan.whole(Place(attribute="input.value", kind="TOOL", boundary="function")) == "drop"
    assert plan.whole(Place(attribute="llm.model_name", kind="LLM")) is None


def test_classes_of_ones_own_are_found_with_and_without_an_anchor() -> None:
    text = """[[find]]
class = "plate"
pattern = '[A-Z]{3} [0-9]{4}'
[[find]]
class = "staff"
words = ["李明", "Zoë Quinn", "Ada"]
any_case = true
[[find]]
class = "customer"
pattern = '(?:cus|acct)_(?P<secret>[a-z0-9]{8})'
do = "mask"
"""
    engine = Engine(policy.parse(text).plan(b"k"), key=b"k" * 32, shared=False)
    said = engine.text('{"a": ["car ABC 1234 of 李明"], "b": "zoë quinn, ADA; cus_abcd1234. Adaptive"}')
    for gone in ("ABC 1234", "李明", "zoë", "ADA;", "abcd1234"):
        assert gone not in said, gone
    assert "cus_REDACTED_customer. Adaptive" in said
    assert engine.replaced == {"plate": 1, "staff": 3, "customer": 1}
    assert engine.text(said) == said
