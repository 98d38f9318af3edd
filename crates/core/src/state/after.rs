//! Who waits for whom, and who did not succeed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::ids::{JobId, JobIdx};

/// Most jobs of which it is remembered that they did not succeed; of those before the oldest nothing is known.
const FAILED_MAX: usize = 1 << 16;

/// Who waits for whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct After {
    /// Who waits for a living job.
    pub(crate) followers: BTreeMap<JobId, Vec<JobIdx>>,
    /// For how many others a job still waits.
    pub(crate) left: BTreeMap<JobIdx, u32>,
    /// Jobs that are over and did not succeed.
    pub(crate) failed: BTreeSet<JobId>,
    /// The first job of which it is known how it ended.
    pub(crate) known_from: JobId,
}

impl After {
    /// Notes that a job did not succeed.
    pub(crate) fn note_failed(&mut self, job: JobId) {
        self.failed.insert(job);
        if self.failed.len() > FAILED_MAX {
            let oldest = self.failed.pop_first().expect("there are many");
            self.known_from = JobId(oldest.0 + 1);
        }
    }

    /// Whether a job waits for others.
    pub(crate) fn awaits(&self, job: JobIdx) -> bool {
        self.left.contains_key(&job)
    }

    pub(crate) fn left(&self) -> impl Iterator<Item = (JobIdx, u32)> + '_ {
        self.left.iter().map(|(job, left)| (*job, *left))
    }

    pub(crate) fn followers(&self) -> impl Iterator<Item = (JobId, &[JobIdx])> {
        self.followers.iter().map(|(job, rows)| (*job, &rows[..]))
    }
}
