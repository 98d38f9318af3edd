//! Finish-time fairness (Themis, NSDI 2020): ρ = time shared / time on an own 1/n of the cluster. With n
//! jobs present, an own part of C devices lets a job of g devices run at min(1, C / (n g)) of its speed. So
//! the integral of that rate over the job's life, divided by its time alone, is ρ: above 1, it would have
//! been done sooner on its own part. One running integral for each distinct g serves all jobs.

use yard_core::Time;

/// Running integrals of the isolated rate, one for each size of gang.
#[derive(Debug)]
pub(crate) struct Fairness {
    devices: f64,
    present: u64,
    now: Time,
    sums: Vec<(u32, f64)>,
}

impl Fairness {
    pub(crate) fn new(devices: u32) -> Fairness {
        Fairness { devices: devices as f64, present: 0, now: Time::ZERO, sums: Vec::new() }
    }

    /// A job of `gpus` arrives; returns the integral so far.
    pub(crate) fn arrive(&mut self, now: Time, gpus: u32) -> f64 {
        self.advance(now);
        self.present += 1;
        self.sum(gpus)
    }

    /// A job of `gpus` leaves; returns the integral so far.
    pub(crate) fn leave(&mut self, now: Time, gpus: u32) -> f64 {
        self.advance(now);
        self.present -= 1;
        self.sum(gpus)
    }

    fn sum(&mut self, gpus: u32) -> f64 {
        if let Some((_, sum)) = self.sums.iter().find(|(size, _)| *size == gpus) {
            return *sum;
        }
        self.sums.push((gpus, 0.0));
        0.0
    }

    fn advance(&mut self, now: Time) {
        let seconds = (now - std::mem::replace(&mut self.now, now)).secs();
        if seconds > 0.0 && self.present > 0 {
            let part = self.devices / self.present as f64;
            self.sums.iter_mut().for_each(|(gpus, sum)| *sum += seconds * (part / *gpus as f64).min(1.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_alone_on_a_large_cluster_gets_its_whole_time() {
        let mut fairness = Fairness::new(8);
        let before = fairness.arrive(Time::from_secs(10.0), 4);
        assert_eq!(fairness.leave(Time::from_secs(30.0), 4) - before, 20.0);
    }

    #[test]
    fn two_jobs_of_the_whole_cluster_have_half_of_it_each() {
        let mut fairness = Fairness::new(8);
        let first = fairness.arrive(Time::ZERO, 8);
        fairness.arrive(Time::ZERO, 8);
        assert_eq!(fairness.leave(Time::from_secs(10.0), 8) - first, 5.0);
    }
}
