"""Who sent a job over Redis is no part of what a program says: its process is another one in each replay."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("redis")

from reenact.integrations.redis_connections import _argument


def test_a_job_of_celery_names_no_process() -> None:
    sent = f'{{"headers": {{"origin": "gen{os.getpid()}@shop-1", "task": "bill"}}}}'
    assert _argument(sent) == '{"headers": {"origin": "gen{process}@shop-1", "task": "bill"}}'
    assert _argument(sent.encode()) == _argument(sent)
    answered = f'{sent}, "reply_to": "41432cbb-7b86-3088-ae3e-b70e56cfb5af"'
    assert str(_argument(answered)).endswith('"reply_to": "{process}"')
    assert _argument(f"gene {os.getpid()}") == f"gene {os.getpid()}"
