from __future__ import annotations

import math

import pytest
from fake_agent import FakeAgent

import switchyard
from switchyard import _training


def test_a_batch_comes_from_the_environment_and_then_from_the_scheduler(
    agent: FakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert switchyard.batch(32) == (32, 0)
    monkeypatch.setenv("YARD_BATCH_SIZE", "64")
    monkeypatch.setenv("YARD_ACCUMULATION", "3")
    assert switchyard.batch(32) == switchyard.Batch(size=64, accumulation=3)
    agent.tell({"batch": {"local": 0, "extra": 1}})
    agent.tell({"batch": "large"})
    agent.tell({"batch": {"local": 128, "extra": 1}})
    agent.wait(lambda: switchyard.batch(32) == (128, 1))


def test_times_are_told_as_means_now_and_then(agent: FakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_training, "_TRAINED_S", 0.0)
    switchyard.report(8, 0.5, 0.25)
    agent.wait_for("trained")
    assert agent.said("trained") == [{"local": 8, "grad_s": 0.25, "step_s": 0.5, "noise": None}]
    monkeypatch.setattr(_training, "_TRAINED_S", 1e9)
    switchyard.report(8, 1.0)
    switchyard.report(8, math.nan, 1.0)
    switchyard.report(8, 3.0, 1.0, grad_sqr=0.5, grad_var=math.inf)
    monkeypatch.setattr(_training, "_TRAINED_S", 0.0)
    switchyard.report(8, 2.0, 1.0, grad_sqr=0.5, grad_var=2.0)
    agent.wait(lambda: len(agent.said("trained")) == 2)
    assert agent.said("trained")[1] == {"local": 8, "grad_s": 1.0, "step_s": 2.0, "noise": [0.5, 2.0]}
    switchyard.report(16, 4.0, 4.0)
    agent.wait(lambda: len(agent.said("trained")) == 3)
    assert agent.said("trained")[2]["local"] == 16, "another batch has means of its own"


def test_the_last_loss_is_told_once(agent: FakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_training, "_TRAINED_S", 1e9)
    switchyard.report(8, 1.0)
    agent.wait_for("trained")
    switchyard.report(8, 1.0, loss=2.5)
    switchyard.report(8, 1.0, loss=2.0)
    switchyard.report(8, 1.0, loss=math.nan)
    monkeypatch.setattr(_training, "_TRAINED_S", 0.0)
    switchyard.report(8, 1.0)
    agent.wait(lambda: len(agent.said("trained")) == 2)
    assert agent.said("trained")[1]["loss"] == 2.0
    switchyard.report(8, 1.0)
    agent.wait(lambda: len(agent.said("trained")) == 3)
    assert "loss" not in agent.said("trained")[2]
