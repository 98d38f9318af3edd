//! Distributions of job times: empirical CDFs, and boxes by job size.

use super::ReportRow;
use super::number::Num;
use serde::Serialize;

/// Points of a CDF over the body of the distribution.
const CDF_BODY: usize = 240;
/// Further points in its last percent, where one slow job in a thousand is the story.
const CDF_TAIL: usize = 60;
/// Lower bounds of the size classes; the last one is open. Zero is for jobs that need no device.
pub(super) const CLASSES: [u32; 8] = [0, 1, 2, 4, 8, 16, 32, 64];

/// Points of an empirical CDF: a fraction `p` of the values is at most `x`.
#[derive(Debug, Default, Serialize)]
pub(super) struct Cdf {
    pub(super) x: Vec<Num>,
    pub(super) p: Vec<Num>,
}

impl Cdf {
    /// A subset of the exact steps: every point lies on the empirical CDF.
    pub(super) fn new(values: impl Iterator<Item = f64>) -> Self {
        let sorted = sorted(values);
        let mut cdf = Self::default();
        for rank in cdf_ranks(sorted.len()) {
            let (x, p) = (sorted[rank], (rank + 1) as f64 / sorted.len() as f64);
            cdf.push(x, p);
        }
        cdf
    }

    /// Of equal values only the highest step counts.
    fn push(&mut self, x: f64, p: f64) {
        if self.x.last() == Some(&Num(x)) {
            self.p.pop();
        } else {
            self.x.push(Num(x));
        }
        self.p.push(Num(p));
    }
}

/// The ranks to show of `n` sorted values: all when few, else an even body and a denser tail.
fn cdf_ranks(n: usize) -> Vec<usize> {
    if n <= CDF_BODY + CDF_TAIL {
        return (0..n).collect();
    }
    let tail_start = (n - 1) * 99 / 100;
    let body = (0..CDF_BODY).map(|i| i * tail_start / CDF_BODY);
    let tail = (0..CDF_TAIL).map(|i| tail_start + i * (n - 1 - tail_start) / (CDF_TAIL - 1));
    let mut ranks: Vec<usize> = body.chain(tail).collect();
    ranks.dedup();
    ranks
}

/// What a box plot shows of one size class.
#[derive(Debug, Serialize)]
pub(super) struct SizeBox {
    pub(super) count: usize,
    pub(super) mean: Num,
    pub(super) p10: Num,
    pub(super) p25: Num,
    pub(super) p50: Num,
    pub(super) p75: Num,
    pub(super) p90: Num,
}

impl SizeBox {
    /// None when there is nothing to show.
    fn new(values: Vec<f64>) -> Option<Self> {
        let sorted = sorted(values.into_iter());
        if sorted.is_empty() {
            return None;
        }
        let at = |p| Num(quantile(&sorted, p));
        Some(Self {
            count: sorted.len(),
            mean: Num(sorted.iter().sum::<f64>() / sorted.len() as f64),
            p10: at(0.10),
            p25: at(0.25),
            p50: at(0.50),
            p75: at(0.75),
            p90: at(0.90),
        })
    }
}

/// Waiting time by size class, in the order of `CLASSES`.
pub(super) fn wait_boxes(jobs: &[ReportRow]) -> Vec<Option<SizeBox>> {
    let mut waits: [Vec<f64>; CLASSES.len()] = Default::default();
    for job in jobs {
        waits[class_of(job.gpus)].push(job.wait_s);
    }
    waits.into_iter().map(SizeBox::new).collect()
}

/// The class that a job of this size belongs to.
pub(super) fn class_of(gpus: u32) -> usize {
    CLASSES.partition_point(|&low| low <= gpus) - 1
}

/// Names of the classes, narrowed to the sizes that occur: `4` when no job asks for 5, 6 or 7.
pub(super) fn class_labels<'a>(jobs: impl Iterator<Item = &'a ReportRow>) -> Vec<String> {
    let mut seen: [Option<(u32, u32)>; CLASSES.len()] = Default::default();
    for job in jobs {
        let range = seen[class_of(job.gpus)].get_or_insert((job.gpus, job.gpus));
        *range = (range.0.min(job.gpus), range.1.max(job.gpus));
    }
    seen.iter().zip(CLASSES).map(|(range, low)| class_label(*range, low)).collect()
}

