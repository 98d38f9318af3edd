"""A scheduling policy as a Python function, for `yard sim --policy exec:./mine.py` and for a live server.

    #!/usr/bin/env python3
    from switchyard.policy import Share, View, policy

    @policy(preempt=True, needs=["durations"])
    def shortest_first(view: View) -> list[Share]:
        return [Share(job.id, rank=job.seconds_left) for job in view.jobs.values()]

    if __name__ == "__main__":
        shortest_first.run()

The program is told what changed and keeps the whole view. It answers for all jobs (a list: whoever is not named gets
nothing) or for some (`Changed`: the others keep what they have). What it prints goes to stderr, since stdout speaks to
yard. The protocol underneath is docs/exec-policies.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import IO, Any, NoReturn, Union

__all__ = ["All", "Answer", "Changed", "Job", "NoAnswer", "Node", "Policy", "Shape", "Share", "View", "policy"]

PROTOCOL = 1
"""The version of the protocol that this file speaks."""

MICROS = 1_000_000

LEFTOVER = 1e-9
"""A share of this fraction or less has what nobody else wants, and counts for nothing."""


class NoAnswer(Exception):
    """Raise it to have no answer this time: the last allocation stays in force, and an event says why."""


@dataclass(frozen=True)
class Shape:
    """One way in which a job may run."""

    gpus: dict[str, int]
    """Devices by kind, all at once."""
    speed: float
    """Believed steps per second; 0: it cannot run so."""
    spread: str = "any"
    """How far apart its devices may be: any, rack or node."""
    batch_size: int | None = None
    """What it trains with there, where that is the scheduler's choice."""

    @property
    def devices(self) -> int:
        """Devices of all kinds together."""
        return sum(self.gpus.values())


@dataclass(frozen=True)
class Node:
    """A node that takes jobs."""

    name: str
    kind: str
    gpus: int
    """Devices in service, free or not."""
    memory_mib: int | None = None
    """Memory of each device, where it is known."""


