//! The table of `#SBATCH` flags: each with what it does to what is wanted. A new flag is a line here and its function.

use jiff::Zoned;
use yard_core::cluster::Level;
use yard_core::part::Pause;

use super::super::{amounts, check, times, yaml};
use super::wanted::Wanted;

/// A flag.
pub(super) struct SbatchFlag {
    /// Its long name.
    pub(super) long: &'static str,
    /// Its letter.
    pub(super) short: Option<char>,
    /// Whether a value follows.
    pub(super) takes: Takes,
    /// What it does.
    pub(super) set: Set,
}

/// What a flag does with its value; what is wrong with it otherwise.
type Set = fn(&mut Wanted, &str, &Zoned) -> Result<(), String>;

/// Whether a value follows a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// One must.
    Value,
    /// None may.
    Nothing,
}

use Takes::{Nothing, Value};

const fn flag(long: &'static str, short: Option<char>, takes: Takes, set: Set) -> SbatchFlag {
    SbatchFlag { long, short, takes, set }
}

/// All flags that have an effect, and those that are refused with a word of their own.
pub(super) const FLAGS: &[SbatchFlag] = &[
    flag("nodes", Some('N'), Value, |w, v, _| number(v).map(|n| w.nodes = Some(n))),
    flag("ntasks", Some('n'), Value, |w, v, _| number(v).map(|n| w.tasks = Some(n))),
    flag("ntasks-per-node", None, Value, |w, v, _| number(v).map(|n| w.tasks_per_node = Some(n))),
    flag("segment", None, Value, |w, v, _| number(v).map(|n| w.request.segment = Some(n))),
    flag("switches", None, Value, switches),
    flag("cpus-per-task", Some('c'), Value, |w, v, _| number(v).map(|n| w.cpus_per_task = Some(n))),
    flag("mem", None, Value, |w, v, _| memory(v).map(|mib| w.request.memory_mib = mib)),
    flag("gres", None, Value, gres),
    flag("gpus", Some('G'), Value, |w, v, _| typed(w, v).map(|n| w.gpus = Some(n))),
    flag("gpus-per-node", None, Value, |w, v, _| typed(w, v).map(|n| w.gpus_per_node = Some(n))),
    flag("time", Some('t'), Value, |w, v, _| times::slurm_length(v).map(|s| w.request.time_limit_s = s)),
    flag("deadline", None, Value, |w, v, now| times::moment(v, now).map(|at| w.request.deadline = Some(at))),
    flag("begin", Some('b'), Value, |w, v, now| times::moment(v, now).map(|at| w.request.begin = Some(at))),
    flag("array", Some('a'), Value, |w, v, _| array(v).map(|tasks| w.array = Some(tasks))),
    flag("signal", None, Value, signal),
    flag("requeue", None, Nothing, |w, _, _| {
        (w.request.pause, w.request.max_restarts) = (Pause::Auto, None);
        Ok(())
    }),
    flag("no-requeue", None, Nothing, |w, _, _| {
        (w.request.pause, w.request.max_restarts) = (Pause::Never, Some(0));
        Ok(())
    }),
    flag("partition", Some('p'), Value, |w, v, _| w.only_kinds(yaml::split_kinds(v))),
    flag("constraint", Some('C'), Value, constraint),
    flag("account", Some('A'), Value, |w, v, _| {
        w.request.tenant = Some(v.into());
        Ok(())
    }),
    flag("qos", Some('q'), Value, |w, v, _| priority(v).map(|priority| w.request.priority = priority)),
    flag("job-name", Some('J'), Value, |w, v, _| {
        w.request.name = Some(v.into());
        Ok(())
    }),
    flag("chdir", Some('D'), Value, |w, v, _| {
        w.request.workdir = Some(v.into());
        Ok(())
    }),
    flag("output", Some('o'), Value, |w, v, _| pattern(v).map(|pattern| w.request.output = Some(pattern))),
    flag("error", Some('e'), Value, |w, v, _| pattern(v).map(|pattern| w.request.error = Some(pattern))),
    flag("exclusive", None, Nothing, |w, _, _| {
        w.request.exclusive = true;
        Ok(())
    }),
    flag("dependency", Some('d'), Value, dependency),
];

fn number(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if (1..=check::GPUS_MAX).contains(&number) => Ok(number),
        _ => Err(format!("{text:?} is not a whole number from 1 to {}", check::GPUS_MAX)),
    }
}

/// `1`: all of it under one switch, which is one rack. As long as Slurm waits for that, jobs here do not.
fn switches(wanted: &mut Wanted, text: &str, _: &Zoned) -> Result<(), String> {
    match text.split_once('@').map_or((text, false), |(count, _)| (count, true)) {
        ("1", false) => wanted.request.close = Some(Level::Rack),
        ("1", true) => wanted.request.prefer = Some(Level::Rack),
        _ => return Err(format!("{text:?} is not 1 (one rack) or 1@TIME (one rack if there is one free)")),
    }
    Ok(())
}

/// MiB, or with a unit: `512`, `16G`, `500M`, `1T`; 0 is all there is.
fn memory(text: &str) -> Result<Option<u64>, String> {
    amounts::memory(text).map(|mib| (mib > 0).then_some(mib))
}

