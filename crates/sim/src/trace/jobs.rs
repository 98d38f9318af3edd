//! Where the formats put the jobs they read: repeated words are shared, rows left out are counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use yard_core::Time;
use yard_core::job::{Late, Sharing};

use super::{TraceJob, Work};

/// The jobs of a trace as they are read.
#[derive(Default)]
pub(crate) struct TraceJobs {
    /// Those read so far, in the order of the file.
    pub(crate) list: Vec<TraceJob>,
    words: BTreeSet<Arc<str>>,
    kinds: BTreeMap<Box<str>, Arc<[Arc<str>]>>,
    left_out: BTreeMap<&'static str, usize>,
    remarks: BTreeMap<&'static str, usize>,
    sharings: BTreeMap<String, Arc<Sharing>>,
}

impl TraceJobs {
    /// Adds a job with what every format gives; the caller fills in the rest on the result.
    pub(crate) fn add(
        &mut self,
        name: &str,
        submit: Time,
        gpus: u32,
        work: Work,
        line: u64,
    ) -> &mut TraceJob {
        let kinds = self.kinds("");
        self.list.push(TraceJob {
            name: name.into(),
            submit,
            gpus,
            work,
            model: None,
            batch_size: None,
            user: None,
            tenant: None,
            weight: 1.0,
            priority: 0,
            deadline: None,
            min_gpus: None,
            max_gpus: None,
            mode: None,
            batch_max: None,
            regimes: None,
            kinds,
            sharing: None,
            host: None,
            close: None,
            rewards: None,
            late: Late::Try,
            after: Box::default(),
            line,
        });
        self.list.last_mut().expect("a job was pushed")
    }

    /// The one shared copy of a word; none for an empty one.
    pub(crate) fn word(&mut self, word: &str) -> Option<Arc<str>> {
        (!word.is_empty()).then(|| self.intern(word))
    }

    fn intern(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.words.get(word) {
            return known.clone();
        }
        let new: Arc<str> = word.into();
        self.words.insert(new.clone());
        new
    }

    /// The one shared copy of what jobs say of sharing; none where they say nothing.
    pub(crate) fn sharing(&mut self, said: Sharing) -> Option<Arc<Sharing>> {
        if said == Sharing::PLAIN {
            return None;
        }
        // Numbers have no order of their own; as text they do.
        let known = self.sharings.entry(format!("{said:?}"));
        Some(known.or_insert_with(|| Arc::new(said)).clone())
    }

    /// The kinds in a list separated by `|`, each once, in their order; the same list is shared.
    pub(crate) fn kinds(&mut self, list: &str) -> Arc<[Arc<str>]> {
        if let Some(known) = self.kinds.get(list) {
            return known.clone();
        }
        let mut kinds: Vec<Arc<str>> = Vec::new();
        let mut seen = BTreeSet::new();
        for kind in list.split('|').map(str::trim).filter(|kind| !kind.is_empty()) {
            if seen.insert(kind) {
                kinds.push(self.intern(kind));
            }
        }
        let kinds: Arc<[Arc<str>]> = kinds.into();
        self.kinds.insert(list.into(), kinds.clone());
        kinds
    }

    /// Counts a row that is no job, and says why: "num_gpu is 0".
    pub(crate) fn leave_out(&mut self, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
    }

    /// Counts a row of which something is not used.
    pub(crate) fn remark(&mut self, what: &'static str) {
        *self.remarks.entry(what).or_default() += 1;
    }

    /// A sentence for each reason that rows were left out or not used whole.
    pub(crate) fn notes(&self) -> Vec<String> {
        let rows = self.list.len() + self.left_out.values().sum::<usize>();
        let left_out = self.left_out.iter().map(|(why, n)| format!("{n} of {rows} rows left out: {why}"));
        let remarks = self.remarks.iter().map(|(what, n)| format!("in {n} of {rows} rows {what}"));
        left_out.chain(remarks).collect()
    }
}
