//! Whether an allocation can be put in force at all, whatever policy it comes from.

use std::sync::Arc;

use crate::allocation::{Allocation, Share, Shares};
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
    let mut sums: Vec<(JobIdx, f64)> = Vec::with_capacity(shares.len());
    for share in shares {
        check_share(share, specs)?;
        sums.extend(share.jobs.iter().map(|job| (*job, share.fraction)));
    }
    sums.sort_unstable_by_key(|(job, _)| *job);
    for same in sums.chunk_by(|a, b| a.0 == b.0) {
        let sum: f64 = same.iter().map(|(_, fraction)| fraction).sum();
        if sum > 1.0 + 1e-6 {
            return Err(format!("the shares of job {} add up to {sum}, above 1", runs[same[0].0.index()].id));
        }
    }
    Ok(())
}

fn check_share(share: &Share, specs: &[Arc<JobSpec>]) -> Result<(), String> {
    let Some(lead) = share.jobs.first() else { return Err("a share without a job".into()) };
    if (1..share.jobs.len()).any(|at| share.jobs[..at].contains(&share.jobs[at])) {
        return Err("a group that names a job twice".into());
    }
    if share.jobs.iter().any(|job| job.index() >= specs.len()) {
        return Err(format!("a share names row {lead}, which does not exist"));
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
