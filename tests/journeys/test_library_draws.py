"""What installed libraries draw and the program sends or prints: taped where it is seen, and nowhere else."""

from __future__ import annotations

import json

import pytest

from clock_shift import built
from desk import Desk
from reenact.demo.provider import StandIn

MONTH_S = 30 * 86_400
PROGRAM = """
from celery.utils import uuid as celery_id
from django.utils.timezone import now
from django.utils.crypto import get_random_string
from werkzeug.security import gen_salt
from openai import OpenAI
import aiohttp.multipart
import django.conf

django.conf.settings.configure(USE_TZ=True)
client = OpenAI()
session = celery_id()  # seen two calls later
key = get_random_string(40)  # seen nowhere

def ask(prompt):
    reply = client.chat.completions.create(model="stand-in-everything", messages=[{"role": "user", "content": prompt}])
    return reply.choices[0].message.content

ask(f"today is {now():%d %B %Y, %H:%M:%S.%f}")
for n in range(3):
    ask(f"session {session}, step {celery_id()}, {n}")
part = aiohttp.multipart.MultipartWriter()
print("sent", part.boundary, celery_id()[:13], now().isoformat(), len(key), gen_salt(10))
"""


def test_ids_and_times_of_libraries_come_again_a_month_later_and_what_nobody_saw_is_not_written_down(
    desk: Desk, provider: StandIn
) -> None:
    program = desk.write("agent.py", PROGRAM)
    live = desk.reenact("run", "--", "python", program, environ={**desk.bare(), **provider.environment})
    assert live.returncode == 0, live.stderr
    assert "replayable: exact" in live.stderr
    later = {**desk.bare(), "LD_PRELOAD": str(built(desk.folder)), "CLOCK_SHIFT_S": str(MONTH_S)}
    done = desk.reenact("replay", "last", environ=later)
    assert done.returncode == 0, done.stderr
    assert done.stdout == live.stdout
    told = json.loads(desk.reenact("show", "last", "--json").stdout)
    drawn = json.dumps([call["attributes"] for call in told["calls"]])
    assert "kombu" in drawn
    assert "get_random_string" not in drawn


APPOINTED = """
from datetime import UTC, datetime, timedelta
from celery.utils.time import remaining
from openai import OpenAI

due = datetime.now(UTC) + timedelta(hours=1)
OpenAI().chat.completions.create(model="stand-in-everything", messages=[{"role": "user", "content": "hello"}])
print("is not due", remaining(due, timedelta()) > timedelta(minutes=50))
"""


@pytest.mark.slow
def test_a_library_holds_a_time_of_the_program_against_the_clock_of_the_recording(
    desk: Desk, provider: StandIn
) -> None:
    program = desk.write("agent.py", APPOINTED)
    live = desk.reenact("run", "--", "python", program, environ={**desk.bare(), **provider.environment})
    assert "is not due True" in live.stdout, live.stderr
    later = {**desk.bare(), "LD_PRELOAD": str(built(desk.folder)), "CLOCK_SHIFT_S": str(MONTH_S)}
    done = desk.reenact("replay", "last", environ=later)
    assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr
    # What it signs for somebody outside bears today's date.
    done = desk.reenact("replay", "last", "--models", "live", environ={**later, **provider.environment})
    assert "is not due False" in done.stdout, done.stderr


MEASURED = """
from celery.utils import uuid as celery_id
from urllib3.util.timeout import Timeout
from openai import OpenAI

watch = Timeout(total=60)
watch.start_connect()
raw = OpenAI().chat.completions.with_raw_response
reply = raw.create(model="stand-in-everything", messages=[{"role": "user", "content": "hello"}])
print("elapsed", reply.elapsed)
print("took", watch.get_connect_duration(), "seconds")
open("trip.ics", "w").write(f"UID:{celery_id()}@shop.org\\nEND\\n")
"""


def test_how_long_something_took_by_the_clock_of_a_library_comes_again(desk: Desk, provider: StandIn) -> None:
    program = desk.write("agent.py", MEASURED)
    live = desk.reenact("run", "--", "python", program, environ={**desk.bare(), **provider.environment})
    assert "replayable: exact" in live.stderr
    done = desk.reenact("replay", "last")
    assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr
    assert "wrote as recorded: trip.ics" in done.stderr
    desk.write("agent.py", MEASURED.replace("get_connect_duration()", "get_connect_duration() * 2"))
    assert desk.reenact("replay", "last").returncode == 1


ADDRESSED = """
from celery.utils import uuid as celery_id
import reenact

@reenact.tool
def look_up(item): return item

look_up("tea")
print(f"UID:{celery_id()}@shop.org")  # it looks like an address, and is replaced as one
"""


def test_an_id_that_looks_like_an_address_comes_again_where_it_is_only_printed(desk: Desk) -> None:
    desk.write("agent.py", ADDRESSED)
    live = desk.reenact("run", "--", "python", "agent.py")
    done = desk.reenact("replay", "last")
    assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr


HASHED = """
import hashlib
from cryptography.fernet import Fernet
from openai import OpenAI

key = Fernet.generate_key()
OpenAI().chat.completions.create(model="stand-in-everything", messages=[{"role": "user", "content": "hello"}])
print(hashlib.sha256(Fernet(key).encrypt(b"hello")).hexdigest())
"""


@pytest.mark.always
def test_keys_and_nonces_come_again_where_only_a_hash_of_a_cipher_text_is_seen(desk: Desk, provider: StandIn) -> None:
    program = desk.write("agent.py", HASHED)
    live = desk.reenact("run", "--", "python", program, environ={**desk.bare(), **provider.environment})
    assert "replayable: exact" in live.stderr
    done = desk.reenact("replay", "last")
    assert (done.returncode, done.stdout) == (0, live.stdout), done.stderr
