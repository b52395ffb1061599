from __future__ import annotations

import asyncio
import contextlib
import itertools
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from openai import OpenAI

import reenact
from desk import Desk
from held import Did, Held
from reenact.demo.provider import StandIn
from reenact.errors import Diverged, Miss
from reenact.replay import release
from reenact.values.judgement import ReplayResult

ticket = itertools.count(1)


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held(tmp_path)


@pytest.fixture
def provider() -> Iterator[StandIn]:
    with StandIn(max_delay_ms=10) as standing:
        yield standing


@reenact.tool
def fetch(item: str) -> str:
    return f"{item} {next(ticket)}"


@reenact.tool
async def fetch_later(item: str) -> str:
    await asyncio.sleep(0.001 * (next(ticket) % 7))
    return f"{item} {next(ticket)}"


def ask(url: str, prompt: str) -> str:
    with OpenAI(base_url=url, api_key="x", max_retries=0) as client:
        reply = client.chat.completions.create(
            model="stand-in-everything", messages=[{"role": "user", "content": prompt}]
        )
    return reply.choices[0].message.content or ""


def judged(did: Did) -> ReplayResult:
    assert did.result is not None
    return did.result


# misses


def test_a_miss_names_the_nearest_call_and_the_field_and_stops_the_replay(held: Held) -> None:
    did = held.record(lambda: [fetch("tea"), fetch("milk")])
    tried: list[BaseException] = []

    def swallows() -> None:
        for item in ("tea", "coffee", "milk"):
            try:
                fetch(item)
            except BaseException as error:  # noqa: BLE001 - an agent that swallows everything
                tried.append(error)

    again = held.replay(did, swallows)
    assert [type(error) for error in tried] == [Miss, Miss]
    assert 'arguments.item: recorded "milk", replay "coffee"' in str(tried[0])
    assert str(tried[1]) == str(tried[0]), "nothing that follows is evidence"
    assert judged(again).result == "diverged"
    assert len(judged(again).misses) == 1


def test_a_replay_that_was_not_the_same_raises_at_its_end_even_where_the_agent_swallowed_it(held: Held) -> None:
    did = held.record(lambda: fetch("tea"))
    replay = reenact.replay(did.found, store=held.store)
    replay.__enter__()
    with contextlib.suppress(BaseException):
        fetch("coffee")
    with pytest.raises(Diverged, match="coffee"):
        replay.__exit__(None, None, None)


def test_one_call_more_than_recorded_is_a_miss(held: Held) -> None:
    did = held.record(lambda: fetch("tea"))
    again = held.replay(did, lambda: [fetch("tea"), fetch("tea")])
    assert isinstance(again.error, Miss)
    assert judged(again).misses[0]["recorded"] == {"times": 1, "about": {"item": "tea"}}


def test_structure_that_is_new_is_no_miss(held: Held) -> None:
    did = held.record(lambda: fetch("tea"))

    @reenact.chain
    def added() -> str:
        return fetch("tea")

    again = held.replay(did, added)
    assert again.value == did.value


# order


def test_as_completed_gives_the_recorded_order(held: Held) -> None:
    def work() -> list[str]:
        @reenact.tool
        def slow(item: str) -> str:
            time.sleep(0.002 * (next(ticket) % 5))
            return f"{item} {next(ticket)}"

        with ThreadPoolExecutor(4) as pool:
            return [done.result() for done in futures.as_completed([pool.submit(slow, str(n % 2)) for n in range(8)])]

    did = held.record(work)
    for _ in range(3):
        again = held.replay(did, work)
        assert again.value == did.value
        assert judged(again).released_out_of_order == []


def test_threads_that_append_do_so_in_the_recorded_order_of_answers(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "GRACE_S", 1.0)  # on a busy machine a thread may take its time to go on

    def work() -> list[str]:
        out: list[str] = []
        threads = [threading.Thread(target=lambda n=n: out.append(fetch(str(n)))) for n in range(6)]  # type: ignore[misc]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return out

    did = held.record(work)
    answers = [node.outcome for node in sorted(did.calls, key=lambda node: node.end_order)]
    for _ in range(3):
        assert held.replay(did, work).value == [outcome.payload.json for outcome in answers]  # type: ignore[union-attr]


def test_tasks_with_equal_questions_each_get_their_own_answer(held: Held) -> None:
    async def branch(number: int) -> str:
        return f"{number}: {await fetch_later('same')} {await fetch_later('same')}"

    async def work() -> list[str]:
        return [await done for done in asyncio.as_completed([branch(number) for number in range(8)])]

    did = held.record(lambda: asyncio.run(work()))
    for _ in range(3):
        again = held.replay(did, lambda: asyncio.run(work()))
        assert again.value == did.value
        assert judged(again).result == "same"


