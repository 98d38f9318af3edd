//! What the jobs of a scenario say of sharing their devices, and the memory of those: in every second scenario.

use std::sync::Arc;

use yard_core::Time;
use yard_core::job::{Claim, JobSpec, Sharing, Usage};

use crate::cluster::ClusterSpec;
use crate::random::Random;

/// Memory of devices, where it is known; jobs ask for up to a fifth more.
const MEMORY_MIB: u32 = 100;

/// Lets jobs say something. A stream of its own: what else a seed makes stays as it is.
pub(super) fn add(seed: u64, cluster: &mut ClusterSpec, jobs: &mut [(Time, JobSpec)]) {
    let mut random = Random::new(seed ^ 0x5ea7);
    if random.chance(0.5) {
        return;
    }
    if random.chance(0.7) {
        let pools = cluster.nodes.iter_mut().flat_map(|node| &mut node.pools);
        pools.for_each(|pool| pool.memory_mib = Some(MEMORY_MIB));
    }
    // A few sorts of jobs, as in real traces; the rest says nothing.
    let sorts: Vec<_> = (0..1 + random.below(6)).map(|_| Arc::new(sharing(&mut random))).collect();
    for (_, spec) in jobs {
        spec.sharing = random.chance(0.8).then(|| random.pick(&sorts).clone());
        let tenant = *random.pick(&["a", "b"]);
        spec.tenant = random.chance(0.7).then(|| tenant.into());
    }
}

fn sharing(random: &mut Random) -> Sharing {
    let tenths = |random: &mut Random| (1 + random.below(10)) as f64 / 10.0;
    let memory = |random: &mut Random| 1 + random.below(u64::from(MEMORY_MIB * 6 / 5)) as u32;
    let request = tenths(random);
    let busy = |random: &mut Random| Usage { busy: tenths(random), memory_mib: memory(random) };
    Sharing {
        claim: *random.pick(&[Claim::Ordinary, Claim::Guaranteed, Claim::Opportunistic]),
        loss_max: 0.05,
        request,
        limit: tenths(random).max(request),
        memory_mib: random.chance(0.5).then(|| memory(random)),
        usage: random.chance(0.7).then(|| busy(random)),
        alone: random.chance(0.1),
        affinity: word(random),
        anti_affinity: word(random),
        exclusion: word(random),
    }
}

fn word(random: &mut Random) -> Option<Arc<str>> {
    let word = *random.pick(&["x", "y"]);
    random.chance(0.15).then(|| word.into())
}
