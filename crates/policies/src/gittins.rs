//! The Gittins index of attained service (2D-Gittins of Gu et al., "Tiresias", NSDI 2019; Gittins,
//! J. Royal Statistical Society B, 1979), with the index itself and not its discretisation.
//!
//! Objective: min E Σ_j (end_j − submitted_j) when only the distribution of service S over past jobs is
//! known; optimal for that on one device. Place in the order = −G(A_j) with
//! G(a) = sup_Δ P(S − a ≤ Δ | S > a) / E[min(S − a, Δ) | S > a]; equals go by submission. A job that has
//! outlived all past ones has index zero and comes last.
//! Past services are those of the trace, where its lengths are told, else those of the jobs that have ended so far; as
//! long as none has, the least attained service comes first.
//! Reads: attained service, submission times, past services.
//! Cost: O((changed + running) · log samples) per plan; its order changes as time passes.
//! Not to be used where past jobs say little about new ones.
//!
//! The artifact's index divides by the whole service rather than by what is left of it, and its order is
//! reversed; neither is repeated here.

use yard_core::job::Rank;
use yard_core::policy::{Cadence, Policy, Priorities};
use yard_core::view::View;
use yard_solver::Gittins;

use crate::past::PastServices;
use crate::ranked::{Moving, finite};
use crate::{ParamError, Params, PolicyEntry};

pub(crate) const ENTRY: PolicyEntry = PolicyEntry {
    name: "gittins",
    live: "",
    family: "attained",
    paper: "2D-Gittins, Gu et al., NSDI 2019",
    there: "the index itself, by the distribution of past services",
    missing: "its discretisation into queues, and the placement of the same paper",
    about: "Best chance of ending soon, by the services of past jobs, preemptive",
    params: &[],
    rounds: true,
    priority: Priorities::Classes,
    needs: &[],
    make,
};

fn make(params: &Params) -> Result<Box<dyn Policy>, ParamError> {
    let given = (!params.service.is_empty()).then(|| Gittins::new(&params.service)).transpose();
    let given = given.map_err(|error| ParamError::Service {
        policy: ENTRY.name,
        reason: error.to_string(),
        how: "give a trace or history whose jobs ran to their end, in device-seconds",
    })?;
    let mut past = PastServices::default();
    let rank = move |view: &View, job| {
        let (attained, submitted) = (view.attained(job), view.run(job).submitted.secs());
        match given.as_ref().or_else(|| past.index(view)) {
            Some(index) => Rank(finite(0.0 - index.index(attained)), submitted),
            None => Rank(finite(attained), submitted),
        }
    };
    Ok(Box::new(Moving::new(Cadence::EveryRound, rank)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::testing::World;

    #[test]
    fn without_a_past_the_least_attained_service_comes_first() {
        let (_, mut gittins) = crate::make("gittins", Arc::from([])).unwrap();
        let mut world = World::new(&[1]);
        world.submit_all(&[(1, 600.0)]);
        world.plan(&mut *gittins);
        world.advance(9.0);
        world.submit_all(&[(1, 600.0)]);
        world.plan(&mut *gittins);
        assert_eq!(world.running(), [1]);
    }

    #[test]
    fn the_past_that_is_told_counts_without_a_new_policy() {
        let (_, mut gittins) = crate::make("gittins", Arc::from([])).unwrap();
        let mut world = World::new(&[1]);
        world.submit_all(&[(1, 600.0)]);
        world.plan(&mut *gittins);
        world.advance(9.0);
        let told = r#"{"alike":{},"service":[10.0,10.0,10.0,500.0]}"#;
        world.learn_lengths();
        world.view.lengths = Some(serde_json::from_str(told).unwrap());
        world.submit_all(&[(1, 10.0)]);
        world.plan(&mut *gittins);
        assert_eq!(world.running(), [0], "one more second will probably end it");
    }

    #[test]
    fn near_the_end_of_the_crowd_a_job_is_kept() {
        let (_, mut gittins) = crate::make("gittins", Arc::from([10.0, 10.0, 10.0, 500.0])).unwrap();
        let mut world = World::new(&[1]);
        world.submit_all(&[(1, 600.0)]);
        world.plan(&mut *gittins);
        world.advance(9.0);
        world.submit_all(&[(1, 10.0)]);
        world.plan(&mut *gittins);
        assert_eq!(world.running(), [0], "one more second will probably end it");
        world.advance(2.0);
        world.plan(&mut *gittins);
        assert_eq!(world.running(), [1], "it is one of the long ones after all");
    }
}
