"""The pytest plugin, in real inner runs of pytest."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from wsgiref import simple_server

import flask
import openai.resources.chat.completions
import pytest
import uvicorn
import werkzeug.serving

from reenact.demo.provider import StandIn

pytest_plugins = ["pytester"]

LOADED = openai.resources.chat.completions  # so that inner runs in this process do not load it each for itself
SERVERS = (flask, uvicorn, werkzeug.serving, simple_server)
"""Loaded before inner runs, which take away again what they load, and leave hooks that were called for it."""
AGENT = """
from openai import OpenAI

SYSTEM = "You answer in a word."


def ask(question, **further):
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    return OpenAI().chat.completions.create(model="stand-in-cleanup", messages=messages, **further).choices[0].message
"""


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Give a project that holds an agent, with no key in its environment."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "REENACT_MODE", "REENACT_STORE", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    pytester.makefile(".toml", pyproject="")
    pytester.makepyfile(agent=AGENT)
    return pytester


@pytest.fixture
def provider() -> Iterator[StandIn]:
    with StandIn(slip=0.0, max_delay_ms=1) as standing:
        yield standing


def run(inner: pytest.Pytester, *words: str, apart: bool = False) -> pytest.RunResult:
    """Run pytest inside: `apart` in a process of its own, else in this one, which has the SDK loaded already."""
    start = inner.runpytest_subprocess if apart or "-n" in words else inner.runpytest_inprocess
    return start("-p", "no:cacheprovider", "-q", *words)


def live(inner: pytest.Pytester, provider: StandIn, *words: str) -> pytest.RunResult:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in provider.environment.items():
            patch.setenv(name, value)
        return run(inner, *words)


IN_PROCESS = """
import asyncio
import pytest
from agent import ask

@pytest.mark.reenact("recordings/plain.jsonl")
def test_plain(tmp_path):
    (tmp_path / "note").write_text("a test may write")
    assert ask("one").role == "assistant"

@pytest.mark.reenact
@pytest.mark.parametrize("word", ["a-b", "a_b"])
def test_of_each(word):
    ask(word)

@pytest.mark.reenact
class TestClass:
    @pytest.fixture
    def answer(self):
        return ask("asked by a fixture")

    def test_fixture(self, answer):
        assert answer.role == "assistant"

    def test_gathers(self, reenact_here):
        async def two():
            return await asyncio.gather(*(asyncio.to_thread(ask, word) for word in "xy"))
        assert len(asyncio.run(two())) == 2
        reenact_here.holds("called llm exactly 2 times")
