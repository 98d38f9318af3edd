//! What jobs can be served with, kind by kind, as far as it is known: memory of cards, freezing, limits. Whoever asks
//! for what no node has is told so at once; whoever asks for what only some kinds have is offered those.

use std::collections::BTreeMap;
use std::sync::Arc;

use yard_core::cluster::{HostNeed, Kinds, ResourceId, Resources};
use yard_core::ids::KindId;
use yard_core::part::Pause;

use crate::exec::{BackendAbilities, GroupOnWire, HostAbilities};
use crate::handle::Refusal;
use crate::request::JobRequest;

/// What can be had of one kind; the best that any node has.
#[derive(Clone, Debug)]
struct Offer {
    /// Memory of the largest card; `u64::MAX` where one does not say.
    memory_mib: u64,
    /// Whether jobs can be frozen, else why not.
    freeze: Result<(), String>,
    /// Whether what a job takes of a card can be limited, else why not.
    limits: Result<(), String>,
}

/// What can be had. Nothing is refused for a kind of which nothing is known.
#[derive(Clone, Debug, Default)]
pub struct Offers {
    kinds: BTreeMap<String, Offer>,
    /// What is counted of hosts.
    resources: Resources,
    /// What whoever runs jobs can do, where that is known.
    backend: Option<BackendOffer>,
}

/// What whoever runs jobs can do, whatever the host.
#[derive(Clone, Copy, Debug)]
struct BackendOffer {
    name: &'static str,
    pauses: &'static [Pause],
    shares: bool,
    signals: bool,
}

impl Offers {
    /// Whether a request asks for anything that is found here.
    pub fn matter(request: &JobRequest) -> bool {
        request.limited_by().is_some() || request.pause == Pause::Freeze || !request.resources.is_empty()
    }

    /// Adds a node's devices of one kind. A node that has not said what it can do may be able to do anything.
    pub fn add(&mut self, group: &GroupOnWire, abilities: Option<&HostAbilities>) {
        let cannot = |why: &Option<String>| why.clone().map_or(Ok(()), Err);
        let memory_mib = group.devices.iter().map(|card| card.memory_mib.unwrap_or(u64::MAX)).max();
        let here = Offer {
            memory_mib: memory_mib.unwrap_or(0),
            freeze: abilities.map_or(Ok(()), |can| cannot(&can.no_freeze)),
            limits: abilities.map_or(Ok(()), |can| cannot(&can.no_limits)),
        };
        self.kinds.entry(group.kind.clone()).and_modify(|known| known.better(&here)).or_insert(here);
    }

    /// The same with what whoever runs jobs can do.
    pub fn run_by(self, can: &BackendAbilities) -> Offers {
        let BackendAbilities { name, pauses, shares, signals, .. } = *can;
        Offers { backend: Some(BackendOffer { name, pauses, shares, signals }), ..self }
    }

    /// Whether several jobs can be on one device.
    pub fn shares(&self) -> bool {
        self.backend.is_none_or(|can| can.shares)
    }

    /// The same with what is counted of hosts.
    pub fn counting(self, resources: &Resources) -> Offers {
        Offers { resources: resources.clone(), ..self }
    }

    /// What is counted of hosts.
    pub fn resources(&self) -> &Resources {
        &self.resources
    }

    /// What a request asks of each of its hosts; nothing where it asks for nothing.
    pub fn host(&self, request: &JobRequest) -> Result<Option<Arc<HostNeed>>, Refusal> {
        let mut need = HostNeed::default();
        if let Some(cpus) = request.cpus {
            need = need.per_node(ResourceId::CORES, (cpus * 1000.0).ceil() as u32);
        }
        if let Some(memory) = request.memory_mib {
            need = need.per_node(ResourceId::MEMORY, u32::try_from(memory).unwrap_or(u32::MAX));
        }
        for (name, amount) in &request.resources {
            need = need.per_node(self.counted(name)?, *amount);
        }
        Ok((need != HostNeed::default()).then(|| Arc::new(need)))
    }

    fn counted(&self, name: &str) -> Result<ResourceId, Refusal> {
        let own: Vec<&str> = self.resources.iter().skip(2).map(|(_, name)| name).collect();
        let known = if own.is_empty() { "none".to_owned() } else { own.join(", ") };
        let message = format!(
            "no node has the resource {name:?}; besides cores and memory there are: {known} (to add one: yard \
             agent --resource {name}=N)"
        );
        self.resources.find(name).ok_or_else(|| invalid("resources", message))
    }

