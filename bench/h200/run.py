"""What Switchyard does with one real card. Prints the tables of docs/h200.md.

    YARD=path/to/yard python3 bench/h200/run.py [calibrate] [freeze] [queue] [spread] [pairs] [guard]

Needs one NVIDIA card with driver 570 or newer, PyTorch, and root (or one's own card). About 25 minutes for all.
"""

from __future__ import annotations

import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from cluster import HERE, JOB, PACKAGE, Cluster, switching

RATES = Path(os.environ.get("RATES", "/tmp/yard-h200-rates.json"))
MODELS = ["mlp", "lstm", "conv", "encoder", "wide", "large"]
# Name, model, further memory in GiB.
SIZES = [("small", "mlp", 0.5), ("medium", "encoder", 4.0), ("big", "conv", 16.0), ("huge", "wide", 40.0)]
QUEUE = ["mlp", "encoder", "lstm", "wide", "conv", "mlp", "encoder", "lstm", "mlp", "conv", "large", "encoder", "lstm", "mlp", "conv", "wide"]
GUARANTEED = {1, 12}


def say(text: str = "") -> None:
    print(text, flush=True)


def table(head: list[str], rows: list[list[object]]) -> None:
    say("| " + " | ".join(head) + " |")
    say("|" + "---|" * len(head))
    for row in rows:
        cells = (f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row)
        say("| " + " | ".join(cells) + " |")
    say()


def rates() -> dict[str, float]:
    """Steps a second of each model alone; measured once."""
    if not RATES.exists():
        found = {}
        for model in MODELS:
            done = subprocess.run([sys.executable, str(JOB), model, "--seconds", "2"], capture_output=True, text=True, check=True)
            found[model] = json.loads(done.stdout)["steps_per_s"]
        RATES.write_text(json.dumps(found))
    return json.loads(RATES.read_text())


def steps(model: str, seconds: float) -> int:
    return max(20, int(rates()[model] * seconds))