"""


@pytest.mark.always
def test_recorded_once_then_answered_from_the_fixture(inner: pytest.Pytester, provider: StandIn) -> None:
    inner.makepyfile(test_in=IN_PROCESS)
    missing = run(inner, "-k", "plain")
    missing.stdout.fnmatch_lines(
        ["there is no recording at recordings/plain.jsonl", "*pytest --reenact-mode=once 'test_in.py::test_plain'*"]
    )
    missing.stdout.no_fnmatch_line("*Traceback*")
    live(inner, provider, "--reenact-mode=once").assert_outcomes(passed=5)
    asked = provider.served.requests
    assert asked == 6
    files = sorted(str(path.relative_to(inner.path)) for path in (inner.path / "recordings").rglob("*.jsonl"))
    assert [re.sub(r"_[0-9a-f]{6}\.", ".", name) for name in files] == [
        "recordings/plain.jsonl",
        "recordings/test_in/TestClass_test_fixture.jsonl",
        "recordings/test_in/TestClass_test_gathers.jsonl",
        "recordings/test_in/test_of_each_a_b.jsonl",
        "recordings/test_in/test_of_each_a_b.jsonl",
    ]
    assert str(inner.path) not in "".join((inner.path / name).read_text() for name in files)
    live(inner, provider, "--reenact-mode=once").assert_outcomes(passed=5)
    run(inner, "-n", "2").assert_outcomes(passed=5)
    assert provider.served.requests == asked


def test_modes_flip_the_same_code_path(
    inner: pytest.Pytester, provider: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner.makepyfile(
        test_one="""
        import pytest
        from agent import ask
        @pytest.mark.reenact("one.jsonl")
        def test_one():
            ask("one")
        """
    )
    monkeypatch.setenv("REENACT_MODE", "record")
    live(inner, provider).assert_outcomes(passed=1)
    fixture = inner.path / "one.jsonl"
    first = fixture.read_bytes()
    monkeypatch.setenv("REENACT_MODE", "live")
    live(inner, provider).assert_outcomes(passed=1)
    assert (provider.served.requests, fixture.read_bytes()) == (2, first)
    run(inner, "--reenact-mode=replay").assert_outcomes(passed=1)  # the command line stands above the environment
    monkeypatch.delenv("REENACT_MODE")
    test = inner.path / "test_one.py"
    test.write_text(test.read_text().replace('ask("one")', 'ask("one"); ask("two")'))
    live(inner, provider).assert_outcomes(failed=1)
    added = live(inner, provider, "--reenact-mode=new_episodes")
    added.assert_outcomes(passed=1)
    added.stdout.fnmatch_lines(["1 calls added to one.jsonl"])
    assert provider.served.requests == 3
    assert fixture.read_bytes().startswith(first)
    run(inner).assert_outcomes(passed=1)
    before = fixture.read_bytes()
    test.write_text(test.read_text().replace('("one.jsonl")', '("one.jsonl", keep=True)'))
    live(inner, provider, "--reenact-mode=record").assert_outcomes(passed=1)
    assert (provider.served.requests, fixture.read_bytes()) == (3, before)
    misspelt = run(inner, "--reenact-mode=never")
    assert misspelt.ret == pytest.ExitCode.USAGE_ERROR
    misspelt.stderr.fnmatch_lines(["*--reenact-mode: there is no mode 'never'*"])


@pytest.mark.slow
def test_a_program_of_its_own_is_recorded_and_replayed(inner: pytest.Pytester, provider: StandIn) -> None:
    inner.makepyfile(
        main="""
        import sys
        from agent import ask
        for word in sys.argv[1:]:
            ask(word)
        print("done")
        """,
        test_one="""
        import pytest
        @pytest.mark.reenact("main.jsonl")
        def test_main(reenact_replay):
            outcome = reenact_replay("python", "main.py", "one")
            assert (outcome.exit_code, outcome.stdout) == (0, "done\\n")
            outcome.holds("called llm exactly 1 time")
        @pytest.mark.reenact("main.jsonl")
        def test_says_nothing(reenact_replay):
            reenact_replay("python", "main.py", "two")
        """,
    )
    run(inner, "-k", "main").stdout.fnmatch_lines(["there is no recording at main.jsonl"])
    live(inner, provider, "--reenact-mode=once", "-k", "test_main").assert_outcomes(passed=1)
    live(inner, provider, "--reenact-mode=live", "-k", "test_main").assert_outcomes(passed=1)
    assert provider.served.requests == 2
    done = run(inner)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*_ test_says_nothing _*", "diverged: llm *", '  recorded  "one"', '  now       "two"'])
    test = inner.path / "test_one.py"
    test.write_text(test.read_text().replace('"one")', '"one", "two")').replace("exactly 1 time", "exactly 2 times"))
    added = live(inner, provider, "--reenact-mode=new_episodes", "-k", "test_main")
    added.stdout.fnmatch_lines(["1 calls added to main.jsonl"])
    run(inner, "-k", "test_main").assert_outcomes(passed=1)
    assert provider.served.requests == 3


SWALLOWS = """
import pytest
import agent

@pytest.mark.reenact("one.jsonl")
def test_same():
    agent.ask("one")

@pytest.mark.reenact("one.jsonl")
def test_other():
    try:
        agent.ask("something else")
    except BaseException:
        pass

@pytest.mark.reenact("one.jsonl")
def test_nothing():
    pass

@pytest.mark.reenact("one.jsonl")
def test_own_failure():
    assert agent.ask("one").content is None, "its own reason"
