//! Many seeds, as many at a time as there are cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use yard_sim::fuzz::FuzzTally;

use super::FuzzArgs;
use super::case::FuzzFailure;
use crate::clock::CommandStopwatch;
use crate::output;

/// How often the pace is said where nobody watches, and shown where somebody does.
const SAY_EVERY_S: f64 = 60.0;
const SHOW_EVERY: Duration = Duration::from_millis(100);

/// What became of a range of seeds.
#[derive(Default)]
pub(super) struct SeedSweep {
    tried: u64,
    threads: usize,
    seconds: f64,
    sum: FuzzTally,
    /// By seed.
    pub(super) failures: Vec<FuzzFailure>,
}

impl SeedSweep {
    /// What was tried.
    pub(super) fn sums(&self, first: u64) -> String {
        let FuzzTally { steps, done, other, preemptions, .. } = self.sum;
        format!(
            "{} seeds from {first}: {steps} engine steps, {done} jobs done, {other} ended otherwise, {preemptions} preemptions",
            self.tried
        )
    }

    /// How fast that was.
    pub(super) fn pace(&self) -> String {
        let SeedSweep { tried, threads, seconds, .. } = self;
        format!(
            "{tried} seeds in {seconds:.1} s, {threads} at a time: {:.0} a second",
            *tried as f64 / seconds
        )
    }

    fn add(&mut self, outcome: Result<FuzzTally, FuzzFailure>) {
        self.tried += 1;
        match outcome {
            Ok(tally) => {
                self.sum.steps += tally.steps;
                self.sum.done += tally.done;
                self.sum.other += tally.other;
                self.sum.preemptions += tally.preemptions;
            }
            Err(failure) => {
                output::note(&failure.to_string());
                self.failures.push(failure);
            }
        }
    }
}

/// Tries all seeds; what fails stops nobody.
pub(super) fn sweep(args: &FuzzArgs) -> SeedSweep {
    let watch = CommandStopwatch::start();
    let (next, swept) = (AtomicU64::new(0), Mutex::new(SeedSweep::default()));
    let in_time = || args.seconds.is_none_or(|most| watch.seconds() < most);
    let work = || {
        while in_time() {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(seed) = args.seed.checked_add(at).filter(|_| at < args.count()) else { return };
            let outcome = args.case(seed).check();
            swept.lock().expect("nobody panics with it").add(outcome);
        }
    };
    let threads = args.jobs.map_or_else(cores, usize::from);
    let running = AtomicUsize::new(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                work();
                running.fetch_sub(1, Ordering::Relaxed);
            });
        }
        let tried = || swept.lock().expect("nobody panics with it").tried;
        watch_over(args, &watch, tried, || running.load(Ordering::Relaxed) == 0);
    });
    let mut swept = swept.into_inner().expect("nobody panics with it");
    swept.failures.sort_by_key(|failure| failure.seed);
    SeedSweep { threads, seconds: watch.seconds(), ..swept }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Shows a bar where somebody watches, and says now and then how far it is where nobody does.
fn watch_over(args: &FuzzArgs, watch: &CommandStopwatch, tried: impl Fn() -> u64, over: impl Fn() -> bool) {
    let bar = output::is_watched().then(|| bar(args.count));
    let mut said = 0.0;
    while !over() {
        let (now, seconds) = (tried(), watch.seconds());
        bar.iter().for_each(|bar| bar.set_position(now));
        if bar.is_none() && seconds - said >= SAY_EVERY_S {
            said = seconds;
            output::note(&format!(
                "{now} seeds tried in {seconds:.0} s: {:.0} a second",
                now as f64 / seconds
            ));
        }
        std::thread::sleep(SHOW_EVERY);
    }
    bar.iter().for_each(indicatif::ProgressBar::finish_and_clear);
}

fn bar(count: Option<u64>) -> indicatif::ProgressBar {
    let style = "{bar:40} {human_pos} of {human_len} seeds  {per_sec}  {eta} to go";
    let style = indicatif::ProgressStyle::with_template(style).expect("the template is well formed");
    count.map_or_else(indicatif::ProgressBar::new_spinner, |count| {
        indicatif::ProgressBar::new(count).with_style(style)
    })
}