class Frozen(threading.Thread):
    """What the card holds for processes that lie stopped, looked at twice a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most_mib, self.seen, self.going = 0, 0, True

    def run(self) -> None:
        query = ["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
        while self.going:
            for line in subprocess.run(query, capture_output=True, text=True, check=False).stdout.splitlines():
                pid, used = (part.strip() for part in line.split(","))
                if stopped(pid) and used.isdigit():
                    self.seen, self.most_mib = self.seen + 1, max(self.most_mib, int(used))
            time.sleep(0.5)


def stopped(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
    except OSError:
        return False


def alone(jobs: list[tuple[str, str, float, int]]) -> dict[str, float]:
    """The last loss of each job without any scheduler; kept in the file ALONE, where one is named."""
    kept = Path(os.environ["ALONE"]) if "ALONE" in os.environ else None
    if kept and kept.exists():
        return json.loads(kept.read_text())
    line = lambda model, gib, count: [sys.executable, str(JOB), model, "--gib", str(gib), "--steps", str(count)]
    running = {name: subprocess.Popen(line(model, gib, count), stdout=subprocess.PIPE, text=True) for name, model, gib, count in jobs}
    losses = {name: json.loads(process.communicate()[0].strip().splitlines()[-1])["loss"] for name, process in running.items()}
    if kept:
        kept.write_text(json.dumps(losses))
    return losses


def frozen_jobs() -> list[tuple[str, str, float, int]]:
    """The four jobs, the largest first. FREEZE_SECONDS: of work, one number for all, or one for each by size."""
    given = [float(part) for part in os.environ.get("FREEZE_SECONDS", "60").split()]
    seconds = given if len(given) == len(SIZES) else given[:1] * len(SIZES)
    jobs = [(name, model, gib, steps(model, work)) for (name, model, gib), work in zip(SIZES, seconds)]
    return jobs[::-1]


def freeze() -> None:
    """Four jobs that know of nothing take turns on one card."""
    jobs = frozen_jobs()
    expected = alone(jobs)
    for round_s in map(int, os.environ.get("FREEZE_ROUNDS", "20 60").split()):
        share(jobs, expected, round_s, kills=round_s == 20)


def share(jobs: list[tuple[str, str, float, int]], expected: dict[str, float], round_s: int, kills: bool) -> None:
    cluster = Cluster("--policy", "round-robin", "--round", f"{round_s}s")
    watch = Frozen()
    watch.start()
    begin = time.time()
    ids = {name: cluster.submit(name, model, "--gib", str(gib), "--steps", str(count)) for name, model, gib, count in jobs}
    pending = {"server": begin + 50, "agent": begin + 90} if kills else {}

    def each() -> None:
        for which, due in list(pending.items()):
            if time.time() > due:
                del pending[which]
                cluster.kill(which)

    cluster.wait(each=each)
    wall, events, views = time.time() - begin, cluster.events(), cluster.jobs()
    watch.going = False
    rows = []
    for name, model, gib, _ in jobs:
        stops, lost = switching(events, ids[name])
        result, view = cluster.result(ids[name]), views[ids[name]]
        same = result["loss"] == expected[name] and result["memory_whole"]
        held = view["executed_s"]
        rows.append([name, model, gib, stops, round(lost, 1), f"{100 * lost / max(held, 1):.1f} %", view["starts"], "the same" if same else f"{result} instead of {expected[name]}"])
    say(f"### Rounds of {round_s} s{', server and agent killed once each' if kills else ''}\n")
    table(["job", "model", "memory held, GiB", "stops", "switching, s", "of its time on the GPU", "starts", "last loss and memory, against alone"], rows)
    say(f"All done after {wall:.0f} s. Stopped processes held at most {watch.most_mib} MiB of the card (seen {watch.seen} times).\n")
    cluster.end()


def queue() -> None:
    """Sixteen jobs, one by one and in pairs. The first run is also what the scheduler learns from."""
    seconds = float(os.environ.get("QUEUE_SECONDS", "8"))
    packed = ["--policy", "lucid", "--round", "0s"]
    runs = [("one at a time", ["--policy", "fifo"]), ("pairs, plain", packed), ("pairs, MPS", [*packed, "--sharing", "mps"])]
    rows, paces, base, cluster = [], {}, None, None
    for name, options in runs:
        if cluster is None:
            cluster = Cluster(*options)
        else:
            cluster.again(*options)
        wall, mean, pace, failed = drain(cluster, seconds)
        base = base or wall
        paces[name] = pace
        slowed = max(pace[job] / paces["one at a time"][job] - 1 for job in GUARANTEED)
        rows.append([name, f"{wall:.0f}", f"{base / wall:.2f}", f"{mean:.0f}", f"{100 * slowed:.1f} %", failed])
        say(f"{name}: {rows[-1]}")
    cluster.end()
    say("### Sixteen jobs\n")
    table(["", "makespan, s", "throughput", "mean completion, s", "guaranteed jobs slowed by, at most", "failed"], rows)


def spread() -> None:
    """How much the pace of one and the same job differs: without a scheduler, and guaranteed right after a pair of others.

    One run of each way in each round, so that all of them meet a machine whose pace changes. `wide` waits for the card,
    `encoder` and `lstm` for the processor.
    """
    rounds = int(os.environ.get("SPREAD_ROUNDS", "5"))
    for model in os.environ.get("SPREAD_MODELS", "wide encoder lstm").split():
        paces: dict[str, list[float]] = {"no scheduler": [], "guaranteed, pairs plain": [], "guaranteed, pairs MPS": []}
        cluster = Cluster(*sharing("plain"))
        for at in range(rounds):
            paces["no scheduler"].append(bare_pace(model))
            for name, how in (("guaranteed, pairs plain", "plain"), ("guaranteed, pairs MPS", "mps")):
                cluster.again(*sharing(how))
                paces[name].append(guaranteed_pace(cluster, model))
            say(f"{model}, round {at + 1}: " + ", ".join(f"{name} {1000 * found[-1]:.2f}" for name, found in paces.items()))
        cluster.end()
        say("### One job again and again\n")
        rows = [spread_row(name, found, paces["no scheduler"]) for name, found in paces.items()]
        table([f"`{model}`", "runs", "ms a step, least", "middle", "most", "slower, by the middle"], rows)


def sharing(how: str) -> list[str]:
    return ["--policy", "lucid", "--round", "0s", "--sharing", how]


def spread_row(name: str, paces: list[float], alone_s: list[float]) -> list[object]:
    found = sorted(1000 * pace for pace in paces)
    slower = statistics.median(paces) / statistics.median(alone_s) - 1
    return [name, len(found), f"{found[0]:.2f}", f"{statistics.median(found):.2f}", f"{found[-1]:.2f}", f"{100 * slower:.1f} %"]


def bare_pace(model: str) -> float:
    folder = Path(tempfile.mkdtemp(prefix="yard-h200-"))
    line = [sys.executable, str(JOB), model, "--steps", str(steps(model, 4)), "--talk", "--times", str(folder)]
    subprocess.run(line, env={**os.environ, "PYTHONPATH": PACKAGE}, capture_output=True, check=True)
    return median_step(folder / "times")


def guaranteed_pace(cluster: Cluster, model: str) -> float:
    """A guaranteed job that is submitted while others run. It would go before those that wait, so they must have begun."""
    options = ("--env", f"PYTHONPATH={PACKAGE}")
    submit = lambda name, more: cluster.submit(name, name, "--steps", str(steps(name, 4)), "--talk", "--times", str(cluster.folder), options=(*options, *more))
    others = [submit("mlp", ()) for _ in range(2)]
    begun = lambda views: all(views[job]["state"] in ("running", "succeeded") for job in others)
    cluster.until(lambda: begun(cluster.jobs()), "the others have begun", 120)
    job = submit(model, ("--class", "guaranteed"))
    cluster.wait()
    return median_step(cluster.folder / str(job))


def drain(cluster: Cluster, seconds: float) -> tuple[float, float, dict[int, float], int]:
    """Runs the queue: makespan, mean completion, seconds a step of each job, failures."""
    ids = {}
    for at, model in enumerate(QUEUE):
        extra = ("--env", f"PYTHONPATH={PACKAGE}") + (("--class", "guaranteed") if at in GUARANTEED else ())
        job = (model, "--steps", str(steps(model, seconds)), "--talk", "--times", str(cluster.folder))
        ids[at] = cluster.submit(f"{model}-{at}", *job, options=extra)
    cluster.wait()
    listed = cluster.jobs()
    views = {job: listed[job] for job in ids.values()}
    begin = min(view["submitted_at"] for view in views.values())
    ends = [view["ended_at"] - begin for view in views.values()]
    pace = {at: median_step(cluster.folder / str(job)) for at, job in ids.items()}
    failed = sum(view["state"] != "succeeded" for view in views.values())
    return max(ends), statistics.mean(ends), pace, failed


def gaps(path: Path) -> list[float]:
    times = json.loads(path.read_text())
    return [after - before for before, after in zip(times, times[1:])]


def median_step(path: Path) -> float:
    """Seconds a step, all in all, without the first ones and without the time in which the job lay stopped."""
    steps_s = gaps(path)[10:]
    return statistics.mean(gap for gap in steps_s if gap < 1.0) if steps_s else float("nan")


def pairs() -> None:
    """Two jobs that do less together than in turns: tried, measured, undone."""
    cluster = Cluster("--round", "10s", "--policy", "gandiva:gain=1")
    count = str(steps("lstm", 60))
    options = ("--env", f"PYTHONPATH={PACKAGE}", "--pause", "freeze")
    ids = [cluster.submit(f"lstm-{at}", "lstm", "--steps", count, "--talk", options=options) for at in range(2)]
    joined = undone = None
    deadline = time.time() + 150
    while time.time() < deadline and undone is None:
        time.sleep(0.5)
        views = cluster.jobs()
        running = [views[job]["state"] == "running" for job in ids]
        joined = joined or (time.time() if all(running) else None)
        undone = time.time() if joined and not all(running) else None
    say("### A bad pair\n")
    if undone:
        say(f"Two `lstm` jobs ran together for {undone - joined:.0f} s, did less than in turns, and took turns again.\n")
    else:
        say(f"The pair was {'tried and not undone' if joined else 'never tried'} within 150 s.\n")
    say(cluster.yard("nodes", "--devices").stdout)
    cluster.end()


def guard() -> None:
    """A guaranteed job, and an opportunistic one that disturbs it."""
    cluster = Cluster("--round", "5s", "--policy", "antman:busy=2")
    options = ("--env", f"PYTHONPATH={PACKAGE}")
    first = cluster.submit("guarded", "encoder", "--steps", str(steps("encoder", 40)), "--talk", "--times", str(cluster.folder), options=(*options, "--class", "guaranteed"))
    times = cluster.folder / str(first)
    cluster.until(lambda: cluster.jobs()[first]["state"] == "running", "the guaranteed job runs")
    other = cluster.submit("bully", "large", "--steps", str(steps("large", 60)), options=(*options, "--class", "opportunistic", "--gpu-memory", "32GiB"))
    over = ("succeeded", "failed")
    cluster.until(lambda: cluster.jobs()[first]["state"] in over, "the guaranteed job is done", 120)
    report_guard(gaps(times)[10:], (cluster.folder / "agent.log").read_text())
    say(f"The opportunistic job was {cluster.jobs()[other]['state']} when the guaranteed one was done.\n")
    cluster.end()


def report_guard(steps_s: list[float], log: str) -> None:
    own, theirs = (1000 / rates()[model] for model in ("encoder", "large"))
    slower = statistics.mean(steps_s) * 1000 / own - 1
    say("### A guaranteed job beside one that disturbs it\n")
    say(f"A step of the guaranteed job takes {own:.1f} ms alone, one of the other {theirs:.0f} ms.\n")
    table(["awake for, ms", "steps of the guaranteed job", "steps of the other"], [[f"{ms:.0f}", ms / own, ms / theirs] for ms in awake(log)])
    say(f"The guaranteed job was slower by {100 * slower:.1f} % all in all.\n")


def awake(log: str) -> list[float]:
    """Milliseconds from when the other was woken until it was hushed again, for each time that was so."""
    found, since = [], None
    for line in log.splitlines():
        if "woken" in line or "hushed" in line:
            moment = datetime.datetime.fromisoformat(line.split()[0])
            if "hushed" in line and since is not None:
                found.append((moment - since).total_seconds() * 1000)
            since = moment if "woken" in line else None
    return found


def calibrate() -> None:
    say("### Steps a second alone\n")
    table(MODELS, [[f"{rates()[model]:.1f}" for model in MODELS]])


PARTS = {"calibrate": calibrate, "freeze": freeze, "queue": queue, "spread": spread, "pairs": pairs, "guard": guard}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