# policies


def test_live_tools_run_and_may_use_the_network_while_models_are_answered(
    held: Held, provider: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "PATIENCE_S", 3600.0)  # nobody waits for what went live
    url = provider.base_url

    @reenact.tool
    def look(item: str) -> int:
        import httpx2

        return httpx2.get(f"{provider.origin}/pricing/quote?sku={item}").status_code + next(ticket)

    def work() -> tuple[int, str, int]:
        return look("KETTLE-2L"), ask(url, "Name an animal."), look("KETTLE-2L")

    did = held.record(work)
    again = held.replay(did, work, tools="live")
    assert again.error is None
    assert again.value[1] == did.value[1]
    assert again.value[0] != did.value[0]
    result = judged(again)
    assert (result.result, result.live, result.answered) == ("diverged", 2, {"llm": 1})
    first = result.divergences[0]
    assert (first["call"], first["field"], first["live"]) == (did.calls[0].label, "returned", "structure")
    assert (first["a"], first["b"]) == (did.value[0], again.value[0])
    assert result.released_out_of_order == []


def test_live_models_are_asked_and_tools_are_answered(held: Held, provider: StandIn) -> None:
    url = provider.base_url

    def work() -> tuple[str, str]:
        return ask(url, "Name an animal."), fetch("tea")

    did = held.record(work)
    again = held.replay(did, work, models="live")
    assert again.value[1] == did.value[1]
    assert (judged(again).live, judged(again).answered) == (1, {"tool": 1})


def test_recorded_or_live_answers_what_it_can(held: Held, provider: StandIn) -> None:
    url = provider.base_url
    did = held.record(lambda: ask(url, "Name an animal."))
    prompts = ("Name an animal.", "Name a place.")
    again = held.replay(did, lambda: [ask(url, prompt) for prompt in prompts], models="recorded-or-live")
    assert again.error is None
    assert again.value[0] == did.value
    assert (judged(again).live, judged(again).answered) == (1, {"llm": 1})


PROGRAM = """
    import sys
    import reenact
    from openai import OpenAI

    @reenact.tool
    def consult(item):
        reply = OpenAI().chat.completions.create(
            model="stand-in-everything", messages=[{"role": "user", "content": f"Is there {item}?"}])
        return reply.choices[0].message.content

    def told(item):
        chunks = OpenAI().chat.completions.create(
            model="stand-in-everything", messages=[{"role": "user", "content": f"Tell of {item}."}], stream=True)
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

    @reenact.chain
    def about(item):
        return consult(item), told(item)

    print("first:", *about("tea"))
    if sys.argv[1:] == ["more"]:
        print("then:", *about("milk"))
    print("last:", *about("bread"))
    """


@pytest.mark.slow
def test_what_was_fetched_is_added_and_the_next_replay_is_answered_in_full(tmp_path: Path, provider: StandIn) -> None:
    desk = Desk(tmp_path, {"OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "x"})
    program = desk.write("program.py", textwrap.dedent(PROGRAM))
    assert desk.reenact("run", "--", sys.executable, program).returncode == 0
    more = ["--", sys.executable, program, "more"]

    closed = desk.reenact("replay", "last", *more)
    assert closed.returncode == 1
    opened = desk.reenact("replay", "last", "--models", "recorded-or-live", "--tools", "recorded-or-live", *more)
    assert opened.returncode == 0, opened.stderr
    assert "then:" in opened.stdout
    again = desk.reenact("replay", "last", *more)
    assert (again.returncode, again.stdout) == (0, opened.stdout), again.stderr
    assert "0 live" in again.stderr
    assert "out of order" not in again.stderr


# several processes


PARENT = """
    import subprocess, sys
    import reenact

    @reenact.tool
    def fetch(item):
        import random
        return random.random()

    if len(sys.argv) > 1:
        print("child", *(fetch(n) for n in range(3)))
    else:
        print("parent", *(fetch(n) for n in range(3)), flush=True)
        subprocess.run([sys.executable, __file__, "child"], check=True)
        print("parent again", *(fetch(n) for n in range(3)))
    """


@pytest.mark.slow
def test_processes_that_each_number_their_own_do_not_wait_for_each_other(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    program = desk.write("program.py", textwrap.dedent(PARENT))
    live = desk.reenact("run", "--", sys.executable, program)
    assert live.returncode == 0, live.stderr
    again = desk.reenact("replay", "last")
    assert (again.returncode, again.stdout) == (0, live.stdout), again.stderr
    assert "out of order" not in again.stderr
