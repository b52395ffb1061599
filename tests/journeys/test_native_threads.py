"""Functions that native code calls on a thread of its own, where no frame of Python's stands below."""

from __future__ import annotations

from desk import Desk

# A runtime in Rust wakes a loop so; here it is ctypes: it calls the method itself, and no function of the program's.
WOKEN = """
import asyncio, ctypes, functools
import reenact

@reenact.tool
def price(name):
    return len(name)

START = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
native = ctypes.CDLL(None)

def start(function):
    started, thread = START(function), ctypes.c_ulong()
    assert native.pthread_create(ctypes.byref(thread), None, started, None) == 0
    return started

async def main():
    loop = asyncio.get_running_loop()
    woken = loop.create_future()
    kept = start(functools.partial(loop.call_soon_threadsafe, lambda _: woken.set_result("woken")))
    print(await asyncio.wait_for(woken, 20), price("tea"))

asyncio.run(main())
"""


def test_a_loop_that_native_code_wakes_goes_on(desk: Desk) -> None:
    desk.write("agent.py", WOKEN)
    live = desk.reenact("run", "--", "python", "agent.py")
    assert (live.returncode, live.stdout) == (0, "woken 3\n"), live.stderr
    assert "Exception ignored" not in live.stderr
    again = desk.reenact("replay", "last")
    assert (again.returncode, again.stdout) == (0, live.stdout), again.stderr
