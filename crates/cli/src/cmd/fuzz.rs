//! `yard fuzz`: random scenarios under every policy and every placer; the same seed, the same scenario. All cores try
//! seeds, all of the range is tried, and what fails is made short.

mod case;
mod sweep;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use yard_sim::fuzz::Part;

use crate::clock::CommandStopwatch;
use crate::output;
use case::{FuzzCase, FuzzFailure};
use sweep::{SeedSweep, sweep};

/// Which seeds to try.
#[derive(Clone, clap::Args)]
#[command(
    after_help = "Examples:\n  yard fuzz --count 1000\n  yard fuzz --seed 7000000 --seconds 60\n  yard fuzz --seed 61 --count 1\n\nFailing seeds are listed at the end. One of each kind is minimised within half a minute and printed with the\ncommand that repeats it; the exit status is then 1."
)]
pub(crate) struct FuzzArgs {
    /// First seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of seeds [default: 200, or as many as --seconds allows]
    #[arg(long)]
    count: Option<u64>,
    /// Start no further seed after this many seconds
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Number of seeds to try in parallel [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Only scenarios with promised deadlines and no faults: every promise must be kept
    #[arg(long)]
    calm: bool,
    /// Policy for all seeds [default: a different one for each]
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Keep only these parts of the seed's scenario, as printed for a minimised seed
    #[arg(long, value_name = "PARTS", value_delimiter = ',')]
    keep: Vec<Part>,
}

/// The default of `--count`.
const COUNT: u64 = 200;

/// Seconds in which failures are made short, all together: one that never ends takes long to try.
const SHORTEN_S: f64 = 30.0;

pub(crate) fn run(args: &FuzzArgs, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    if !args.keep.is_empty() && args.count() != 1 {
        bail!("--keep applies to one seed: add --count 1");
    }
    if let Some(name) = &args.policy {
        case::make(name, 0).map_err(anyhow::Error::msg)?;
    }
    let swept = sweep(args);
    output::note(&swept.pace());
    if swept.failures.is_empty() {
        writeln!(out, "{}; every invariant held", swept.sums(args.seed))?;
        return Ok(ExitCode::SUCCESS);
    }
    report(args, &swept, out)?;
    Ok(ExitCode::from(1))
}

/// All that failed, and one of each kind in full.
fn report(args: &FuzzArgs, swept: &SeedSweep, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut kinds: BTreeMap<String, &FuzzFailure> = BTreeMap::new();
    for failure in &swept.failures {
        kinds.entry(failure.kind()).or_insert(failure);
    }
    let each = SHORTEN_S / kinds.len() as f64;
    for failure in kinds.values() {
        let watch = CommandStopwatch::start();
        writeln!(out, "{}", args.case(failure.seed).explained(failure, &|| watch.seconds() < each))?;
    }
    writeln!(out, "{}; {} seeds FAILED:", swept.sums(args.seed), swept.failures.len())?;
    for failure in &swept.failures {
        writeln!(out, "  {failure}")?;
    }
    Ok(())
}

impl FuzzArgs {
    fn count(&self) -> u64 {
        self.count.unwrap_or(if self.seconds.is_some() { u64::MAX } else { COUNT })
    }

    fn case(&self, seed: u64) -> FuzzCase<'_> {
        FuzzCase::new(seed, self.calm, self.policy.as_deref(), &self.keep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fuzz(args: &FuzzArgs) -> (ExitCode, String) {
        let mut out = Vec::new();
        let code = run(args, &mut out).expect("it can be run");
        (code, String::from_utf8(out).expect("it prints text"))
    }

    fn args(policy: &str, seed: u64, count: u64) -> FuzzArgs {
        let policy = Some(policy.to_owned());
        FuzzArgs {
            seed,
            count: Some(count),
            seconds: None,
            jobs: Some(2),
            calm: false,
            policy,
            keep: Vec::new(),
        }
    }

    /// Its policy panics when it sees two jobs at once that want one node; the scenarios have up to 40 jobs.
    #[test]
    fn a_broken_policy_is_found_and_its_failure_made_short() {
        let (code, said) = fuzz(&args(case::BROKEN, 0, 60));
        assert_eq!(code, ExitCode::from(1), "{said}");
        assert!(said.contains("two jobs that want one node") && said.contains("seeds FAILED:"), "{said}");
        let first = said.lines().take_while(|line| !line.contains("FAILED"));
        let (jobs, nodes) = first.fold((0, 0), |(jobs, nodes), line| {
            (jobs + line.starts_with("  job ") as u32, nodes + line.starts_with("  node ") as u32)
        });
        assert!(jobs == 2 && (1..=2).contains(&nodes), "{jobs} jobs and {nodes} nodes are left: {said}");
        assert!(!said.contains("  at "), "nothing else needs to happen: {said}");
    }

    #[test]
    fn what_was_made_short_can_be_repeated() {
        let (_, said) = fuzz(&args(case::BROKEN, 0, 60));
        let line =
            said.lines().find(|line| line.contains("yard fuzz --seed")).expect("it says how to repeat it");
        let word = |name: &str| {
            let mut words = line.split_whitespace().skip_while(|word| *word != name);
            words.nth(1).expect("the option has a value").to_owned()
        };
        let seed = word("--seed").parse().expect("the seed is a number");
        let keep = word("--keep").split(',').map(|part| part.parse().expect("parts can be read")).collect();
        let (code, again) = fuzz(&FuzzArgs { keep, ..args(case::BROKEN, seed, 1) });
        assert_eq!(code, ExitCode::from(1));
        assert!(again.contains("two jobs that want one node"), "{again}");
    }

    #[test]
    fn a_failure_is_printed_as_short_as_it_was_when_the_time_was_up() {
        let args = args(case::BROKEN, 0, 60);
        let failed = |seed: u64| args.case(seed).check().err();
        let failure = (0..60).find_map(failed).expect("some seed has two such jobs");
        let said = args.case(failure.seed).explained(&failure, &|| false);
        assert!(said.contains("Made short in 0 tries") && said.contains("when the time was up"), "{said}");
        assert!(said.contains("two jobs that want one node") && said.contains("Repeat it: "), "{said}");
    }

    #[test]
    fn all_of_the_range_is_tried_and_all_that_fails_is_listed() {
        let (_, all) = fuzz(&args(case::BROKEN, 0, 30));
        let alone = |seed: &u64| fuzz(&args(case::BROKEN, *seed, 1)).0 == ExitCode::from(1);
        let failing: Vec<u64> = (0..30).filter(alone).collect();
        assert!(failing.len() > 1, "one failure is not enough for this test");
        let listed =
            all.lines().filter_map(|line| line.strip_prefix("  seed ")?.split(' ').next()?.parse().ok());
        assert_eq!(listed.collect::<Vec<u64>>(), failing, "{all}");
        assert!(all.contains("30 seeds from 0: "), "{all}");
    }
}
