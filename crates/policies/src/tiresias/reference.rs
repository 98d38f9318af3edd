//! The same policy as its paper and simulator tell it, with queues that are lists, moved about by hand;
//! demotions at the exact moment. The ranks must give every job the same end.

use proptest::prelude::*;

use crate::testing::{World, run};

#[derive(Clone, Copy, Debug)]
struct ReferenceJob {
    number: usize,
    devices: u64,
    submitted: u64,
    left: u64,
    attained: u64,
    runs: bool,
}

struct ReferenceQueues {
    now: u64,
    devices: u64,
    thresholds: Vec<u64>,
    to_come: Vec<ReferenceJob>,
    queues: Vec<Vec<ReferenceJob>>,
    ends: Vec<f64>,
}

impl ReferenceQueues {
    fn run(mut self) -> Vec<f64> {
        while let Some(next) = self.next() {
            self.pass_time(next);
            self.demote();
            self.arrive();
            self.choose();
        }
        self.ends
    }

    /// The next arrival, end or demotion.
    fn next(&self) -> Option<u64> {
        let arrivals = self.to_come.iter().map(|job| job.submitted);
        let running = self
            .queues
            .iter()
            .enumerate()
            .flat_map(|(queue, jobs)| jobs.iter().filter(|job| job.runs).map(move |job| (queue, job)));
        let events = running.flat_map(|(queue, job)| {
            let missing = self.thresholds.get(queue).map(|threshold| threshold - job.attained);
            [Some(job.left), missing.map(|missing| missing.div_ceil(job.devices))]
        });
        arrivals.chain(events.flatten().map(|span| self.now + span)).min()
    }

    fn pass_time(&mut self, next: u64) {
        let span = next - self.now;
        self.now = next;
        for job in self.queues.iter_mut().flatten().filter(|job| job.runs) {
            (job.left, job.attained) = (job.left - span, job.attained + span * job.devices);
            if job.left == 0 {
                self.ends[job.number] = next as f64 / 1e6;
            }
        }
        self.queues.iter_mut().for_each(|jobs| jobs.retain(|job| job.left > 0));
    }

    fn demote(&mut self) {
        for (queue, threshold) in self.thresholds.iter().enumerate().rev() {
            let sinks = |job: &ReferenceJob| job.runs && job.attained >= *threshold;
            let (down, stay) = self.queues[queue].iter().partition(|job| sinks(job));
            self.queues[queue] = stay;
            self.queues[queue + 1].extend::<Vec<ReferenceJob>>(down);
        }
    }

    fn arrive(&mut self) {
        let (here, later) = self.to_come.iter().partition(|job| job.submitted <= self.now);
        self.to_come = later;
        self.queues[0].extend::<Vec<ReferenceJob>>(here);
    }

    /// Everybody who fits runs, in order; then those who run stand before those who wait.
    fn choose(&mut self) {
        let mut free = self.devices;
        for job in self.queues.iter_mut().flatten() {
            job.runs = job.devices <= free;
            free -= if job.runs { job.devices } else { 0 };
        }
        self.queues.iter_mut().for_each(|jobs| jobs.sort_by_key(|job| !job.runs));
    }
}

/// Thresholds divide by these without rest, so that what coincides in one coincides in the other too:
/// the policy looks again a microsecond after each change, which can part what roundings bring together.
fn devices() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1u64), Just(2), Just(4), Just(5)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn ranks_do_what_lists_do(jobs in prop::collection::vec((0u64..40, devices(), 1u64..60), 1..25)) {
        let mut world = World::new(&[4, 2]);
        let mut jobs = jobs;
        jobs.sort_by_key(|job| job.0);
        let mut lists = ReferenceQueues {
            now: 0,
            devices: 6,
            thresholds: vec![20_000_000, 70_000_000],
            to_come: Vec::new(),
            queues: vec![Vec::new(); 3],
            ends: vec![0.0; jobs.len()],
        };
        for (number, (at, devices, seconds)) in jobs.iter().enumerate() {
            world.submit_at(*at as f64, *devices as u32, *seconds as f64);
            let (submitted, left) = (at * 1_000_000, seconds * 1_000_000);
            lists.to_come.push(ReferenceJob { number, devices: *devices, submitted, left, attained: 0, runs: false });
        }
        let (ours, theirs) = (run("tiresias:thresholds=20/70", &mut world), lists.run());
        let close = ours.iter().zip(&theirs).all(|(ours, theirs)| (ours - theirs).abs() < 1e-4);
        prop_assert!(close, "{:?} but {:?}", ours, theirs);
    }
}
