//! A journal that makes the scheduler fail must not stop it for ever. The input at which a replay fails was journaled
//! but nothing came of it: the server died of it before it acted. So it is set aside, with a loud report, and the
//! replay begins again with something harmless in its place that keeps all numbers as they are.

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use yard_core::message::{Input, NodeChange};

use crate::store::{EndedJob, Store, StoreError};

/// Inputs that are set aside at most; more are no accident of one input.
const ASIDE_MAX: usize = 64;

/// What is said of a job that was submitted with such an input.
const SET_ASIDE: &str =
    "The scheduler failed on this job, so it was set aside. Administrators: see yard repair.";

/// Where a replay is, and what it leaves out.
#[derive(Debug, Default)]
pub(super) struct Replaying {
    /// The input that is being stepped; 0: none.
    at: AtomicU64,
    aside: BTreeSet<u64>,
}

impl Replaying {
    /// What to step for an input: itself, or a stand-in where it was set aside.
    pub(super) fn input(&self, seq: u64, input: Input) -> Input {
        self.at.store(seq, Ordering::Relaxed);
        if self.aside.contains(&seq) { stand_in(input) } else { input }
    }

    /// Says of a job that ended with this input that it was set aside, if it was.
    pub(super) fn explain(&self, seq: u64, ended: &mut [EndedJob]) {
        if self.aside.contains(&seq) {
            ended.iter_mut().for_each(|job| job.view.reason = Some(SET_ASIDE.to_owned()));
        }
    }

    /// The replay is over.
    pub(super) fn done(&self) {
        self.at.store(0, Ordering::Relaxed);
    }

    /// The input to set aside after a failure: the one at which it failed or, where even its stand-in fails, the last
    /// one before it that is not set aside yet.
    fn culprit(&self) -> Option<u64> {
        let at = self.at.load(Ordering::Relaxed);
        (1..=at).rev().find(|seq| !self.aside.contains(seq))
    }

    /// How many inputs were set aside.
    pub(super) fn count(&self) -> usize {
        self.aside.len()
    }
}

/// Recovers, and sets aside what makes that fail.
pub(super) fn recover_all<T>(
    open: impl Fn() -> Result<Store, StoreError>,
    recover: impl Fn(Store, &Replaying) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    loop {
        let store = open()?;
        let replaying = Replaying { aside: store.numbers_aside()?, ..Replaying::default() };
        let failure = match catch_unwind(AssertUnwindSafe(|| recover(store, &replaying))) {
            Ok(recovered) => return recovered,
            Err(failure) => failure,
        };
        let Some(seq) = replaying.culprit().filter(|_| replaying.count() < ASIDE_MAX) else {
            resume_unwind(failure)
        };
        let reason = said(failure.as_ref());
        tracing::error!(
            input = seq,
            reason,
            "THE SCHEDULER FAILED ON AN INPUT OF ITS JOURNAL. The input is set aside and the server starts without it; \
             see `yard repair`, and please report this."
        );
        if open()?.set_aside(seq, &reason)? == 0 {
            resume_unwind(failure); // It is in the snapshot, or in none of it.
        }
    }
}

/// What a panic said.
fn said(failure: &(dyn Any + Send)) -> String {
    let text = failure.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| failure.downcast_ref::<&str>().copied()).unwrap_or("it gave no reason").to_owned()
}

/// Something harmless that takes the same numbers: a job that is rejected, a node without change, a tick.
fn stand_in(input: Input) -> Input {
    match input {
        Input::Submit(mut spec) => {
            spec.shapes = [].into();
            Input::Submit(spec)
        }
        numbered @ (Input::Kind(_) | Input::Resource(_) | Input::Node(NodeChange::Join(_))) => numbered,
        _ => Input::Tick,
    }
}