    /// Of the kinds that a job may run on, those that can serve it.
    pub fn serving(
        &self,
        request: &JobRequest,
        allowed: Vec<KindId>,
        kinds: &Kinds,
    ) -> Result<Vec<KindId>, Refusal> {
        self.backend.map_or(Ok(()), |can| can.serves(request))?;
        let mut left = allowed;
        if let Some(mib) = request.gpu_memory_mib {
            left = self.with_memory(mib, &left, kinds)?;
        }
        if let Some(field) = request.limited_by() {
            left = self.able(&left, kinds, |offer| &offer.limits).map_err(|why| unlimited(field, &why))?;
        }
        if request.pause == Pause::Freeze {
            left = self.able(&left, kinds, |offer| &offer.freeze).map_err(|why| unfrozen(&why))?;
        }
        Ok(left)
    }

    fn with_memory(&self, mib: u64, allowed: &[KindId], kinds: &Kinds) -> Result<Vec<KindId>, Refusal> {
        let memory =
            |kind: &KindId| self.kinds.get(kinds.name(*kind)).map_or(u64::MAX, |offer| offer.memory_mib);
        let enough: Vec<_> = allowed.iter().copied().filter(|kind| memory(kind) >= mib).collect();
        match allowed.iter().max_by_key(|kind| memory(kind)) {
            Some(largest) if enough.is_empty() => {
                let (name, most) = (kinds.name(*largest), memory(largest));
                let message = format!(
                    "gpu_memory: no GPU that the job may use has {mib} MiB; the largest is {name} with {most} MiB"
                );
                Err(invalid("gpu_memory_mib", message))
            }
            _ => Ok(enough),
        }
    }

    /// Those of the kinds that can; else why the first of them cannot.
    fn able(
        &self,
        allowed: &[KindId],
        kinds: &Kinds,
        what: impl Fn(&Offer) -> &Result<(), String>,
    ) -> Result<Vec<KindId>, String> {
        let why_not = |kind: &KindId| what(self.kinds.get(kinds.name(*kind))?).clone().err();
        let can: Vec<_> = allowed.iter().copied().filter(|kind| why_not(kind).is_none()).collect();
        match allowed.first().and_then(why_not) {
            Some(why) if can.is_empty() => Err(why),
            _ => Ok(can),
        }
    }
}

impl BackendOffer {
    /// Refuses what cannot be had on any host.
    fn serves(&self, request: &JobRequest) -> Result<(), Refusal> {
        let name = self.name;
        if !self.pauses.contains(&request.pause) {
            let ways: Vec<_> = self.pauses.iter().map(|way| pause_name(*way)).collect();
            let (wanted, ways) = (pause_name(request.pause), ways.join(", "));
            let message = format!(
                "pause: {wanted} cannot be had here: jobs are run by {name}, which can pause them in these ways: {ways}"
            );
            return Err(invalid("pause", message));
        }
        if let Some(field) = request.limited_by().filter(|_| !self.shares) {
            let message = format!(
                "{field}: jobs are run by {name}, which gives each device to one job alone; ask for whole ones with gpus: 1"
            );
            return Err(invalid(field, message));
        }
        if request.checkpoint.signal.is_some() && !self.signals {
            let message = format!(
                "checkpoint: jobs are run by {name}, which stops them in its own way; leave the signal out"
            );
            return Err(invalid("checkpoint", message));
        }
        Ok(())
    }
}

fn pause_name(pause: Pause) -> &'static str {
    match pause {
        Pause::Auto => "auto",
        Pause::Checkpoint => "checkpoint",
        Pause::Stop => "stop",
        Pause::Freeze => "freeze",
        Pause::Never => "never",
    }
}

impl Offer {
    /// With a node more of the kind.
    fn better(&mut self, other: &Offer) {
        self.memory_mib = self.memory_mib.max(other.memory_mib);
        if other.freeze.is_ok() {
            self.freeze = Ok(());
        }
        if other.limits.is_ok() {
            self.limits = Ok(());
        }
    }
}

fn unlimited(field: &str, why: &str) -> Refusal {
    let message = format!("{field}: cannot be enforced here: {why}; or request a whole GPU with gpus: 1");
    invalid(field, message)
}

fn unfrozen(why: &str) -> Refusal {
    let message = format!(
        "pause: freeze is not available here: {why}; use pause: checkpoint with the Python package, or pause: auto"
    );
    invalid("pause", message)
}

