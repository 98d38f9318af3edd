#!/usr/bin/env python3
"""First in, first out: yard's own `fifo`. The first job that does not fit blocks all behind it."""

from __future__ import annotations

from switchyard.policy import Answer, Changed, Share, View, policy


@policy(skip=False)
def fifo(view: View) -> Answer:
    """Rank jobs by when they were submitted. A rank holds for life, so only changes are answered."""
    shares = [Share(job.id, rank=job.submitted) for job in view.changed]
    return shares if view.full else Changed(shares)


if __name__ == "__main__":
    fifo.run()
