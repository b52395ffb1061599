"""Clients in native code, which no audit event of Python's shows: a recording names them, a replay refuses them."""

from __future__ import annotations

import importlib.machinery
import json
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from desk import Desk

CLIENTS = {
    "psycopg2, asynchronous": (
        "import psycopg2; c = psycopg2.connect(f'host=127.0.0.1 port={port} connect_timeout=2', async_=1); c.poll()"
    ),
    "grpc": "import grpc; grpc.insecure_channel(f'127.0.0.1:{port}').stream_unary('/a/b')(iter([b'']), timeout=2)",
    "grpc, streamed": (
        "import grpc; next(grpc.insecure_channel(f'127.0.0.1:{port}').stream_stream('/a/b')(iter([b'']), timeout=2))"
    ),
    "grpc, asynchronous": (
        "import asyncio, grpc.aio\n"
        "async def main():\n"
        "    async with grpc.aio.insecure_channel(f'127.0.0.1:{port}') as channel:\n"
        "        await channel.stream_unary('/a/b')(iter([b'']), timeout=2)\n"
        "asyncio.run(main())"
    ),
    "grpc, its channel watched": (
        "import time, grpc; c = grpc.insecure_channel(f'127.0.0.1:{port}')\n"
        "c.subscribe(lambda state: None, try_to_connect=True); time.sleep(0.3)"
    ),
    "grpc, asked for its state": (
        "import asyncio, grpc.aio\n"
        "async def main():\n"
        "    async with grpc.aio.insecure_channel(f'127.0.0.1:{port}') as channel:\n"
        "        channel.get_state(try_to_connect=True)\n"
        "        await asyncio.sleep(0.2)\n"
        "asyncio.run(main())"
    ),
    "pycurl": "import pycurl; c = pycurl.Curl(); c.setopt(c.URL, f'http://127.0.0.1:{port}/'); c.perform()",
    "curl_cffi": "from curl_cffi import requests; requests.get(f'http://127.0.0.1:{port}/')",
    "uvloop": "import asyncio, uvloop; uvloop.run(asyncio.wait_for(asyncio.open_connection('127.0.0.1', port), 2))",
    "zmq": (
        "import time, zmq\n"
        "s = zmq.Context().socket(zmq.PUSH); s.connect(f'tcp://127.0.0.1:{port}'); time.sleep(0.2); s.close(0)"
    ),
}

PROGRAM = """
import sys
import reenact

@reenact.tool
def look_up(item):
    return item

look_up("tea")
for code, port in zip(CLIENTS, map(int, sys.argv[1:])):
    try:
        exec(code, {"port": port})
    except BaseException:  # a refusal, too
        pass
"""


@contextmanager
def listener(heard: list[int]) -> Iterator[int]:
    """Listen on a port, and hang up on whoever connects."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]

        def serve() -> None:
            with suppress(OSError):
                while True:
                    server.accept()[0].close()
                    heard.append(port)

        threading.Thread(target=serve, daemon=True).start()
        yield port
        server.shutdown(socket.SHUT_RDWR)


def test_native_clients_are_named_in_the_verdict_and_refused_in_a_replay(desk: Desk) -> None:
    heard = list[int]()
    program = desk.write("agent.py", PROGRAM.replace("CLIENTS", repr([*CLIENTS.values()])))
    with ExitStack() as stack:
        ports = [stack.enter_context(listener(heard)) for _ in CLIENTS]
        done = desk.reenact("run", "-q", "--", "python", program, *map(str, ports))
        assert done.returncode == 0, done.stderr
        assert {*heard} == {*ports}, "each client reached its server"
        verdict = json.loads(desk.reenact("show", "last", "--json").stdout)["run"]["verdict"]
        assert verdict["grade"] == "partial"
        said = " ".join(reason["lost"] for reason in verdict["reasons"])
        libraries = {name.split("'")[0].split(",")[0] for name in CLIENTS}
        assert [name for name in libraries if f"by {name} at " not in said] == []
        heard.clear()
        watched = desk.reenact("replay", "last", "--json", environ={**desk.settings(), "REENACT_ENFORCE": "off"})
        refused = " ".join(each["what"] for each in json.loads(watched.stdout)["refused"])
        assert watched.returncode == 125, "the recorded run reached out too: that says nothing of the program"
        assert [name for name in libraries if f"by {name}" not in refused] == []
        assert not heard, "the kernel kept nobody out, and nobody was reached"


@pytest.mark.slow
def test_a_database_in_memory_is_no_effect_and_one_in_a_file_is(desk: Desk) -> None:
    code = (
        "import duckdb, reenact, sys\n"
        "look_up = reenact.tool(lambda item: item)\n"
        "look_up('tea')\n"
        "print(duckdb.connect(*sys.argv[1:]).execute('select 42').fetchall())\n"
    )
    program = desk.write("agent.py", code)
    for words, grade in (((), "exact"), ((":memory:",), "exact")):
        assert desk.reenact("run", "-q", "--", "python", program, *words).stdout == "[(42,)]\n"
        assert json.loads(desk.reenact("show", "last", "--json").stdout)["run"]["verdict"]["grade"] == grade
        assert desk.reenact("replay", "last").returncode == 0
    desk.reenact("run", "-q", "--", "python", program, "kept.duckdb")
    watched = desk.reenact("replay", "last", environ={**desk.settings(), "REENACT_ENFORCE": "off"})
    assert "open database kept.duckdb" in watched.stderr


NATIVE = """
import ctypes, socket
import pyarrow, pyarrow.parquet
import reenact

