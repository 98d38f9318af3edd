//! Traces made from a seed: the same seed gives the same bytes on every machine.

mod arrivals;
mod draw;
mod gavel;
mod mixed;
mod philly;
mod sharing;
mod uniform;

use super::Trace;
use super::jobs::TraceJobs;
use draw::TraceDraw;

/// When jobs come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// So many an hour on average, at random; the first at 0.
    Rate(f64),
    /// All at 0.
    Static,
}

/// Which distributions jobs are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The generator of Gavel's simulations.
    Gavel,
    /// Heavy-tailed, like Microsoft's clusters, with days, users and teams.
    Philly,
    /// Short and even, for demonstrations.
    Uniform,
    /// Jobs that leave much of their devices unused, of several classes.
    Sharing,
    /// Rigid, strongly scaling and adaptive jobs, some with deadlines.
    Mixed,
}

/// A preset as users see it.
pub struct PresetInfo {
    /// The preset.
    pub preset: Preset,
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
}

/// Every preset.
pub const PRESETS: &[PresetInfo] = &[
    PresetInfo {
        preset: Preset::Gavel,
        name: "gavel",
        about: "Gavel's generator: 26 model templates, gangs of 1, 2, 4, 8, half an hour to a week",
    },
    PresetInfo {
        preset: Preset::Philly,
        name: "philly",
        about: "heavy tails measured on Microsoft's clusters, day and night, 20 users in 5 teams",
    },
    PresetInfo {
        preset: Preset::Uniform,
        name: "uniform",
        about: "1 to 8 gpus and 10 minutes to 4 hours, evenly: for demonstrations",
    },
    PresetInfo {
        preset: Preset::Sharing,
        name: "sharing",
        about: "eight models that leave much of an H200 unused, guaranteed and opportunistic, with parts and memory",
    },
    PresetInfo {
        preset: Preset::Mixed,
        name: "mixed",
        about: "rigid, strong and adaptive jobs of Sia's applications, a third with deadlines; needs its profiles to run",
    },
];

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GenSpec {
    /// How many jobs.
    pub jobs: usize,
    /// When they come.
    pub arrivals: Arrivals,
    /// What they are like.
    pub preset: Preset,
    /// The seed of everything random.
    pub seed: u64,
}

impl Preset {
    /// The preset of this name.
    pub fn named(name: &str) -> Option<Preset> {
        PRESETS.iter().find(|info| info.name == name).map(|info| info.preset)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        let info = PRESETS.iter().find(|info| info.preset == self);
        info.expect("every preset is in the table").name
    }
}

/// The trace of this specification; jobs are named by number, from 0.
///
/// Arrivals and jobs draw from streams of their own, so another rate gives the same jobs.
///
/// # Panics
/// Where the rate is not a number above 0.
pub fn generate(spec: &GenSpec) -> Trace {
    let mut jobs = TraceJobs::default();
    let submits = arrivals::times(spec.jobs, spec.arrivals, swing(spec.preset), TraceDraw::new(spec.seed, 0));
    let draw = TraceDraw::new(spec.seed, 1);
    match spec.preset {
        Preset::Gavel => gavel::add(&mut jobs, submits, draw),
        Preset::Philly => philly::add(&mut jobs, submits, draw),
        Preset::Uniform => uniform::add(&mut jobs, submits, draw),
        Preset::Sharing => sharing::add(&mut jobs, submits, draw),
        Preset::Mixed => mixed::add(&mut jobs, submits, draw),
    }
    let source = format!("generated: {} jobs, preset {}, seed {}", spec.jobs, spec.preset.name(), spec.seed);
    Trace { source, format: "yard", jobs: jobs.list }
}

/// How far the rate of arrivals swings over a day, as a part of its mean.
fn swing(preset: Preset) -> f64 {
    match preset {
        Preset::Philly => 0.5,
        Preset::Gavel | Preset::Uniform | Preset::Sharing | Preset::Mixed => 0.0,
    }
}
