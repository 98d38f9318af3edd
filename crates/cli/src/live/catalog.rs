//! What a throughput table says of jobs, for the live scheduler: the same tables as in `yard sim`.

use std::path::Path;

use yard_core::belief::Belief;
use yard_core::cluster::Kinds;
use yard_core::ids::ProfileId;
use yard_live::translate::Catalog;
use yard_sim::throughput::{Profile, Throughputs};

/// A table. Profiles are numbered in the table's own order, so that a restart gives the same numbers.
pub(super) struct CatalogTable {
    table: Throughputs,
    profiles: Vec<Profile>,
}

impl CatalogTable {
    pub(super) fn open(path: &Path) -> anyhow::Result<CatalogTable> {
        let table = Throughputs::open(path)?;
        let profiles = table.profiles().into_iter().collect();
        Ok(CatalogTable { table, profiles })
    }
}

impl Catalog for CatalogTable {
    fn speed(&self, model: &str, batch_size: Option<u32>, gpus: u32, kind: &str) -> Option<f64> {
        self.table.speed(kind, model, batch_size, gpus)
    }

    fn profile(&self, model: &str, batch_size: Option<u32>, gpus: u32) -> ProfileId {
        let same = |profile: &Profile| {
            *profile.model == *model && profile.batch_size == batch_size && profile.gpus == gpus
        };
        // 0 is for jobs of which nothing is known.
        let at = self.profiles.iter().position(same);
        at.map_or_else(ProfileId::default, |at| ProfileId(at as u32 + 1))
    }

    fn belief(&self, kinds: &Kinds) -> Option<Belief> {
        let mut belief = Belief::default();
        for kind in kinds.ids() {
            for (a, profile) in (1..).map(ProfileId).zip(&self.profiles) {
                for (b, other) in (1..).map(ProfileId).zip(&self.profiles) {
                    let kept = self.table.kept(kinds.name(kind), profile, other);
                    kept.iter().for_each(|kept| belief.set_beside(a, b, kind, *kept));
                }
            }
        }
        Some(belief)
    }
}