@reenact.tool
def look_up(item):
    return item

look_up("tea")
libc = ctypes.CDLL(None)
print(libc.getppid() > 0)
pyarrow.parquet.write_to_dataset(pyarrow.table({"a": [1]}), "tables", basename_template="part-{i}")
"""


def test_native_functions_that_the_agent_calls_itself_are_named_and_so_are_libraries_that_nobody_watches(
    desk: Desk,
) -> None:
    program = desk.write("agent.py", NATIVE)
    assert desk.reenact("run", "-q", "--", "python", program).stdout == "True\n"
    verdict = json.loads(desk.reenact("show", "last", "--json").stdout)["run"]["verdict"]
    assert verdict["grade"] == "partial"
    (reason,) = (each for each in verdict["reasons"] if each["field"] == "side effect")
    assert reason["lost"].startswith("native code: getppid by ctypes at ")
    assert reason["lost"].endswith("agent.py:12: what it does is not witnessed")
    (desk.folder / "tables" / "part-0").unlink()
    watched = desk.reenact("replay", "last", environ={**desk.settings(), "REENACT_ENFORCE": "off"})
    assert watched.returncode == 0, watched.stderr
    line = next(line for line in watched.stderr.splitlines() if "not watched: " in line)
    assert "native code: getppid by ctypes at " in line
    assert "native code of pyarrow" in line
    (desk.folder / "tables" / "part-0").unlink()
    sealed = desk.reenact("replay", "last")
    assert sealed.returncode == 0, sealed.stderr
    if "copied: files" in sealed.stderr:
        assert "not watched" not in sealed.stderr
        assert "unwitnessed write" in sealed.stderr
        assert not (desk.folder / "tables" / "part-0").exists()


def test_a_socket_that_speaks_to_the_kernel_is_noted(desk: Desk) -> None:
    program = desk.write(
        "agent.py",
        "import reenact, socket\nlook_up = reenact.tool(lambda item: item)\nlook_up('tea')\n"
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()\n",
    )
    assert desk.reenact("run", "-q", "--", "python", program).returncode == 0
    verdict = json.loads(desk.reenact("show", "last", "--json").stdout)["run"]["verdict"]
    assert any("open a netlink socket at " in each["lost"] for each in verdict["reasons"])
    assert "open a netlink socket" in desk.reenact("replay", "last").stderr


def test_what_a_declared_tool_reaches_is_the_tools(desk: Desk) -> None:
    code = CLIENTS["pycurl"].replace("\n", "; ")
    program = desk.write(
        "agent.py",
        "import reenact, sys\nport = int(sys.argv[1])\n@reenact.tool\ndef query(sql):\n"
        f"    try:\n        {code}\n    except Exception as error:\n        return type(error).__name__\n"
        "print(query('select 1'))\n",
    )
    heard = list[int]()
    with listener(heard) as port:
        said = desk.reenact("run", "-q", "--", "python", program, str(port)).stdout
        assert json.loads(desk.reenact("show", "last", "--json").stdout)["run"]["verdict"]["grade"] == "exact"
        heard.clear()
        again = desk.reenact("replay", "last")
        assert (again.returncode, again.stdout, heard) == (0, said, [])


ANY_LIBRARY = """
import importlib.util, os
import reenact

@reenact.tool
def look_up(name):
    return name

look_up("tea")
place = importlib.util.spec_from_file_location("{name}", "{path}")
importlib.util.module_from_spec(place)
look_up("salt")
print("done", flush=True)
os._exit(0)
"""


def test_a_library_that_nobody_listed_is_named_by_a_watched_replay_also_of_a_program_that_ends_at_once(
    desk: Desk,
) -> None:
    built_in = Path(importlib.machinery.PathFinder.find_spec("_bisect").origin)
    shutil.copy(built_in, desk.folder / built_in.name)
    program = desk.write("agent.py", ANY_LIBRARY.format(name="_bisect", path=desk.folder / built_in.name))
    assert desk.reenact("run", "-q", "--", "python", program).stdout == "done\n"
    watched = desk.reenact("replay", "last", environ={**desk.settings(), "REENACT_ENFORCE": "off"})
    assert watched.returncode == 0, watched.stderr
    assert "native code of _bisect" in next(line for line in watched.stderr.splitlines() if "not watched: " in line)