class Job:
    """A job that asks for devices or holds some. Times are whole microseconds, as yard counts them."""

    __slots__ = (
        "as_of_us",
        "attained_us",
        "deadline_us",
        "devices",
        "done",
        "executed_us",
        "failures",
        "first_start_us",
        "held_since_us",
        "id",
        "name",
        "pausable",
        "preemptions",
        "priority",
        "promise_us",
        "rank",
        "row",
        "shape",
        "shapes",
        "since_us",
        "speed",
        "starts",
        "state",
        "steps",
        "submitted_us",
        "tenant",
        "told_left",
        "user",
        "view",
        "weight",
        "_usable",
    )

    # What was submitted.
    id: int
    name: str
    user: str | None
    tenant: str | None
    weight: float
    """Its weight in fair shares."""
    priority: int
    """Larger is more urgent."""
    deadline_us: int | None
    steps: float
    """Steps to do; seconds of work where only a duration is known."""
    pausable: bool
    """Whether it may be stopped for another job."""
    shapes: tuple[Shape, ...]
    """The ways in which it may run, in order of preference."""

    # How it is going.
    view: View
    row: int
    """Its place in yard's own order of jobs."""
    state: str
    """pending, starting, running, suspending or suspended."""
    submitted_us: int
    since_us: int
    """Since when it is in this state."""
    first_start_us: int | None
    done: float
    """Steps done at `as_of_us`; `done_now` carries it on."""
    as_of_us: int
    speed: float
    """Believed steps per second; 0 while it is not running."""
    shape: int
    """Which of its shapes it holds, or held last."""
    devices: int
    """Devices it holds now."""
    held_since_us: int
    attained_us: int
    executed_us: int
    starts: int
    preemptions: int
    failures: int
    rank: tuple[float, float]
    """Its place in the order in force when the row was told."""
    promise_us: int | None
    """By when it was promised to be done."""

    def __init__(self, view: View) -> None:
        """A job of which nothing is known yet."""
        self.view = view

    @property
    def gpus(self) -> int:
        """Devices of the shape it prefers."""
        return self.shapes[0].devices if self.shapes else 0

    @property
    def submitted(self) -> float:
        """When it was submitted, in seconds."""
        return self.submitted_us / MICROS

    @property
    def deadline(self) -> float | None:
        """When it should be done, in seconds."""
        return None if self.deadline_us is None else self.deadline_us / MICROS

    @property
    def holds(self) -> bool:
        """Whether it holds devices now."""
        return self.devices > 0

    @property
    def running(self) -> bool:
        """Whether it has devices, or was promised some, and was not told to stop."""
        return self.state in ("starting", "running")

    @property
    def done_now(self) -> float:
        """Steps done by now, as believed."""
        return self.done + self.speed * (max(0, self.view.now_us - self.as_of_us) / MICROS)

    @property
    def steps_left(self) -> float:
        """Steps left, as believed; never negative."""
        if self.told_left is not None:
            return self.told_left
        return max(0.0, self.steps - self.done_now)

    @property
    def seconds_left(self) -> float:
        """Seconds left in the shape it holds, or in the one it prefers; infinite if it cannot run so."""
        speed = self.speed if self.speed > 0 else self.shapes[self.shape].speed
        return self.steps_left / speed if speed > 0 else float("inf")

    @property
    def attained(self) -> float:
        """Device-seconds received so far."""
        open_us = self.devices * max(0, self.view.now_us - self.held_since_us) if self.holds else 0
        return (self.attained_us + open_us) / MICROS

    @property
    def executed(self) -> float:
        """Seconds for which it held devices."""
        open_us = max(0, self.view.now_us - self.held_since_us) if self.holds else 0
        return (self.executed_us + open_us) / MICROS

    def usable(self) -> list[int]:
        """The numbers of the shapes in which it makes progress."""
        return self._usable

    def __repr__(self) -> str:
        """For people who look for mistakes."""
        return f"<job {self.id} {self.name!r}: {self.state}, {self.gpus} GPUs>"

    def _hear(self, row: dict[str, Any]) -> None:
        spec = row.get("spec")
        if spec is not None:
            self.name, self.user, self.tenant = spec["name"], spec["user"], spec["tenant"]
            self.weight, self.priority = spec["weight"], spec["priority"]
            self.deadline_us, self.steps, self.pausable = spec["deadline_us"], spec["steps"], spec["pausable"]
            self.shapes = tuple(
                Shape(shape["gpus"], shape["speed"], shape["spread"], shape.get("batch_size"))
                for shape in spec["shapes"]
            )
            self._usable = [at for at, shape in enumerate(self.shapes) if shape.speed > 0]
        self.id, self.row, self.state = row["id"], row["row"], row["state"]
        self.submitted_us, self.since_us = row["submitted_us"], row["since_us"]
        self.first_start_us, self.promise_us = row["first_start_us"], row["promise_us"]
        self.done, self.as_of_us, self.speed = row["done"], row["as_of_us"], row["speed"]
        self.shape, self.devices, self.held_since_us = row["shape"], row["devices"], row["held_since_us"]
        self.attained_us, self.executed_us = row["attained_us"], row["executed_us"]
        self.starts, self.preemptions, self.failures = row["starts"], row["preemptions"], row["failures"]
        self.rank = (row["rank"][0], row["rank"][1])
        self.told_left: float | None = row.get("steps_left")


