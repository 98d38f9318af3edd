//! What is remembered of jobs to learn how fast they are.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::goodput::Goodput;
use crate::ids::ProfileId;
use crate::training::Training;
use crate::units::Time;

/// A stretch of work in the same company, from one report to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stint {
    pub(crate) since: Time,
    /// Steps done by then.
    pub(crate) steps: f64,
    /// Who else worked on the devices.
    pub(crate) company: SmallVec<[ProfileId; 1]>,
    /// When it was told to stop.
    pub(crate) until: Option<Time>,
}

/// Lists of profiles whose fits are remembered for the next job that brings the same.
const FITS_MAX: usize = 64;

/// What a job that trains is known by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Trainee {
    /// Shared between like jobs until they report.
    pub(crate) goodput: Arc<Goodput>,
    /// The speeds it was submitted with.
    pub(crate) guesses: Arc<[f64]>,
}

/// The first beliefs of jobs that came lately, so that like jobs are not fitted one by one. An index for speed: what
/// it says can always be worked out anew, so it is neither saved nor compared.
#[derive(Clone, Debug, Default)]
pub(crate) struct FirstFits(Vec<(Arc<Training>, Arc<Goodput>)>);

impl PartialEq for FirstFits {
    fn eq(&self, _: &FirstFits) -> bool {
        true
    }
}

impl FirstFits {
    pub(crate) fn of(&mut self, training: &Arc<Training>) -> Arc<Goodput> {
        let same = self.0.iter().position(|(known, _)| Arc::ptr_eq(known, training));
        let like = || self.0.iter().position(|(known, _)| known == training);
        if let Some(at) = same.or_else(like) {
            return self.0[at].1.clone();
        }
        let goodput = Arc::new(Goodput::new(training));
        if self.0.len() >= FITS_MAX {
            self.0.remove(0);
        }
        self.0.push((training.clone(), goodput.clone()));
        goodput
    }
}