fn invalid(field: &str, message: String) -> Refusal {
    Refusal::Invalid { field: Some(field.to_owned()), message }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::exec::Device;

    fn group(kind: &str, memory_mib: Option<u64>) -> GroupOnWire {
        let (name, links) = ("d".to_owned(), Vec::new());
        let card = Device { name, uuid: None, memory_mib, problem: None, split: false, links };
        GroupOnWire { kind: kind.into(), devices: vec![card; 2] }
    }

    fn cannot(why: &str) -> HostAbilities {
        let why = |what: &str| Some(format!("node n1 has no {what} ({why})"));
        HostAbilities { no_freeze: why("freezer"), no_limits: why("MPS") }
    }

    /// Names of the kinds that serve a request, or the refusal's sentence.
    fn served(
        offers: &[(&str, Option<u64>, Option<HostAbilities>)],
        change: impl Fn(&mut JobRequest),
    ) -> String {
        let (mut all, mut kinds, mut request) = (Offers::default(), Kinds::default(), JobRequest::default());
        for (kind, memory, abilities) in offers {
            all.add(&group(kind, *memory), abilities.as_ref());
            kinds.intern(kind);
        }
        change(&mut request);
        match all.serving(&request, kinds.ids().collect(), &kinds) {
            Ok(left) => left.iter().map(|kind| kinds.name(*kind)).collect::<Vec<_>>().join(" "),
            Err(refusal) => refusal.to_string(),
        }
    }

    fn check(
        offers: &[(&str, Option<u64>, Option<HostAbilities>)],
        change: impl Fn(&mut JobRequest),
        answer: Expect,
    ) {
        answer.assert_eq(&served(offers, change));
    }

    #[test]
    fn memory_that_no_card_has_is_refused_with_the_largest_there_is() {
        let offers = [("a100", Some(40_960), None), ("h200", Some(143_771), None)];
        check(
            &offers,
            |r| r.gpu_memory_mib = Some(200_000),
            expect![
                "gpu_memory: no GPU that the job may use has 200000 MiB; the largest is h200 with 143771 MiB"
            ],
        );
        check(&offers, |r| r.gpu_memory_mib = Some(80_000), expect!["h200"]);
        check(&offers, |r| r.gpu_memory_mib = Some(8_192), expect!["a100 h200"]);
        let unknown = [("a100", Some(40_960), None), ("fake", None, None)];
        check(&unknown, |r| r.gpu_memory_mib = Some(200_000), expect!["fake"]);
    }

    #[test]
    fn what_no_node_can_do_is_refused_with_its_reason() {
        let offers = [("a100", None, Some(cannot("old"))), ("v100", None, Some(cannot("older")))];
        check(
            &offers,
            |r| r.pause = Pause::Freeze,
            expect![
                "pause: freeze is not available here: node n1 has no freezer (old); use pause: checkpoint with the Python package, or pause: auto"
            ],
        );
        check(
            &offers,
            |r| r.gpu_fraction = Some(0.5),
            expect![
                "gpu_fraction: cannot be enforced here: node n1 has no MPS (old); or request a whole GPU with gpus: 1"
            ],
        );
        check(
            &offers,
            |r| r.gpu_memory_mib = Some(8_192),
            expect![
                "gpu_memory_mib: cannot be enforced here: node n1 has no MPS (old); or request a whole GPU with gpus: 1"
            ],
        );
        check(&offers, |r| r.gpu_fraction = Some(1.0), expect!["a100 v100"]);
    }

    #[test]
    fn only_kinds_that_can_are_offered_and_one_able_node_is_enough() {
        let some = [("a100", None, Some(cannot("old"))), ("v100", None, Some(HostAbilities::default()))];
        check(&some, |r| r.pause = Pause::Freeze, expect!["v100"]);
        check(&some, |r| r.gpu_limit = Some(0.5), expect!["v100"]);
        check(&some, |_| (), expect!["a100 v100"]);
        let (bad, good) = (Some(cannot("old")), Some(HostAbilities::default()));
        let mixed = [("a100", None, bad.clone()), ("a100", None, good), ("a100", None, bad)];
        check(&mixed, |r| r.pause = Pause::Freeze, expect!["a100"]);
    }

    #[test]
    fn nothing_is_refused_where_nothing_is_known() {
        check(&[("a100", None, None)], |r| r.pause = Pause::Freeze, expect!["a100"]);
        let away = [("a100", None, Some(cannot("old"))), ("a100", None, None)];
        check(&away, |r| r.gpu_fraction = Some(0.5), expect!["a100"]);
    }
}
