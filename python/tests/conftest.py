"""Each test has an environment without a scheduler, and a session of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import child
import pytest
from fake_agent import FakeAgent

from switchyard import _session


@pytest.fixture(autouse=True)
def no_scheduler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    for name in [name for name in os.environ if name.startswith(("YARD_", "SLURM_")) or name in names]:
        monkeypatch.delenv(name)
    handler = signal.getsignal(signal.SIGTERM)
    yield
    child.end_all()
    if _session._session is not None:
        _session._session.close()
        _session._session = None
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAgent]:
    agent = FakeAgent()
    monkeypatch.setenv("YARD_SOCKET", agent.path)
    yield agent
    agent.close()