"""


def test_a_failure_says_what_differs_and_where(inner: pytest.Pytester, provider: StandIn) -> None:
    inner.makepyfile(test_one=SWALLOWS)
    live(inner, provider, "--reenact-mode=once", "-k", "same").assert_outcomes(passed=1)
    done = run(inner)
    done.assert_outcomes(passed=1, failed=3)
    done.stdout.fnmatch_lines(
        [
            "*_ test_other _*",
            "diverged: llm ChatCompletion #2: body.messages[[]1[]].content differs",
            '  recorded  "one"',
            '  now       "something else"',
            "  asked at  agent.py:*",
            "  recording one.jsonl (run *",
            "  next      reenact show one.jsonl",
            "            pytest --reenact-mode=record 'test_one.py::test_other'   records it anew",
            "*_ test_nothing _*",
            "diverged: llm ChatCompletion #2 was recorded and is not called any more",
            "*_ test_own_failure _*",
            "*AssertionError: its own reason*",
        ]
    )
    said = str(done.stdout)
    assert "replayer.py" not in said, "no frames of ours"
    assert said.count("diverged:") >= 2


@pytest.mark.slow
def test_what_is_told_at_the_end(inner: pytest.Pytester, provider: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    inner.makepyfile(
        test_one="""
        import pytest
        from agent import ask
        @pytest.mark.reenact("recordings/one.jsonl", strict=False)
        def test_one():
            ask("one")
            if not pytest.recordings.exists():
                ask("two")
        """,
        conftest="""
        import pathlib, pytest
        def pytest_configure(config):
            pytest.recordings = pathlib.Path(config.rootpath, "recordings")
        """,
    )
    live(inner, provider, "--reenact-mode=once").assert_outcomes(passed=1)
    (inner.path / "recordings" / "forgotten.jsonl").write_text("{}\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(inner.path / "summary.md"))
    stale = "recordings/forgotten.jsonl: no test uses it*"
    for words in ((), ("-n", "2")):
        done = run(inner, *words, "--junit-xml=junit.xml")
        done.assert_outcomes(passed=1)
        done.stdout.fnmatch_lines(["recordings/one.jsonl: 1 recorded calls were not asked for", stale])
    run(inner, "test_one.py").stdout.no_fnmatch_line(stale)  # a part of the session cannot know
    table = (inner.path / "summary.md").read_text()
    assert "| test\\_one.py::test\\_one | passed, same | recordings/one.jsonl |" in table
    properties = {each.get("name"): each.get("value") for each in ET.parse(inner.path / "junit.xml").iter("property")}
    assert (properties["reenact.word"], properties["reenact.fixture"]) == ("same", "recordings/one.jsonl")
    assert re.fullmatch("[0-9a-f]{12}", properties["reenact.run"] or "")


NETWORK = """
import socket, urllib.request
import pytest
from agent import ask

def fetch(port):
    return urllib.request.urlopen(f"http://127.0.0.1:{port}/pricing/quote?sku=KETTLE-2L").status

@pytest.mark.reenact("one.jsonl")
def test_shut():
    ask("one")
    with pytest.raises(BaseException):
        socket.create_connection(("127.0.0.1", 9))

@pytest.mark.reenact("one.jsonl", allowed_hosts=["localhost"])
def test_open():
    ask("one")
    assert fetch(PORT) in (200, 429)
