"""What the benchmarks share: running yard with its CPU time, and saying where they ran."""

import json
import os
import platform
import resource
import subprocess

YARD = os.environ.get("YARD", "target/release/yard")


def timed(*command):
    """Runs a command; returns its output and the CPU seconds of the whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return out, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def yard(*args):
    """Runs yard for JSON; returns it and the CPU seconds."""
    out, cpu = timed(YARD, *args, "-o", "json")
    return json.loads(out), cpu


def machine():
    """One line about the machine and the commit."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores; commit {commit or 'unknown'}"
