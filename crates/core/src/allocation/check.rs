//! Whether an allocation can be put in force at all, whatever policy it comes from.

use std::sync::Arc;

use super::{Allocation, Share, Shares};
use crate::ids::JobIdx;
use crate::job::{JobRun, JobSpec};

/// Why an allocation cannot be put in force; the last one stays.
pub(crate) fn check(allocation: &Allocation, specs: &[Arc<JobSpec>], runs: &[JobRun]) -> Result<(), String> {
    if let Some(proof) = &allocation.certificate {
        let rows = proof.unmet.iter().all(|job| job.index() < specs.len());
        let numbers = proof.prices.iter().chain([&proof.objective, &proof.bound]);
        if !rows || numbers.into_iter().any(|number| !number.is_finite()) {
            return Err("a certificate that names no job's row or holds no number".into());
        }
    }
    let (Shares::All(shares) | Shares::Changed(shares)) = &allocation.shares;
    shares.iter().try_for_each(|share| check_share(share, specs))?;
    let most = match &allocation.shares {
        Shares::All(_) => in_all(shares, specs.len()),
        Shares::Changed(_) => in_few(shares),
    };
    match most.into_iter().find(|(_, sum)| *sum > 1.0 + 1e-6) {
        Some((job, sum)) => {
            Err(format!("the shares of job {} add up to {sum}, above 1", runs[job.index()].id))
        }
        None => Ok(()),
    }
}

/// What the shares of each job add up to, where an answer is for all of them.
fn in_all(shares: &[Share], jobs: usize) -> Vec<(JobIdx, f64)> {
    let mut sums: Vec<(JobIdx, f64)> = (0..jobs as u32).map(|job| (JobIdx(job), 0.0)).collect();
    for share in shares {
        share.jobs.iter().for_each(|job| sums[job.index()].1 += share.fraction);
    }
    sums
}

/// The same for an answer about some jobs, at a cost that does not depend on how many others there are.
fn in_few(shares: &[Share]) -> Vec<(JobIdx, f64)> {
    let parts = shares.iter().flat_map(|share| share.jobs.iter().map(|job| (*job, share.fraction)));
    let mut parts: Vec<(JobIdx, f64)> = parts.collect();
    parts.sort_unstable_by_key(|(job, _)| *job);
    let sum = |same: &[(JobIdx, f64)]| (same[0].0, same.iter().map(|(_, part)| part).sum());
    parts.chunk_by(|a, b| a.0 == b.0).map(sum).collect()
}

fn check_share(share: &Share, specs: &[Arc<JobSpec>]) -> Result<(), String> {
    let Some(lead) = share.jobs.first() else { return Err("a share without a job".into()) };
    if (1..share.jobs.len()).any(|at| share.jobs[..at].contains(&share.jobs[at])) {
        return Err("a group that names a job twice".into());
    }
    if share.jobs.iter().any(|job| job.index() >= specs.len()) {
        return Err(format!("a share names row {lead}, which does not exist"));
    }
    if share.jobs.len() > 1 && share.jobs.iter().any(|job| specs[job.index()].asks_hosts()) {
        return Err("a group with a job that asks for amounts of its hosts, which are not shared".into());
    }
    if !(share.fraction > 0.0 && share.fraction <= 1.0 + 1e-6) {
        return Err(format!("a share's fraction is {}, not in (0, 1]", share.fraction));
    }
    if share.rank.0.is_nan() || share.rank.1.is_nan() {
        return Err("a share's rank is not a number".into());
    }
    let shapes = &specs[lead.index()].shapes;
    match share.shape {
        Some(shape) if shape as usize >= shapes.len() => {
            Err(format!("a share names shape {shape} of {}", shapes.len()))
        }
        // Packed jobs sit on the same devices, so each must have a shape that takes them.
        Some(shape)
            if share.jobs.iter().any(|job| specs[job.index()].way(&shapes[shape as usize]).is_none()) =>
        {
            Err(format!("a group in shape {shape} of its first job, which another of its jobs does not have"))
        }
        None if share.jobs.iter().any(|job| specs[job.index()].shapes != *shapes) => {
            Err("a group in any shape, of jobs with different shapes".into())
        }
        _ => Ok(()),
    }
}
