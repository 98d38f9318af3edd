#!/usr/bin/env python3
"""An equal part of the cluster for everyone: yard's own `isolated`, as fractions of the time."""

from __future__ import annotations

from switchyard.policy import Answer, Job, Share, View, policy


@policy(mode="fractions")
def isolated(view: View) -> Answer:
    """Give each of n jobs the part of its time that a cluster of 1/n the size would."""
    jobs = view.in_order()
    shares = [share for job in jobs for share in parts(view, job, len(jobs))]
    return view.with_leftovers(shares)


def parts(view: View, job: Job, n_jobs: int) -> list[Share]:
    """The job's part of each kind of device, where it has a shape there that makes progress."""
    gang = float(job.gpus)
    part = {kind: view.capacity(kind) / n_jobs / gang for kind in view.kinds}
    whole = 0.0
    for of_kind in part.values():
        whole += of_kind  # sum() rounds differently from one version of Python to the next
    shares = []
    for kind in view.kinds:
        alone = [at for at in job.usable() if len(job.shapes[at].gpus) == 1 and kind in job.shapes[at].gpus]
        if alone and part[kind] > 0:
            shares.append(Share(job.id, shape=alone[0], fraction=part[kind] / max(1.0, whole)))
    return shares


if __name__ == "__main__":
    isolated.run()
