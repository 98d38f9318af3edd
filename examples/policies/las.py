#!/usr/bin/env python3
"""Least attained service first: yard's own `las`, as a class that answers only for jobs whose rank moved."""

from __future__ import annotations

from switchyard.policy import Answer, Changed, Job, Policy, Share, View


class Las(Policy):
    """Jobs that hold devices attain service as time passes; all others stay where they are in the order."""

    preempt = True
    cadence = "every-round"

    def __init__(self) -> None:
        """Nobody holds devices yet."""
        self.moving: dict[int, Job] = {}

    def allocate(self, view: View) -> Answer:
        """Rank jobs by the device-seconds they received."""
        if view.full:
            self.moving = {}
        for gone in view.ended:
            self.moving.pop(gone, None)
        for job in view.changed:
            if job.running or job.holds:
                self.moving[job.id] = job
            else:
                self.moving.pop(job.id, None)
        if view.full:
            return [rank(job) for job in view.jobs.values()]
        still = [job for job in view.changed if job.id not in self.moving]
        return Changed([rank(job) for job in [*still, *self.moving.values()]])


def rank(job: Job) -> Share:
    """Its place in the order."""
    return Share(job.id, rank=job.attained)


if __name__ == "__main__":
    Las().run()
