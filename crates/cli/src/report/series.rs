//! Queue and use over time, averaged into as many buckets as a screen has room for.

use super::ReportSample;
use super::number::Num;
use serde::Serialize;

/// Buckets of a series: about one per pixel of a wide screen.
const BUCKETS: usize = 1200;

/// A measure over time: the time-weighted mean and the maximum of each bucket.
#[derive(Debug, Serialize)]
pub(super) struct Track {
    pub(super) mean: Vec<Num>,
    pub(super) max: Vec<Num>,
}

/// A step function in equal buckets from `t0` on.
#[derive(Debug, Serialize)]
pub(super) struct ReportSeries {
    /// Not a `Num`: a late start rounded to five digits would shift the whole line.
    pub(super) t0: f64,
    pub(super) width: f64,
    pub(super) used: Track,
    pub(super) queued_jobs: Track,
    pub(super) queued_gpus: Track,
    pub(super) running: Track,
}

impl ReportSeries {
    /// Buckets the samples up to `end`, until which the last sample holds. None when no time passes.
    pub(super) fn new(samples: &[ReportSample], end: f64) -> Option<Self> {
        let t0 = samples.first()?.t;
        let end = samples.last()?.t.max(end);
        let width = (end - t0) / BUCKETS as f64;
        if !(width.is_finite() && width > 0.0) {
            return None;
        }
        let grid = TimeGrid { t0, end, width };
        Some(Self {
            t0,
            width,
            used: grid.track(samples, |s| s.used_gpus as f64),
            queued_jobs: grid.track(samples, |s| f64::from(s.queued_jobs)),
            queued_gpus: grid.track(samples, |s| s.queued_gpus as f64),
            running: grid.track(samples, |s| f64::from(s.running_jobs)),
        })
    }
}

/// Equal buckets over `t0..end`.
struct TimeGrid {
    t0: f64,
    end: f64,
    width: f64,
}

impl TimeGrid {
    fn track(&self, samples: &[ReportSample], value: impl Fn(&ReportSample) -> f64) -> Track {
        let (mut area, mut max) = (vec![0.0; BUCKETS], vec![0.0; BUCKETS]);
        for (i, sample) in samples.iter().enumerate() {
            let until = samples.get(i + 1).map_or(self.end, |next| next.t);
            let height = value(sample);
            self.spread(sample.t, until, |bucket, seconds| {
                area[bucket] += height * seconds;
                max[bucket] = height.max(max[bucket]);
            });
        }
        let mean = area.into_iter().map(|a| Num(a / self.width)).collect();
        Track { mean, max: max.into_iter().map(Num).collect() }
    }

    /// Calls `each` with every bucket that `from..until` meets and the seconds it spends there.
    /// A step of no length meets none: nobody could have seen it.
    fn spread(&self, mut from: f64, until: f64, mut each: impl FnMut(usize, f64)) {
        let first = ((from - self.t0) / self.width) as usize;
        for bucket in first.min(BUCKETS - 1)..BUCKETS {
            let edge =
                if bucket + 1 == BUCKETS { self.end } else { self.t0 + self.width * (bucket + 1) as f64 };
            let stop = until.min(edge);
            if stop > from {
                each(bucket, stop - from);
                from = stop;
            }
            if from >= until {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(t: f64, used_gpus: u64) -> ReportSample {
        ReportSample { t, used_gpus, queued_jobs: used_gpus as u32 / 2, ..ReportSample::default() }
    }

    /// Uneven steps, several at one instant, over about `n` seconds.
    fn uneven(n: u64) -> Vec<ReportSample> {
        (0..n).map(|i| sample(17.0 + (i * i % 97) as f64 / 97.0 + (i / 3 * 3) as f64, i * 31 % 64)).collect()
    }

    fn ordered(mut samples: Vec<ReportSample>) -> Vec<ReportSample> {
        samples.sort_by(|a, b| a.t.total_cmp(&b.t));
        samples
    }

    #[test]
    fn buckets_conserve_the_integral() {
        for n in [2, 40, 5000] {
            let samples = ordered(uneven(n));
            let end = samples.last().unwrap().t + 10.0;
            let mut exact = 0.0;
            for (i, s) in samples.iter().enumerate() {
                exact += s.used_gpus as f64 * (samples.get(i + 1).map_or(end, |next| next.t) - s.t);
            }
            let series = ReportSeries::new(&samples, end).unwrap();
            let area: f64 = series.used.mean.iter().map(|mean| mean.0 * series.width).sum();
            assert!((area - exact).abs() <= 1e-9 * exact.max(1.0), "{area} is not {exact}");
            assert!(series.used.mean.iter().zip(&series.used.max).all(|(m, top)| m.0 <= top.0 + 1e-9));
        }
    }

    #[test]
    fn a_constant_stays_constant_and_an_instant_is_not_seen() {
        let samples = [sample(0.0, 8), sample(5.0, 64), sample(5.0, 8), sample(10.0, 0)];
        let series = ReportSeries::new(&samples, 0.0).unwrap();
        assert_eq!(series.used.max.len(), BUCKETS);
        assert!(series.used.max.iter().all(|max| max.0 == 8.0));
        assert!(series.used.mean.iter().all(|mean| (mean.0 - 8.0).abs() < 1e-6));
    }

    #[test]
    fn no_time_is_no_series() {
        assert!(ReportSeries::new(&[], 5.0).is_none());
        assert!(ReportSeries::new(&[sample(3.0, 1)], 3.0).is_none());
        assert!(ReportSeries::new(&[sample(3.0, 1)], 4.0).is_some());
    }
}
