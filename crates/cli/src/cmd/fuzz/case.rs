//! One scenario under one policy and one placer: tried, and made short where it fails.

use std::cell::RefCell;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Once};

use yard_core::Span;
use yard_core::policy::Policy;
use yard_policies::{ALL, PLACERS};
use yard_sim::chaos::{Chaos, SENSE_FROM};
use yard_sim::fuzz::{FuzzTally, IdleSense, Part, Scenario, shrink};

/// The policy without sense.
const CHAOS: &str = "chaos";

/// A policy that fails, for tests of the fuzzer itself.
#[cfg(test)]
pub(super) const BROKEN: &str = "broken";

/// What a seed is tried with.
pub(super) struct FuzzCase<'a> {
    seed: u64,
    policy: &'a str,
    placer: &'static str,
    /// Options besides the seed, as they are typed.
    options: String,
    calm: bool,
    keep: &'a [Part],
}

/// How a seed failed.
#[derive(Clone, Debug)]
pub(super) struct FuzzFailure {
    pub(super) seed: u64,
    with: String,
    /// The statement that did not hold.
    says: String,
}

impl fmt::Display for FuzzFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {} ({}): {}", self.seed, self.with, self.says)
    }
}

impl FuzzFailure {
    /// Two failures of one kind differ in numbers only.
    pub(super) fn kind(&self) -> String {
        kind(&self.says)
    }
}

fn kind(says: &str) -> String {
    says.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// Services of past jobs, for policies that need them.
fn service() -> Arc<[f64]> {
    Arc::from([10.0, 100.0, 1000.0, 5000.0])
}

impl FuzzCase<'_> {
    pub(super) fn new<'a>(seed: u64, calm: bool, policy: Option<&'a str>, keep: &'a [Part]) -> FuzzCase<'a> {
        let (own, placer) = names(seed);
        let calmly = if calm { " --calm" } else { "" };
        let named = policy.map(|name| format!(" --policy {name}")).unwrap_or_default();
        FuzzCase {
            seed,
            policy: policy.unwrap_or(own),
            placer,
            options: calmly.to_owned() + &named,
            calm,
            keep,
        }
    }

    /// Runs it to the end.
    pub(super) fn check(&self) -> Result<FuzzTally, FuzzFailure> {
        let whole = self.scenario();
        let scenario = if self.keep.is_empty() { whole } else { whole.only(self.keep) };
        let with = format!("{}, {}", self.policy, self.placer);
        self.held(&scenario).map_err(|says| FuzzFailure { seed: self.seed, with, says })
    }

    /// The failure and its scenario, as short as it can be made while there is time, and how to repeat it.
    pub(super) fn explained(&self, failure: &FuzzFailure, in_time: &dyn Fn() -> bool) -> String {
        let whole = self.scenario();
        let all = if self.keep.is_empty() { whole.parts() } else { self.keep.to_vec() };
        let mut tries = 0;
        let parts = shrink(all, &mut |parts| {
            let tried = in_time();
            tries += usize::from(tried);
            tried && self.held(&whole.only(parts)).is_err_and(|says| kind(&says) == failure.kind())
        });
        let over = if in_time() { "" } else { ", when the time was up" };
        let short = whole.only(&parts);
        let says = self.held(&short).err().unwrap_or_else(|| failure.says.clone());
        let names: Vec<_> = parts.iter().map(Part::to_string).collect();
        format!(
            "seed {} ({}): {says}\nMade short in {tries} tries, from {} to {}{over}:\n{short}Repeat it: yard fuzz --seed {} --count 1{} --keep {}\nThe whole:  yard fuzz --seed {} --count 1{}\n",
            self.seed,
            failure.with,
            whole.size(),
            short.size(),
            self.seed,
            self.options,
            names.join(","),
            self.seed,
            self.options
        )
    }

    fn scenario(&self) -> Scenario {
        if self.calm { Scenario::calm(self.seed) } else { Scenario::new(self.seed) }
    }

    /// What did not hold in this scenario, if anything.
    fn held(&self, scenario: &Scenario) -> Result<FuzzTally, String> {
        if scenario.is_empty() {
            return Ok(FuzzTally::default());
        }
        let place = || yard_policies::placer(self.placer).expect("the name is from the table");
        let sense = sense_of(self.policy);
        caught(|| scenario.check(&mut *make(self.policy, self.seed)?, Some(sense), &place))
    }
}

/// What is expected of a policy.
fn sense_of(policy: &str) -> IdleSense {
    match policy {
        CHAOS => IdleSense { from: SENSE_FROM, ..IdleSense::default() },
        // Who gave devices back early has paid with that, and is not asked before the lease is over.
        "themis" => IdleSense { patience: Span::from_whole_secs(1_200), ..IdleSense::default() },
        _ => IdleSense::default(),
    }
}

/// A policy by name, for one seed.
pub(super) fn make(name: &str, seed: u64) -> Result<Box<dyn Policy>, String> {
    let known = |name: &str| yard_policies::make(name, service()).map_err(|error| error.to_string());
    match name {
        CHAOS => Ok(Box::new(Chaos::new(seed).followed_by(known("fifo")?.1))),
        #[cfg(test)]
        BROKEN => Ok(Box::new(broken::Broken(known("fifo")?.1))),
        name => Ok(known(name)?.1),
    }
}

/// The policy and placer that a seed uses; one in three gets the senseless one.
fn names(seed: u64) -> (&'static str, &'static str) {
    let at = (seed / 3) as usize;
    let policy = if seed.is_multiple_of(3) { CHAOS } else { ALL[(seed as usize - at - 1) % ALL.len()].name };
    // `yarn` refuses what it cannot place its own way, for ever; the others always find a place.
    let sure: Vec<_> = PLACERS.iter().filter(|placer| placer.name != "yarn").collect();
    (policy, sure[seed as usize % sure.len()].name)
}

thread_local! {
    /// What a panic on this thread says, while one is expected.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs something; a panic is an error that says where it was.
fn caught(body: impl FnOnce() -> Result<FuzzTally, String>) -> Result<FuzzTally, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(listen);
    SAID.set(Some(String::new()));
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(body));
    let said = SAID.take().unwrap_or_default();
    outcome.unwrap_or(Err(said))
}

/// From now on panics are noted where they are expected, and printed as before elsewhere.
fn listen() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let expected =
            SAID.with_borrow_mut(|said| said.as_mut().map(|said| *said = in_words(info)).is_some());
        if !expected {
            print(info);
        }
    }));
}

fn in_words(info: &std::panic::PanicHookInfo<'_>) -> String {
    let text = info.payload().downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| info.payload().downcast_ref::<&str>().copied());
    let says = text.unwrap_or("no message").replace('\n', " ");
    let at = info.location().map(|at| format!(" (panic at {}:{})", at.file(), at.line()));
    format!("{says}{}", at.unwrap_or_default())
}

#[cfg(test)]
mod broken {
    use yard_core::allocation::Allocation;
    use yard_core::cluster::Level;
    use yard_core::policy::{Cadence, Policy, PolicyError};
    use yard_core::view::View;

    /// It works until it sees two jobs that want one node each.
    pub(super) struct Broken(pub(super) Box<dyn Policy>);

    impl Policy for Broken {
        fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
            let wants =
                |shapes: &[yard_core::job::Shape]| shapes.iter().any(|shape| shape.level() == Level::Node);
            let many = view.active().filter(|job| wants(&view.spec(*job).shapes)).count();
            assert!(many < 2, "{many} jobs: two jobs that want one node");
            self.0.allocate(view)
        }

        fn cadence(&self) -> Cadence {
            self.0.cadence()
        }
    }
}