"""


@pytest.mark.slow
def test_the_network_is_shut_unless_a_host_is_named(inner: pytest.Pytester, provider: StandIn) -> None:
    port = provider.origin.rpartition(":")[2]
    inner.makepyfile(test_one=NETWORK.replace("PORT", port))
    inner.makepyfile(
        test_rec='import pytest\nfrom agent import ask\n@pytest.mark.reenact("one.jsonl")\ndef test_r(): ask("one")\n'
    )
    live(inner, provider, "--reenact-mode=once", "test_rec.py").assert_outcomes(passed=1)
    done = run(inner, "test_one.py")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        ["*_ test_shut _*", "*look up 127.0.0.1:9 at test_one.py:*was refused*", "*--reenact-allowed-hosts=127.0.0.1*"]
    )
    for option in ("--reenact-allow-network", "--reenact-allowed-hosts=127.0.0.1"):
        opened = run(inner, "test_one.py", option, "-k", "open")
        opened.assert_outcomes(passed=1)


def test_unittest_classes_xfail_and_skips(inner: pytest.Pytester, provider: StandIn) -> None:
    inner.makepyfile(
        test_one="""
        import unittest
        import pytest
        from agent import ask
        @pytest.mark.reenact
        class TestOld(unittest.TestCase):
            def test_a(self):
                assert ask("a").role == "assistant"
            @unittest.skip("not now")
            def test_b(self):
                pass
        @pytest.mark.reenact
        @pytest.mark.xfail(strict=True)
        def test_known():
            ask("one")
            raise RuntimeError
        """
    )
    for words in (("--reenact-mode=once",), ()):
        live(inner, provider, *words, "-k", "Old").assert_outcomes(passed=1, skipped=1, deselected=1)
    run(inner).assert_outcomes(passed=1, skipped=1, xfailed=1)


def test_a_conftest_settles_what_tests_do_not_say(inner: pytest.Pytester, provider: StandIn) -> None:
    inner.makepyfile(
        conftest="""
        import pytest
        @pytest.fixture
        def reenact_config():
            return {"mode": "once", "folder": "tapes"}
        """,
        test_one="""
        import pytest
        from agent import ask
        @pytest.mark.reenact
        def test_one():
            ask("one")
        @pytest.mark.reenact(mode="none")
        def test_two():
            ask("two")
        """,
    )
    live(inner, provider).assert_outcomes(passed=1, errors=1)
    assert (inner.path / "tapes" / "test_one" / "test_one.jsonl").exists()


def test_an_unexpected_call_of_the_mock_fails_the_test(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        test_one="""
        from agent import ask
        def test_one(mock_llm):
            mock_llm.add_response("hello")
            assert ask("one").content == "hello"
            assert mock_llm.call_count == 1
        def test_two(mock_llm):
            try:
                ask("where is it?")
            except BaseException:
                pass
        """
    )
    done = run(inner)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        [
            "unexpected call: call 1 of openai.chat to stand-in-cleanup, and no response was added; *'where is it?'*",
            "  add one with mock_llm.add_response(*",
        ]
    )


def test_a_project_that_uses_none_of_it_pays_for_none_of_it(inner: pytest.Pytester) -> None:
    inner.makepyfile(
        test_one="""
        import sys
        def test_one():
            assert "reenact.pytest_plugin" in sys.modules
            ours = {name for name in sys.modules if name.startswith("reenact.")}
            heavy = [name for name in ours if name.split(".")[1] in {"testing", "pipeline", "replay", "record"}]
            assert not heavy
            assert not {"opentelemetry.sdk", "openai", "click", "lark"} & sys.modules.keys()
        """
    )
    run(inner, apart=True).assert_outcomes(passed=1)


def test_async_tests_of_pytest_asyncio(inner: pytest.Pytester, provider: StandIn) -> None:
    pytest.importorskip("pytest_asyncio", reason="pytest-asyncio is not installed; plain asyncio.run is tested above")
    inner.makepyfile(
        test_one="""
        import asyncio, pytest
        from agent import ask
        @pytest.mark.asyncio
        @pytest.mark.reenact
        async def test_one():
            assert (await asyncio.to_thread(ask, "one")).role == "assistant"
        """
    )
    live(inner, provider, "--reenact-mode=once").assert_outcomes(passed=1)
    run(inner).assert_outcomes(passed=1)


def test_fixture_files_of_several_writers_are_whole(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from reenact.testing import fixtures
    from reenact.values.span import SpanRecord

    def spans(number: int) -> list[SpanRecord]:
        return [
            SpanRecord(
                trace_id=f"{number:032x}", span_id=f"{at:016x}", parent_id=None, name="x" * 500, start_ns=1, end_ns=2
            )
            for at in range(1, 50)
        ]

    path = tmp_path / "recordings" / "one.jsonl"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: fixtures.write(path, spans(number)), range(1, 30)))
    assert len({line[line.index("traceId") :][:50] for line in path.read_text().splitlines()}) == 1
    assert [each.name for each in path.parent.iterdir()] == ["one.jsonl"]
