//! `yard fuzz`: random scenarios under every policy and every placer; the same seed, the same scenario.

use std::io::Write;
use std::sync::Arc;

use anyhow::bail;
use yard_core::policy::Policy;
use yard_policies::{ALL, PLACERS};
use yard_sim::chaos::Chaos;
use yard_sim::fuzz::{Scenario, Tally};

/// Which seeds to try.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  yard fuzz --count 1000\n  yard fuzz --seed 61 --count 1\n\nA failing seed prints the command that repeats it."
)]
pub(crate) struct FuzzArgs {
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds
    #[arg(long, default_value_t = 200)]
    count: u64,
    /// Only scenarios in which deadlines are promised and nothing goes wrong: every promise must be kept
    #[arg(long)]
    calm: bool,
    /// The policy for all seeds [default: another for each]
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
}

pub(crate) fn run(args: &FuzzArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut sum = Tally::default();
    for seed in args.seed..args.seed.saturating_add(args.count) {
        let (policy, placer) = args.names(seed);
        let tally = std::panic::catch_unwind(|| args.one(seed));
        match tally {
            Ok(Ok(tally)) => add(&mut sum, &tally),
            Ok(Err(broken)) => {
                bail!("seed {seed} ({policy}, {placer}): {broken}; repeat it with: make fuzz SEED={seed}")
            }
            Err(_) => bail!(
                "seed {seed} ({policy}, {placer}) broke an invariant, named above; repeat it with: make fuzz SEED={seed}"
            ),
        }
    }
    writeln!(
        out,
        "{} seeds from {}: {} engine steps, {} jobs done, {} ended otherwise, {} preemptions; every invariant held",
        args.count, args.seed, sum.steps, sum.done, sum.other, sum.preemptions
    )?;
    Ok(())
}

impl FuzzArgs {
    fn names(&self, seed: u64) -> (&str, &'static str) {
        let (policy, placer) = names(seed);
        (self.policy.as_deref().unwrap_or(policy), placer)
    }

    fn one(&self, seed: u64) -> Result<Tally, String> {
        let (policy, placer) = self.names(seed);
        let service: Arc<[f64]> = Arc::from([10.0, 100.0, 1000.0, 5000.0]);
        let mut made: Box<dyn Policy> = if policy == "chaos" {
            Box::new(Chaos::new(seed))
        } else {
            yard_policies::make(policy, service).map_err(|error| error.to_string())?.1
        };
        let place = || yard_policies::placer(placer).expect("the name is from the table");
        let scenario = if self.calm { Scenario::calm(seed) } else { Scenario::new(seed) };
        scenario.check(&mut *made, policy != "chaos", &place)
    }
}

/// The policy and placer that a seed uses; one in three gets the senseless one.
fn names(seed: u64) -> (&'static str, &'static str) {
    let at = (seed / 3) as usize;
    let policy =
        if seed.is_multiple_of(3) { "chaos" } else { ALL[(seed as usize - at - 1) % ALL.len()].name };
    // `yarn` refuses what it cannot place its own way, for ever; the others always find a place.
    let sure: Vec<_> = PLACERS.iter().filter(|placer| placer.name != "yarn").collect();
    (policy, sure[seed as usize % sure.len()].name)
}

fn add(sum: &mut Tally, tally: &Tally) {
    sum.steps += tally.steps;
    sum.done += tally.done;
    sum.other += tally.other;
    sum.preemptions += tally.preemptions;
}
