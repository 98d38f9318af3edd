//! Every policy and every placer, one file each, behind one table each. This crate knows no clock, no
//! IO, no engine and no randomness: a policy reads a `View` and answers with an `Allocation`, a placer
//! reads nodes and answers with devices. What a policy keeps between calls is an index for speed; it
//! must answer the same without it (a property test over `ALL`, in `properties.rs`).
//!
//! To add a policy: one file that opens with its paper and ends with its tests, a `mod` line, and one
//! line in `ALL`.

mod afs;
mod allox;
mod antman;
#[cfg(test)]
mod area;
mod backfill;
mod buyers;
#[cfg(test)]
mod cases;
mod choosing;
mod chronus;
mod cost;
mod cost_slo;
mod counts;
mod dollars;
mod edf;
mod elas;
mod elasticflow;
mod fifo;
mod fifo_fit;
mod fifo_het;
mod finish_time;
mod gandiva;
mod gandiva_fair;
mod genie;
mod gittins;
mod heet_like;
mod hierarchical;
mod hypersched;
mod index;
mod isolated;
mod kubeshare;
mod las;
mod leftovers;
mod ljf;
mod lpjf;
mod lucid;
mod lyra;
mod makespan;
mod market;
mod max_min;
mod max_throughput;
mod nash;
#[cfg(test)]
mod needs;
mod optimus;
mod packs;
mod params;
mod past;
mod perotin;
pub mod placers;
mod pollux;
#[cfg(test)]
mod priorities;
#[cfg(test)]
mod properties;
mod ranked;
mod round_robin;
mod salus;
mod seats;
mod shockwave;
mod sia;
mod sizes;
mod sjf;
mod srsf;
mod srtf;
mod stable;
#[cfg(test)]
mod testing;
mod themis;
mod tiresias;
mod together;
mod water_filling;

use std::sync::Arc;

use yard_core::policy::{Knowledge, Policy, Priorities};

pub use params::{ParamError, Params};
pub use placers::{PLACERS, placer};
use ranked::Unclassed;

/// A policy in the table: all that help, documentation and the command line need to know.
#[derive(Clone, Copy, Debug)]
pub struct PolicyEntry {
    /// The name it is called by.
    pub name: &'static str,
    /// The test in `crates/cli/tests/live` that runs it through real agents; empty where there is none.
    pub live: &'static str,
    /// Policies of one kind: what they look at.
    pub family: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
    /// What of the paper is there.
    pub there: &'static str,
    /// What of it is not; "nothing" where all is.
    pub missing: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// The parameters it takes, each with what it means and what it is if not given.
    pub params: &'static [(&'static str, &'static str)],
    /// Whether it is run in rounds unless told otherwise.
    pub rounds: bool,
    /// What it makes of priorities.
    pub priority: Priorities,
    /// What it must be told of jobs to do what it says, as its parameters are if not given.
    pub needs: &'static [Knowledge],
    /// Makes it.
    pub make: fn(&Params) -> Result<Box<dyn Policy>, ParamError>,
}

/// What to use where a policy refuses priorities and goes by weights.
const WEIGHT: &str = "give it a larger weight";
/// What to use where a policy refuses priorities and has nothing of the kind.
const OTHER: &str = "choose a policy that honours them";

/// Every policy.
pub const ALL: &[PolicyEntry] = &[
    #[cfg(test)] // The worked example of docs/new-policy.md: in the tests, and in no binary.
    area::ENTRY,
    fifo::ENTRY,
    fifo_fit::ENTRY,
    backfill::ENTRY,
    sjf::ENTRY,
    ljf::ENTRY,
    srtf::ENTRY,
    srsf::ENTRY,
    las::ENTRY,
    tiresias::ENTRY,
    gittins::ENTRY,
    elas::ENTRY,
    edf::ENTRY,
    elasticflow::ENTRY,
    chronus::ENTRY,
    genie::ENTRY,
    hypersched::ENTRY,
    round_robin::ENTRY,
    isolated::ENTRY,
    fifo_het::ENTRY,
    allox::ENTRY,
    gandiva_fair::ENTRY,
    themis::ENTRY,
    gandiva::ENTRY,
    antman::ENTRY,
    kubeshare::ENTRY,
    salus::ENTRY,
    lucid::ENTRY,
    lpjf::ENTRY,
    afs::ENTRY,
    optimus::ENTRY,
    sia::ENTRY,
    market::ENTRY,
    pollux::ENTRY,
    lyra::ENTRY,
    heet_like::ENTRY,
    shockwave::ENTRY,
    max_min::ENTRY,
    water_filling::ENTRY,
    finish_time::ENTRY,
    makespan::ENTRY,
    perotin::ENTRY,
    max_throughput::ENTRY,
    hierarchical::ENTRY,
    nash::ENTRY,
    cost::ENTRY,
    cost_slo::ENTRY,
];

pub use yard_solver::Completion;

/// The policy of this name.
pub fn find(name: &str) -> Result<&'static PolicyEntry, ParamError> {
    let unknown = || ParamError::unknown("policy", name, ALL.iter().map(|entry| entry.name));
    ALL.iter().find(|entry| entry.name == name).ok_or_else(unknown)
}

/// Makes a policy from `name[:key=value[:key=value…]]`. `service` is what past jobs received, in
/// device-seconds, for those policies that learn from it.
pub fn make(spec: &str, service: Arc<[f64]>) -> Result<(&'static PolicyEntry, Box<dyn Policy>), ParamError> {
    let mut parts = spec.split(':');
    let entry = find(parts.next().unwrap_or_default())?;
    let policy = (entry.make)(&Params::read(entry, parts, service)?)?;
    let classed = entry.priority == Priorities::Classes;
    Ok((entry, if classed { policy } else { Box::new(Unclassed(policy)) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(spec: &str) -> String {
        make(spec, Arc::from([])).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn names_are_unique_and_entries_complete() {
        for (at, entry) in ALL.iter().enumerate() {
            assert!(ALL[..at].iter().all(|other| other.name != entry.name), "{}", entry.name);
            let said = [entry.about, entry.paper, entry.family, entry.there, entry.missing];
            assert!(said.iter().all(|text| !text.is_empty()), "{}", entry.name);
        }
    }

    #[test]
    fn every_policy_is_made_by_its_name() {
        for entry in ALL {
            let (found, _) = make(entry.name, Arc::from([1.0, 2.0])).unwrap();
            assert_eq!(found.name, entry.name);
        }
    }

    #[test]
    fn an_unknown_policy_is_answered_with_the_nearest_and_all() {
        let said = error("tiresius");
        assert!(said.contains("did you mean `tiresias`?"), "{said}");
        assert!(ALL.iter().all(|entry| said.contains(entry.name)), "{said}");
    }

    #[test]
    fn parameters_are_checked() {
        assert!(make("tiresias:thresholds=3250/7200:promote=8", Arc::from([])).is_ok());
        assert!(error("tiresias:knob=8").contains("thresholds, promote"), "{}", error("tiresias:knob=8"));
        assert!(error("fifo:x=1").contains("takes no parameters"), "{}", error("fifo:x=1"));
        assert!(error("tiresias:promote").contains("key=value"));
        assert!(error("tiresias:promote=1:promote=2").contains("once"));
        assert!(error("tiresias:promote=-1").contains("above 0"));
        assert!(error("tiresias:thresholds=5/4").contains("ascending"));
        let service = |list: &[f64]| make("gittins", Arc::from(list)).err().map(|error| error.to_string());
        assert!(service(&[-1.0]).is_some_and(|error| error.contains("service")));
        assert_eq!(service(&[]), None, "it learns from the jobs that end");
    }
}