/// `gpu`, `gpu:4` or `gpu:a100:4`: each node has as many. `mps:50` or `mps:a100:50`: so many percent of one card.
fn gres(wanted: &mut Wanted, text: &str, _: &Zoned) -> Result<(), String> {
    let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
    match (name, rest) {
        ("gpu", rest) => {
            let count = rest.map_or(Ok(1), |rest| typed(wanted, rest))?;
            wanted.gpus_per_node = Some(count);
            Ok(())
        }
        ("mps", Some(rest)) => percent(wanted, rest),
        ("mps", None) => Err("mps needs a number: mps:50 for 50 percent of one GPU".into()),
        ("shard", _) => {
            Err("the size of a shard differs between sites; use mps:50 for 50 percent of one GPU".into())
        }
        _ => Err(format!(
            "{text:?} is not gpu, gpu:4, gpu:a100:4 or mps:50 (percent of one GPU); other resources are not supported"
        )),
    }
}

/// Slurm counts a card as 100 of `mps` where its site says nothing else.
fn percent(wanted: &mut Wanted, text: &str) -> Result<(), String> {
    match typed(wanted, text)? {
        percent @ 1..=100 => {
            (wanted.gpus_per_node, wanted.request.gpu_fraction) = (Some(1), Some(f64::from(percent) / 100.0));
            Ok(())
        }
        percent => Err(format!(
            "{percent} percent is more than one GPU; use gpu:{} for whole GPUs",
            percent.div_ceil(100)
        )),
    }
}

/// `4`, `a100` or `a100:4`: how many, and of which kind.
fn typed(wanted: &mut Wanted, text: &str) -> Result<u32, String> {
    let (kind, count) = match text.rsplit_once(':') {
        Some((kind, count)) => (Some(kind), count),
        None if text.starts_with(|c: char| c.is_ascii_digit()) => (None, text),
        None => (Some(text), "1"),
    };
    kind.map_or(Ok(()), |kind| wanted.only_kinds(vec![kind.to_owned()]))?;
    number(count)
}

/// `a100`, `a100|h100`: any of these kinds.
fn constraint(wanted: &mut Wanted, text: &str, _: &Zoned) -> Result<(), String> {
    let bare = text.trim_start_matches(['[', '(']).trim_end_matches([']', ')']);
    if bare.contains(['&', '*', '!', '[', ']', '(', ')']) {
        return Err(format!("{text:?} is more than kinds with | between them, such as a100|h100"));
    }
    wanted.only_kinds(yaml::split_kinds(bare))
}

/// `afterok:12`, `afterok:12:13`, `afterok:12,afterok:13`: all of these jobs must have succeeded.
fn dependency(wanted: &mut Wanted, text: &str, _: &Zoned) -> Result<(), String> {
    let mut after = Vec::new();
    for part in text.split(',') {
        let Some(jobs) = part.strip_prefix("afterok:") else {
            return Err(format!(
                "{part:?} is not afterok:JOB[:JOB…]; only afterok is supported, and all the jobs must succeed"
            ));
        };
        for job in jobs.split(':') {
            after.push(job.parse().map_err(|_| format!("{job:?} is not a job number"))?);
        }
    }
    wanted.request.after = after;
    Ok(())
}

/// `1-10`, `0,3,7`, `1-9:2`.
fn array(text: &str) -> Result<Vec<u32>, String> {
    const TASKS_MAX: usize = 10_000;
    if text.contains('%') {
        return Err("a limit on how many run at once (%) is not supported yet; leave it out".into());
    }
    let mut tasks = std::collections::BTreeSet::new();
    for part in text.split(',') {
        let range = task_range(part)
            .ok_or_else(|| format!("{part:?} is not a number or a range such as 1-10 or 1-9:2"))?;
        tasks.extend(range.take(TASKS_MAX + 1));
        if tasks.len() > TASKS_MAX {
            return Err(format!("more than {TASKS_MAX} jobs at once"));
        }
    }
    Ok(tasks.into_iter().collect())
}

fn task_range(part: &str) -> Option<std::iter::StepBy<std::ops::RangeInclusive<u32>>> {
    let (range, step) = part.split_once(':').unwrap_or((part, "1"));
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
    let step = step.parse::<usize>().ok().filter(|&step| step > 0)?;
    (first <= last && last <= 4_000_000).then(|| (first..=last).step_by(step))
}

/// `USR1@120` or `B:USR1@120`: the signal, and how many seconds before the end.
fn signal(wanted: &mut Wanted, text: &str, _: &Zoned) -> Result<(), String> {
    if text.starts_with("R:") {
        return Err("R: is for reservations, which are not supported".into());
    }
    let text = text.strip_prefix("B:").unwrap_or(text);
    let (name, seconds) = text.split_once('@').map_or((text, None), |(name, seconds)| (name, Some(seconds)));
    let name = name.strip_prefix("SIG").unwrap_or(name);
    let named = match name {
        "1" => "HUP",
        "2" => "INT",
        "10" => "USR1",
        "12" => "USR2",
        "15" => "TERM",
        other => other,
    };
    if !check::SIGNALS.contains(&named) {
        return Err(format!(
            "{name:?} is not a signal that can stop a job; use {}",
            check::SIGNALS.join(", ")
        ));
    }
    wanted.request.checkpoint.signal = Some(named.into());
    // Slurm's own default: a minute before the end.
    wanted.request.checkpoint.grace_s = Some(f64::from(seconds.map_or(Ok(60), number)?));
    Ok(())
}

fn priority(text: &str) -> Result<i32, String> {
    match text {
        "low" => Ok(-10),
        "normal" => Ok(0),
        "high" => Ok(10),
        _ => Err(format!("{text:?} is not low, normal or high")),
    }
}

/// Slurm's letters, as far as they mean something here. The number of an array's job is filled in later.
fn pattern(text: &str) -> Result<String, String> {
    let ours = text.replace("%A", "%j");
    match check::unknown_pattern(&ours.replace("%a", "")) {
        Some(letter) => Err(format!("%{letter} is not supported; %j %A %a %x %t %n %% are")),
        None => Ok(ours),
    }
}
