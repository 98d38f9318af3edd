"""Policies in Python: the view is whole after any changes, answers are in yard's words, and errors are clear."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from switchyard.policy import Answer, Changed, Job, NoAnswer, Policy, Share, View, policy

HELLO = {"hello": {"protocol": 1, "yard": "0.1.0", "params": {"depth": "3"}}}
SECOND = 1_000_000


def row(job: int, **more: Any) -> dict[str, Any]:
    shapes = [{"gpus": {"v100": 2}, "speed": 0.5, "spread": "any"}, {"gpus": {"p100": 2}, "speed": 0, "spread": "any"}]
    spec = {"name": f"job{job}", "user": None, "tenant": None, "weight": 1.0, "priority": 0, "deadline_us": None}
    return {
        "id": job,
        "row": job % 10,
        "spec": {**spec, "steps": 100.0, "pausable": True, "shapes": shapes},
        "state": "pending",
        "submitted_us": job * SECOND,
        "since_us": 0,
        "first_start_us": None,
        "done": 0.0,
        "as_of_us": 0,
        "speed": 0.0,
        "shape": 0,
        "devices": 0,
        "held_since_us": 0,
        "attained_us": 0,
        "executed_us": 0,
        "starts": 0,
        "preemptions": 0,
        "failures": 0,
        "rank": [0.0, 0.0],
        "promise_us": None,
        **more,
    }


def line(seq: int, jobs: list[dict[str, Any]], ended: tuple[int, ...] = (), full: bool = False) -> dict[str, Any]:
    view: dict[str, Any] = {"seq": seq, "now_us": seq * 10 * SECOND, "round_us": 0, "full": full}
    if full:
        nodes = [{"name": "a", "kind": "v100", "gpus": 4}, {"name": "b", "kind": "v100", "gpus": 3}]
        view.update(kinds=["v100", "p100"], nodes=nodes)
    return {"view": {**view, "ended": list(ended), "jobs": jobs}}


def talk(one: Policy, *lines: dict[str, Any]) -> list[dict[str, Any]]:
    out = io.StringIO()
    one.run(io.StringIO("".join(json.dumps(said) + "\n" for said in (HELLO, *lines))), out)
    return [json.loads(answer) for answer in out.getvalue().splitlines()]


def test_what_is_declared_is_said_first() -> None:
    @policy(mode="fractions", cadence="every-round", needs=["speeds"])
    def mine(view: View) -> Answer:
        return []

    hello = talk(mine)[0]["hello"]
    assert (hello["protocol"], hello["mode"], hello["cadence"], hello["needs"]) == (
        1,
        "fractions",
        "every-round",
        ["speeds"],
    )


def test_the_view_is_whole_whatever_was_told() -> None:
    seen: list[tuple[list[int], list[int], list[int]]] = []

    @policy()
    def mine(view: View) -> Answer:
        seen.append((sorted(view.jobs), [job.id for job in view.changed], view.ended))
        return [] if view.full else Changed([])

    running = row(2, state="running", speed=0.5, devices=2, held_since_us=20 * SECOND, as_of_us=20 * SECOND)
    del running["spec"]
    talk(
        mine, line(1, [row(1), row(2)], full=True), line(2, [running, row(3)], ended=(1,)), line(3, [row(9)], full=True)
    )
    assert seen == [([1, 2], [1, 2], []), ([2, 3], [2, 3], [1]), ([9], [9], [])]


def test_jobs_go_on_between_reports() -> None:
    view = View()
    moving = row(1, state="running", done=10.0, as_of_us=5 * SECOND, speed=0.5, devices=2, held_since_us=4 * SECOND)
    view._hear(line(1, [{**moving, "attained_us": 7 * SECOND}, row(2)], full=True)["view"])
    job, still = view.jobs[1], view.jobs[2]
    assert (job.done_now, job.steps_left, job.seconds_left) == (12.5, 87.5, 175.0)
    assert (job.attained, job.executed, job.running, still.attained) == (19.0, 6.0, True, 0.0)
    assert (still.seconds_left, still.gpus, still.usable()) == (200.0, 2, [0])
    assert (view.capacity("v100"), view.capacity("p100"), view.now) == (7, 0, 10.0)


def test_answers_are_in_yards_words() -> None:
    @policy(preempt=True)
    def mine(view: View) -> Answer:
        if view.full:
            return [Share(1, rank=2.5), Share([1, 2], fraction=0.5, shape=1)]
        return Changed([Share(2, rank=(1.0, 2.0))], replan_at=30.5)

    _, first, second = talk(mine, line(1, [row(1), row(2)], full=True), line(2, []))
    assert first == {
        "plan": {
            "seq": 1,
            "all": True,
            "shares": [{"job": 1, "rank": 2.5}, {"jobs": [1, 2], "fraction": 0.5, "shape": 1}],
        }
    }
    assert second == {
        "plan": {"seq": 2, "all": False, "shares": [{"job": 2, "rank": [1.0, 2.0]}], "replan_at_us": 30_500_000}
    }


def test_who_has_no_answer_says_so_and_lives_on() -> None:
    class Moody(Policy):
        def allocate(self, view: View) -> Answer:
            if view.seq == 1:
                raise NoAnswer("too early")
            return [Share(job.id) for job in view.jobs.values()]

    answers = talk(Moody(), line(1, [row(1)], full=True), line(2, [row(1)], full=True))
    assert answers[1] == {"error": "too early"}
    assert answers[2]["plan"]["shares"] == [{"job": 1}]


def test_parameters_may_be_refused() -> None:
    class Picky(Policy):
        def start(self, params: dict[str, str]) -> None:
            raise ValueError(f"depth {params['depth']} is too small")

    assert talk(Picky()) == [{"error": "depth 3 is too small"}]


def test_a_rank_that_json_cannot_hold_is_an_error_here() -> None:
    @policy()
    def mine(view: View) -> Answer:
        return [Share(1, rank=float("inf"))]

    with pytest.raises(ValueError, match="JSON cannot hold"):
        talk(mine, line(1, [row(1)], full=True))


def test_leftovers_name_every_shape_that_is_not_named() -> None:
    view = View()
    view._hear(line(1, [row(2), row(1)], full=True)["view"])
    shares = view.with_leftovers([Share(2, shape=0, fraction=0.5)])
    assert [(share.job, share.shape) for share in shares] == [(2, 0), (1, 0)]
    assert 0 < shares[1].fraction <= 1e-9
    assert [job.id for job in view.in_order()] == [1, 2]


def test_a_job_shows_itself() -> None:
    view = View()
    view._hear(line(1, [row(4)], full=True)["view"])
    job: Job = view.jobs[4]
    assert repr(job) == "<job 4 'job4': pending, 2 GPUs>"