class View:
    """The cluster at one instant, whole: the changes that yard tells have been applied."""

    def __init__(self, params: dict[str, str] | None = None) -> None:
        """A view of nothing, before the first line."""
        self.params: dict[str, str] = params or {}
        """What the command line says after the program: `exec:./mine.py:key=value`."""
        self.seq = 0
        self.now_us = 0
        self.round_us = 0
        """Length of a round; 0 where decisions follow events."""
        self.full = True
        """Whether everything may have changed. The answer must then be for all jobs."""
        self.kinds: list[str] = []
        self.nodes: list[Node] = []
        self.jobs: dict[int, Job] = {}
        """All jobs that ask for devices or hold some, by number."""
        self.changed: list[Job] = []
        """Those of them that arrived, started, stopped or reported since the last view; all where it is full."""
        self.ended: list[int] = []
        """Jobs that were in the last view and are gone."""
        self._capacity: dict[str, int] = {}

    @property
    def now(self) -> float:
        """The instant, in seconds: since the start of the simulation, or since 1970 when live."""
        return self.now_us / MICROS

    def capacity(self, kind: str) -> int:
        """Devices of a kind that jobs may be given."""
        return self._capacity.get(kind, 0)

    def in_order(self) -> list[Job]:
        """All jobs in yard's own order, which does not depend on when they were told."""
        return sorted(self.jobs.values(), key=lambda job: job.row)

    def with_leftovers(self, shares: Sequence[Share]) -> list[Share]:
        """These shares, and for every job a share of next to nothing of each shape that it can use.

        Shares of time need not fill the cluster. With these no device idles while a job that could use it waits;
        among jobs that wait for leftovers, the one that would be done soonest goes first.
        """
        named: dict[int, set[int | None]] = {}
        for share in shares:
            if len(share.jobs) == 1:
                named.setdefault(share.jobs[0], set()).add(share.shape)
        more = list(shares)
        for job in self.in_order():
            own = named.get(job.id, set())
            for shape in job.usable() if None not in own else []:
                if shape not in own:
                    hours = job.steps_left / job.shapes[shape].speed / 3600.0
                    more.append(Share(job.id, shape=shape, fraction=LEFTOVER / (1.0 + 4.0 * hours * hours)))
        return more

    def _hear(self, line: dict[str, Any]) -> None:
        self.seq, self.now_us, self.round_us = line["seq"], line["now_us"], line["round_us"]
        self.full, self.ended = line["full"], line["ended"]
        if self.full:
            self.jobs = {}
        if "nodes" in line:
            self.kinds = line["kinds"]
            self.nodes = [Node(one["name"], one["kind"], one["gpus"], one.get("memory_mib")) for one in line["nodes"]]
            self._capacity = {}
            for node in self.nodes:
                self._capacity[node.kind] = self._capacity.get(node.kind, 0) + node.gpus
        for job in self.ended:
            self.jobs.pop(job, None)
        self.changed = [self._row(row) for row in line["jobs"]]

    def _row(self, row: dict[str, Any]) -> Job:
        job = self.jobs.get(row["id"])
        if job is None:
            job = self.jobs[row["id"]] = Job(self)
        job._hear(row)
        return job


@dataclass
class Share:
    """What a job should hold, for how much of the time, in which place of the order."""

    job: int | Sequence[int]
    """The job by its number; several share the same devices."""
    rank: float | tuple[float, float] = 0.0
    """Smaller goes first, then the older job. Counts in mode "ordered" only."""
    fraction: float = 1.0
    """The part of the time, above 0 and at most 1. Counts in the other modes."""
    shape: int | None = None
    """Which of the first job's shapes; None: any of them, in order of preference."""

    @property
    def jobs(self) -> Sequence[int]:
        """The jobs on the same devices."""
        return (self.job,) if isinstance(self.job, int) else self.job

    def _say(self) -> str:
        # By hand: an answer has a share for every job, and the general way takes several times as long.
        job, rank = self.job, self.rank
        said = f'{{"job":{job}' if isinstance(job, int) else f'{{"jobs":{json.dumps(list(job))}'
        if isinstance(rank, (tuple, list)):
            said += f',"rank":[{_number(rank[0])},{_number(rank[1])}]'
        elif rank != 0.0:
            said += f',"rank":{_number(rank)}'
        if self.fraction != 1.0:
            said += f',"fraction":{_number(self.fraction)}'
        if self.shape is not None:
            said += f',"shape":{self.shape}'
        return said + "}"


@dataclass
class Changed:
    """An answer for some jobs: those that are not named keep what they have. Not for a view that is full."""

    shares: Iterable[Share]
    replan_at: float | None = None
    """When to be asked again, in seconds, even if nothing happens before."""


@dataclass
class All:
    """An answer for all jobs: those that are not named get nothing."""

    shares: Iterable[Share]
    replan_at: float | None = None
    """When to be asked again, in seconds, even if nothing happens before."""


Answer = Union[All, Changed, Iterable[Share]]


