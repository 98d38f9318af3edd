"""A server and an agent of this machine, driven by the commands that people type."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
JOB = HERE / "job.py"
YARD = os.environ.get("YARD", str(HERE.parent.parent / "target/release/yard"))
PACKAGE = str(HERE.parent.parent / "python/src")


class Cluster:
    """One server and one agent, each a process of its own, so that either can be killed."""

    def __init__(self, *options: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="yard-h200-"))
        self.options = list(options)
        self.listen = "127.0.0.1:7499"
        self.server = self.agent = None
        self.start_server()
        self.start_agent()
        self.until(lambda: self.nodes() and self.nodes()[0]["state"] == "up", "the node is up")

    def start_server(self) -> None:
        line = ["up", "--no-agent", "--data", ".yard", "--listen", self.listen, *self.options]
        self.server = self.spawn(line, "server.log")
        self.until(lambda: self.yard("nodes", "-o", "json", check=False).returncode == 0, "the server answers")

    def again(self, *options: str) -> None:
        """The same cluster, with all it has learned, under another policy."""
        self.server.send_signal(signal.SIGTERM)
        self.server.wait(30)
        self.options = list(options)
        self.start_server()
        self.until(lambda: self.nodes()[0]["state"] == "up", "the node is up again")

    def start_agent(self) -> None:
        line = ["agent", "--server", f"https://{self.listen}", "--join-token", ".yard/join-token", "--data", str(self.folder / "agent"), "--name", "h200", "--min-uid", "0", "--job-env", "PATH"]
        self.agent = self.spawn(line, "agent.log")

    def spawn(self, line: list[str], log: str) -> subprocess.Popen[bytes]:
        with open(self.folder / log, "ab") as file:
            return subprocess.Popen([YARD, *line], cwd=self.folder, stdout=file, stderr=file)

    def yard(self, *line: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([YARD, *line], cwd=self.folder, capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"yard {' '.join(line)}: {done.stdout}{done.stderr}")
        return done

    def nodes(self) -> list[dict]:
        return json.loads(self.yard("nodes", "-o", "json").stdout)["nodes"]

    def jobs(self) -> dict[int, dict]:
        listed = json.loads(self.yard("jobs", "--all", "-o", "json").stdout)["jobs"]
        return {job["id"]: job for job in listed}

    def events(self) -> list[dict]:
        found: list[dict] = []
        while True:
            after = ("--after", str(found[-1]["id"])) if found else ()
            more = [json.loads(line) for line in self.yard("events", "-o", "json", *after).stdout.splitlines()]
            if not more:
                return found
            found += more

    def submit(self, name: str, *job: str, options: tuple[str, ...] = ()) -> int:
        line = ["submit", "--parsable", "--name", name, "--gpus", "1", *options, "--", sys.executable, str(JOB), *job]
        return int(self.yard(*line).stdout)

    def result(self, job: int) -> dict:
        """What a job printed last."""
        lines = self.yard("logs", str(job)).stdout.strip().splitlines()
        return json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {"loss": None, "log": lines[-3:]}

    def wait(self, limit_s: float = 570.0, each=lambda: None) -> None:
        """Until all jobs are over."""
        over = {"succeeded", "failed", "cancelled", "rejected"}

        def done() -> bool:
            each()
            return all(job["state"] in over for job in self.jobs().values())

        self.until(done, "all jobs are over", limit_s, 0.5)

    def until(self, true, what: str, limit_s: float = 60.0, pause_s: float = 0.1) -> None:
        end = time.time() + limit_s
        while not true():
            if time.time() > end:
                tail = "".join((self.folder / log).read_text()[-3000:] for log in ("server.log", "agent.log") if (self.folder / log).exists())
                listed = self.yard("jobs", "--all", check=False).stdout
                raise RuntimeError(f"{what}: not within {limit_s} s\n{listed}\n{tail}")
            time.sleep(pause_s)

    def kill(self, which: str) -> None:
        process = getattr(self, which)
        process.send_signal(signal.SIGKILL)
        process.wait()
        getattr(self, f"start_{which}")()

    def end(self) -> None:
        for job, view in self.jobs().items():
            if view["state"] not in ("succeeded", "failed", "cancelled", "rejected"):
                self.yard("cancel", str(job), check=False)
        for process in (self.agent, self.server):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        subprocess.run(["pkill", "-f", f"keeper --dir {self.folder}"], check=False)


def switching(events: list[dict], job: int) -> tuple[int, float]:
    """How often a job was stopped for others, and seconds that its stops and later starts took."""
    stops, seconds, since, starts = 0, 0.0, None, 0
    for event in events:
        if event["job"] != job:
            continue
        kind, now = event["event"], event["time"]
        if kind == "stopping":
            stops, since = stops + 1, now
        elif kind == "stopped" and since is not None:
            seconds, since = seconds + now - since, None
        elif kind == "granted":
            starts, since = starts + 1, now if starts else None
        elif kind == "started" and since is not None:
            seconds, since = seconds + now - since, None
    return stops, seconds
