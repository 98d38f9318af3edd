//! Where the jobs of a simulation come from: a file, or a generator with the seed of the run (`--trace gen:…`); and how
//! they are brought to a load (`--load`).

use std::path::Path;

use anyhow::{Context, bail};
use yard_core::{Span, Time};
use yard_sim::trace::{self, Arrivals, GenSpec, Opened, Preset, Trace, generate};

use crate::cmd::sim::SimArgs;

/// How a trace that is generated begins on the command line.
const PREFIX: &str = "gen:";

/// The most jobs that are generated.
const JOBS_MAX: usize = 50_000_000;

/// Whether another seed gives other jobs.
pub(crate) fn is_generated(trace: &str) -> bool {
    trace.starts_with(PREFIX)
}

/// The jobs of a simulation.
pub(crate) fn open(args: &SimArgs) -> anyhow::Result<Opened> {
    match args.trace.strip_prefix(PREFIX) {
        Some(rest) => {
            let spec = parse(rest, args.seed).with_context(|| format!("--trace {}", args.trace))?;
            Ok(Opened { trace: generate(&spec), notes: Vec::new() })
        }
        None => Ok(trace::open(Path::new(&args.trace), Some(&args.format))?),
    }
}

/// `PRESET:jobs=N:rate=PER_HOUR`, or `static` instead of a rate.
fn parse(rest: &str, seed: u64) -> anyhow::Result<GenSpec> {
    let how = "write gen:PRESET:jobs=N:rate=PER_HOUR, or :static instead of the rate";
    let mut parts = rest.split(':');
    let name = parts.next().unwrap_or_default();
    let known = || trace::PRESETS.iter().map(|info| info.name).collect::<Vec<_>>().join(", ");
    let preset =
        Preset::named(name).with_context(|| format!("unknown preset {name:?}; choose from: {}", known()))?;
    let (mut jobs, mut arrivals) = (None, None);
    for part in parts {
        match part.split_once('=') {
            Some(("jobs", count)) => jobs = count.parse().ok().filter(|count| (1..=JOBS_MAX).contains(count)),
            Some(("rate", rate)) => {
                let rate = rate.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
                arrivals = rate.map(Arrivals::Rate);
            }
            None if part == "static" => arrivals = Some(Arrivals::Static),
            _ => bail!("unknown part `{part}`; {how}"),
        }
    }
    let jobs = jobs.with_context(|| format!("jobs must be a count from 1 to {JOBS_MAX}; {how}"))?;
    let arrivals = arrivals.with_context(|| format!("the rate must be a number above 0; {how}"))?;
    Ok(GenSpec { jobs, arrivals, preset, seed })
}

/// Stretches or squeezes the times between arrivals, so that the jobs ask for this part of all device time between the
/// first and the last of them. `service`: device-seconds of all jobs. What is due is as long after its job as before.
pub(crate) fn bring_to_load(trace: &mut Trace, service: f64, devices: u32, load: f64) -> anyhow::Result<()> {
    if !(load.is_finite() && load > 0.0) {
        bail!("--load {load}: must be a number above 0, such as 0.8");
    }
    let first = trace.jobs.iter().map(|job| job.submit).min().unwrap_or(Time::ZERO);
    let last = trace.jobs.iter().map(|job| job.submit).max().unwrap_or(Time::ZERO);
    let span = (last - first).secs();
    if span <= 0.0 || service <= 0.0 {
        bail!("--load: all jobs of {} arrive at once; use a trace whose jobs arrive over time", trace.source);
    }
    let factor = service / (f64::from(devices) * span) / load;
    for job in &mut trace.jobs {
        let before = job.submit;
        job.submit = first + Span::from_secs((before - first).secs() * factor);
        let moved = |due: Time| job.submit + (due - before);
        job.deadline = job.deadline.map(moved);
        if let Some(rewards) = &job.rewards {
            let later = |reward: &yard_core::job::Reward| yard_core::job::Reward {
                by: moved(reward.by),
                worth: reward.worth,
            };
            job.rewards = Some(rewards.iter().map(later).collect());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace() -> Trace {
        generate(&parse("uniform:jobs=50:rate=30", 4).expect("it is well formed"))
    }

    #[test]
    fn a_generated_trace_is_named_in_one_word() {
        assert_eq!(trace().jobs.len(), 50);
        let other = generate(&parse("uniform:jobs=50:rate=30", 5).unwrap());
        assert_ne!(trace().jobs, other.jobs, "another seed gives other jobs");
        let said = |rest: &str| parse(rest, 0).unwrap_err().to_string();
        assert!(said("phily:jobs=1:static").contains("choose from: gavel, philly"));
        assert!(said("philly:jobs=0:static").contains("jobs must be a count"));
        assert!(said("philly:jobs=5:rate=-1").contains("rate must be"));
        assert!(said("philly:jobs=5:speed=1").contains("unknown part `speed=1`"));
    }

    #[test]
    fn arrivals_are_stretched_to_the_load() {
        let (mut half, mut whole) = (trace(), trace());
        whole.jobs[3].deadline = Some(whole.jobs[3].submit + Span::from_whole_secs(70));
        bring_to_load(&mut half, 1e6, 10, 0.5).unwrap();
        bring_to_load(&mut whole, 1e6, 10, 1.0).unwrap();
        let span = |trace: &Trace| (trace.jobs[49].submit - trace.jobs[0].submit).secs();
        assert!((span(&half) - 2e5).abs() < 1.0 && (span(&whole) - 1e5).abs() < 1.0, "{}", span(&half));
        assert_eq!(whole.jobs[3].deadline, Some(whole.jobs[3].submit + Span::from_whole_secs(70)));
        assert!(bring_to_load(&mut half, 1e6, 10, 0.0).is_err());
        let mut at_once = generate(&parse("uniform:jobs=5:static", 0).unwrap());
        assert!(
            bring_to_load(&mut at_once, 1e6, 10, 1.0).unwrap_err().to_string().contains("arrive at once")
        );
    }
}