class Policy:
    """A policy as a class: override `allocate`, and the declarations where the defaults are not right.

    It may keep what it likes in itself for speed, and must answer the same without it: a server starts the program
    again when it failed, and asks several copies of it to estimate when jobs start.
    """

    mode = "ordered"
    """How shares become who runs: ordered (by rank), fractions (of the time) or capped (and never more than that)."""
    preempt = False
    """Whether a job may be stopped for one that ranks before it."""
    skip = True
    """Whether smaller jobs may go past one that does not fit; else the first such job blocks the rest."""
    cadence = "on-change"
    """When it is asked: on-change, or every-round because its order changes as time passes."""
    rounds: bool | None = None
    """Whether it is run in rounds unless told otherwise; None: where it preempts or shares time."""
    priorities: str | None = None
    """What it makes of priorities: classes, worth or refused; None: classes where it is ordered, else refused."""
    needs: Sequence[str] = ()
    """What it must be told of jobs: durations, progress, speeds, losses, regimes."""

    def start(self, params: dict[str, str]) -> None:
        """Reads what the command line says: `exec:./mine.py:key=value`. Raise ValueError to refuse it."""

    def allocate(self, view: View) -> Answer:
        """Says who should hold what."""
        raise NotImplementedError

    def run(self, read: IO[str] | None = None, write: IO[str] | None = None) -> None:
        """Speaks with yard until it hangs up. Further prints of the program go to stderr."""
        lines = read or sys.stdin
        out = write or sys.stdout
        if write is None:
            sys.stdout = sys.stderr
        if read is None and sys.stdin.isatty():
            _die("this is a policy, which yard starts: yard sim --policy exec:" + sys.argv[0])
        view = View()
        for line in lines:
            said = json.loads(line)
            if "hello" in said:
                answer = json.dumps(self._hello(said["hello"], view))
            else:
                view._hear(said["view"])
                answer = self._answer(view)
            out.write(answer + "\n")
            out.flush()

    def _hello(self, hello: dict[str, Any], view: View) -> dict[str, Any]:
        if hello["protocol"] != PROTOCOL:
            _die(f"yard speaks version {hello['protocol']} of the protocol, and this package version {PROTOCOL}")
        view.params = hello["params"]
        try:
            self.start(view.params)
        except ValueError as wrong:
            return {"error": str(wrong)}
        declared = {
            "protocol": PROTOCOL,
            "mode": self.mode,
            "preempt": self.preempt,
            "skip": self.skip,
            "cadence": self.cadence,
            "rounds": self.rounds,
            "priorities": self.priorities,
            "needs": list(self.needs),
        }
        return {"hello": declared}

    def _answer(self, view: View) -> str:
        try:
            answer = self.allocate(view)
        except NoAnswer as reason:
            return json.dumps({"error": str(reason)})
        if not isinstance(answer, (All, Changed)):
            answer = All(answer)
        whole = "true" if isinstance(answer, All) else "false"
        shares = ",".join([share._say() for share in answer.shares])
        again = "" if answer.replan_at is None else f',"replan_at_us":{round(answer.replan_at * MICROS)}'
        return f'{{"plan":{{"seq":{view.seq},"all":{whole},"shares":[{shares}]{again}}}}}'


def _number(value: float) -> str:
    """A number as JSON has it, to the last bit."""
    value = float(value)
    if not isfinite(value):
        raise ValueError(f"a share has {value} as its rank or fraction, which JSON cannot hold")
    return repr(value)


class _Function(Policy):
    """A policy that is a function."""

    def __init__(self, function: Callable[[View], Answer], declared: dict[str, Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__
        self.__dict__.update(declared)

    def allocate(self, view: View) -> Answer:
        return self.function(view)

    def __call__(self, view: View) -> Answer:
        return self.function(view)


def policy(
    *,
    mode: str = "ordered",
    preempt: bool = False,
    skip: bool = True,
    cadence: str = "on-change",
    rounds: bool | None = None,
    priorities: str | None = None,
    needs: Sequence[str] = (),
) -> Callable[[Callable[[View], Answer]], Policy]:
    """Makes a policy of a function from the view to its answer. What is declared is as in `Policy`."""
    declared = {
        "mode": mode,
        "preempt": preempt,
        "skip": skip,
        "cadence": cadence,
        "rounds": rounds,
        "priorities": priorities,
        "needs": needs,
    }
    return lambda function: _Function(function, declared)


def _die(why: str) -> NoReturn:
    print(why, file=sys.stderr)
    raise SystemExit(2)
