from __future__ import annotations

import random
import threading

import pytest

from switchyard import _gate
from switchyard._gate import Gate, Stop


def gate() -> tuple[Gate, list[int]]:
    answers: list[int] = []
    return Gate(answers.append), answers


def test_it_is_open_until_told_otherwise() -> None:
    g, answers = gate()
    assert [g.arrive(step) for step in range(3)] == [False] * 3
    assert g.told() is None and not g.is_over() and answers == []


def test_a_stop_without_a_step_means_the_next_one() -> None:
    g, _ = gate()
    assert not g.arrive(7)
    g.stop(Stop(None, "moved", 5.0))
    assert g.arrive(8) and g.is_over()
    assert g.told() == Stop(None, "moved", 5.0)
    assert g.arrive(9), "who was told to stop stays told"


def test_steps_before_the_agreed_one_are_done() -> None:
    g, _ = gate()
    g.stop(Stop(2, "preempted", None))
    assert [g.arrive(step) for step in range(4)] == [False, False, True, True]


def test_inside_a_step_the_boundary_is_after_it() -> None:
    g, answers = gate()
    g.arrive(4)
    g.hold()
    assert answers == [5]


def test_a_hold_before_the_loop_is_answered_when_it_is_known_where_it_resumes() -> None:
    g, answers = gate()
    g.hold()
    assert answers == []
    g.signalled("signal")  # so that it does not wait
    g.arrive(3)
    assert answers == [3]


def test_a_held_process_waits_and_goes_on_to_the_agreed_step() -> None:
    g, answers = gate()
    g.arrive(0)
    g.hold()
    passed: list[bool] = []
    thread = threading.Thread(target=lambda: passed.extend(g.arrive(step) for step in (1, 2)))
    thread.start()
    thread.join(0.2)
    assert answers == [1] and passed == [], "it waits before step 1"
    g.stop(Stop(2, "preempted", None))
    thread.join()
    assert passed == [False, True]


def test_a_hold_after_the_agreement_repeats_it() -> None:
    g, answers = gate()
    g.arrive(0)
    g.stop(Stop(5, "preempted", None))
    g.hold()
    assert answers == [5]


def test_a_loop_that_ended_answers_with_its_end() -> None:
    g, answers = gate()
    g.arrive(9)
    g.finish(10)
    g.hold()
    assert answers == [10]


def test_an_agent_that_went_away_does_not_hold_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_gate, "PATIENCE_S", 0.1)
    g, _ = gate()
    g.arrive(0)
    g.hold()
    g.lost()
    assert not g.arrive(1)


@pytest.mark.parametrize("seed", range(20))
def test_ranks_that_wait_for_each_other_stop_at_the_same_step(seed: int) -> None:
    """Threads stand for ranks, a barrier for the all-reduce inside each step; the hold comes at any moment."""
    rng = random.Random(seed)
    ranks = 4
    inside = threading.Barrier(ranks, timeout=120)
    boundaries: list[int] = []
    gates = [Gate(boundaries.append) for _ in range(ranks)]
    ends = [-1] * ranks

    def work(rank: int, pauses: list[float]) -> None:
        step = 0
        while not gates[rank].arrive(step):
            threading.Event().wait(pauses[step % len(pauses)])
            inside.wait()
            step += 1
        ends[rank] = step

    pauses = [[rng.random() * 0.003 for _ in range(5)] for _ in range(ranks)]
    threads = [threading.Thread(target=work, args=(rank, pauses[rank])) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    threading.Event().wait(rng.random() * 0.05)
    for one in gates:
        one.hold()
        threading.Event().wait(rng.random() * 0.003)
    while len(boundaries) < ranks:
        threading.Event().wait(0.001)
    for one in gates:
        one.stop(Stop(max(boundaries), "preempted", None))
        threading.Event().wait(rng.random() * 0.003)
    for thread in threads:
        thread.join()
    assert ends == [max(boundaries)] * ranks
