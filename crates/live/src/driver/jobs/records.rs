//! All living jobs, and how much each user has of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use yard_core::ids::JobId;

use super::JobPapers;
use crate::request::JobRequest;
use crate::translate;

/// All living jobs.
#[derive(Debug, Default)]
pub(in crate::driver) struct Records {
    pub(in crate::driver) all: BTreeMap<JobId, JobPapers>,
    /// Those that hold devices.
    pub(in crate::driver) holding: BTreeSet<JobId>,
    by_user: BTreeMap<String, RecordSum>,
    bytes: usize,
}

/// How much somebody has that is not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::driver) struct RecordSum {
    pub(in crate::driver) jobs: usize,
    /// Of what was submitted.
    pub(in crate::driver) bytes: usize,
}

impl Records {
    pub(in crate::driver) fn insert(&mut self, id: JobId, record: JobPapers) {
        let (own, bytes) =
            (self.by_user.entry(record.view.user.clone()).or_default(), record.request.footprint());
        (own.jobs, own.bytes) = (own.jobs + 1, own.bytes + bytes);
        self.bytes += bytes;
        self.all.insert(id, record);
    }

    pub(in crate::driver) fn remove(&mut self, id: JobId) -> Option<JobPapers> {
        let record = self.all.remove(&id)?;
        self.holding.remove(&id);
        let bytes = record.request.footprint();
        self.bytes -= bytes;
        if let Some(own) = self.by_user.get_mut(&record.view.user) {
            (own.jobs, own.bytes) = (own.jobs - 1, own.bytes - bytes);
            if own.jobs == 0 {
                self.by_user.remove(&record.view.user);
            }
        }
        Some(record)
    }

    /// A job asks for something else from now on.
    pub(in crate::driver) fn rewrite(&mut self, id: JobId, request: Arc<JobRequest>) {
        let Some(mut record) = self.remove(id) else { return };
        record.view.name = translate::name(&request).unwrap_or_default();
        (record.view.priority, record.view.deadline) = (request.priority, request.deadline);
        record.request = request;
        let holds = record.held.is_some();
        self.insert(id, record);
        if holds {
            self.holding.insert(id);
        }
    }

    /// How much a user has that is not over.
    pub(in crate::driver) fn of_user(&self, user: &str) -> RecordSum {
        self.by_user.get(user).copied().unwrap_or_default()
    }

    /// Bytes of what was submitted, of all.
    pub(in crate::driver) fn bytes(&self) -> usize {
        self.bytes
    }
}