fn class_label(range: Option<(u32, u32)>, low: u32) -> String {
    match range {
        Some((min, max)) if min < max && low == CLASSES[CLASSES.len() - 1] => format!("{min}+"),
        Some((min, max)) if min < max => format!("{min}–{max}"),
        Some((min, _)) => min.to_string(),
        None => low.to_string(),
    }
}

/// The finite values in ascending order.
fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The quantile with linear interpolation between ranks.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let position = p * (sorted.len() - 1) as f64;
    let (low, high) = (position.floor() as usize, position.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (position - low as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fixed scramble of 0..n, so that order is not given away.
    fn scrambled(n: u64) -> impl Iterator<Item = f64> {
        (0..n).map(move |i| ((i * 7919) % n) as f64)
    }

    fn job(gpus: u32, wait_s: f64) -> ReportRow {
        ReportRow { gpus, wait_s, ..ReportRow::default() }
    }

    /// The smallest value with at least a fraction `p` at or below it, and its successor: any
    /// interpolating quantile lies between them.
    fn bracket(values: &[f64], p: f64) -> (f64, f64) {
        let rank = |x: f64| values.iter().filter(|&&v| v <= x).count() as f64;
        let position = p * (values.len() - 1) as f64;
        let at = |k: f64| values.iter().copied().filter(|&x| rank(x) > k).fold(f64::INFINITY, f64::min);
        (at(position.floor()), at(position.ceil()))
    }

    #[test]
    fn boxes_agree_with_brute_force() {
        let mut jobs: Vec<ReportRow> = scrambled(1009).map(|w| job(1, w * w)).collect();
        jobs.extend(scrambled(12).map(|w| job(5, w)));
        let boxes = wait_boxes(&jobs);
        for (class, gpus) in [(1, 1), (3, 5)] {
            let values: Vec<f64> = jobs.iter().filter(|j| j.gpus == gpus).map(|j| j.wait_s).collect();
            let shown = boxes[class].as_ref().unwrap();
            assert_eq!(shown.count, values.len());
            let sum: f64 = values.iter().sum();
            assert!((shown.mean.0 * values.len() as f64 - sum).abs() < 1e-6 * sum);
            let quantiles = [(0.1, shown.p10), (0.25, shown.p25), (0.5, shown.p50)];
            for (p, got) in quantiles.into_iter().chain([(0.75, shown.p75), (0.9, shown.p90)]) {
                let (low, high) = bracket(&values, p);
                assert!(low <= got.0 && got.0 <= high, "p{p}: {low} <= {} <= {high}", got.0);
            }
        }
        assert!(boxes[2].is_none());
    }

    #[test]
    fn quantile_interpolates() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.5), 2.0);
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert_eq!(quantile(&[5.0], 0.9), 5.0);
    }

    #[test]
    fn cdf_points_lie_on_the_empirical_cdf() {
        for n in [1, 7, 300, 301, 50_000] {
            let cdf = Cdf::new(scrambled(n));
            assert!(cdf.x.len() <= 300 && cdf.x.len() == cdf.p.len());
            assert_eq!((cdf.x[0].0, cdf.p.last().unwrap().0), (0.0, 1.0));
            for (x, p) in cdf.x.iter().zip(&cdf.p) {
                assert!((p.0 * n as f64 - (x.0 + 1.0)).abs() < 1e-6, "values are 0..n");
            }
        }
    }

    #[test]
    fn cdf_joins_equal_values_and_skips_nan() {
        let cdf = Cdf::new([0.0, 0.0, f64::NAN, 0.0, 9.0].into_iter());
        assert_eq!(cdf.x, [Num(0.0), Num(9.0)]);
        assert_eq!(cdf.p, [Num(0.75), Num(1.0)]);
    }

    #[test]
    fn classes_are_named_after_what_occurs() {
        let jobs = [job(1, 0.0), job(4, 0.0), job(6, 0.0), job(64, 0.0), job(100, 0.0)];
        let labels = class_labels(jobs.iter());
        assert_eq!(labels, ["0", "1", "2", "4–6", "8", "16", "32", "64+"]);
        assert_eq!([0, 1, 3, 63, 64, 4096].map(class_of), [0, 1, 2, 6, 7, 7]);
    }
}
