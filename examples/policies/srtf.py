#!/usr/bin/env python3
"""Shortest remaining time first: yard's own `srtf`, in the plainest way. Every job is ranked at every decision."""

from __future__ import annotations

from switchyard.policy import Answer, Share, View, policy

LAST = 1e18


@policy(preempt=True, needs=["durations"])
def srtf(view: View) -> Answer:
    """Rank jobs by the seconds they have left; one that cannot run goes last."""
    return [Share(job.id, rank=min(job.seconds_left, LAST)) for job in view.jobs.values()]


if __name__ == "__main__":
    srtf.run()
