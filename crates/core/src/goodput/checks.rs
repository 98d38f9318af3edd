//! Whether what a job says of its training makes sense.

use super::learned::{holds, limits};
use crate::cluster::Kinds;
use crate::job::Shape;
use crate::training::Training;

/// Whether a job can train as it says, and if not, why.
pub(crate) fn check(training: &Training, shapes: &[Shape], kinds: &Kinds) -> Result<(), String> {
    let name = |kind| kinds.get(kind).unwrap_or("an unknown kind");
    if training.batch == 0 {
        return Err("its batch size is 0 examples, and must be at least 1".into());
    }
    if training.batch > training.batch_max {
        let Training { batch, batch_max, .. } = training;
        return Err(format!("its batch size of {batch} is above the {batch_max} that it allows at most"));
    }
    if let Some(fits) = training.fits.iter().find(|fits| fits.least > fits.most || fits.most == 0) {
        let (kind, least, most) = (name(fits.kind), fits.least, fits.most);
        return Err(format!("on {kind} it wants at least {least} examples on a device and at most {most}"));
    }
    if let Some(point) = training.profiled.iter().find(|point| !point.timing.is_sound()) {
        let kind = name(point.kind);
        return Err(format!(
            "its profile of {kind} needs nodes, devices and examples, at least 1 of each, and finite times above 0"
        ));
    }
    if training.noise.is_some_and(|noise| !noise.is_sound()) {
        return Err("its gradient noise must be two finite numbers, none below 0 and not both 0".into());
    }
    if shapes.iter().any(|shape| holds(training, shape)) {
        return Ok(());
    }
    Err(held_by_none(training, shapes))
}

/// No shape holds the batch: which would be held that is nearest.
fn held_by_none(training: &Training, shapes: &[Shape]) -> String {
    let batch = training.batch;
    let ends = |shape: &Shape| {
        let limits = limits(training, &shape.needs);
        let local = limits.map_or([0, 0], |limits| [limits.local.0, limits.local.1]);
        local.map(|local| local.saturating_mul(shape.devices()))
    };
    let would_do = |batch: &u32| {
        let training =
            Training { batch: *batch, batch_max: training.batch_max.max(*batch), ..training.clone() };
        *batch > 0 && shapes.iter().any(|shape| holds(&training, shape))
    };
    let nearest = shapes.iter().flat_map(ends).filter(would_do).min_by_key(|end| end.abs_diff(batch));
    let cause = format!("a batch size of {batch} is more or less than the memory of its devices holds");
    match nearest {
        Some(nearest) => format!("{cause}; the nearest that works is {nearest}"),
        None => format!("{cause}, and no other would do in its shapes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::KindId;
    use crate::training::{Fits, Noise, Profiled, Timing};

    fn refused(change: impl FnOnce(&mut Training), devices: &[u32]) -> String {
        let mut kinds = Kinds::default();
        let kind = kinds.intern("gpu");
        let mut training = Training {
            batch: 64,
            batch_max: 256,
            adapts: true,
            accumulates: false,
            fits: vec![Fits { kind, least: 16, most: 64 }],
            profiled: Vec::new(),
            noise: None,
        };
        let shapes: Vec<Shape> = devices.iter().map(|devices| Shape::of(kind, *devices)).collect();
        assert_eq!(check(&training, &shapes, &kinds), Ok(()));
        change(&mut training);
        check(&training, &shapes, &kinds).expect_err("it makes no sense")
    }

    #[test]
    fn a_batch_that_memory_cannot_hold_is_refused_with_the_nearest_that_works() {
        let nearest = |change: fn(&mut Training), devices: &[u32]| {
            let reason = refused(change, devices);
            reason
                .rsplit(' ')
                .next()
                .and_then(|word| word.parse::<u32>().ok())
                .unwrap_or_else(|| panic!("{reason}"))
        };
        assert_eq!(nearest(|training| training.batch = 200, &[1, 2]), 128);
        let fixed = |training: &mut Training| (training.adapts, training.batch) = (false, 60);
        assert_eq!(nearest(fixed, &[4]), 64, "fifteen on each are too few");
    }

    #[test]
    fn nonsense_is_refused() {
        let first = |change: fn(&mut Training)| refused(change, &[1, 2]);
        assert!(first(|training| training.batch = 0).contains("0 examples"));
        assert!(first(|training| training.batch = 257).contains("above the 256"));
        assert!(first(|training| training.fits[0].least = 65).contains("gpu"));
        assert!(first(|training| training.noise = Some(Noise { sqr: f64::NAN, var: 1.0 })).contains("noise"));
        let timing = Timing { nodes: 1, devices: 1, local: 8, grad_s: f64::INFINITY, step_s: 1.0 };
        let bad = |training: &mut Training| training.profiled = vec![Profiled { kind: KindId(0), timing }];
        assert!(refused(bad, &[1]).contains("profile of gpu"));
    }
}
