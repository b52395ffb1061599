from __future__ import annotations

from collections.abc import Iterator

import pytest

from receivers import GrpcReceiver, Receiver, http_receiver, running_grpc_receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with http_receiver() as running:
        yield running


@pytest.fixture
def grpc_receiver() -> Iterator[GrpcReceiver]:
    pytest.importorskip("grpc", reason="grpcio is not installed")
    with running_grpc_receiver() as running:
        yield running
