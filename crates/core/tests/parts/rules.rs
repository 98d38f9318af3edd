//! Single rules of the holder and of gangs, one at a time.

use smallvec::smallvec;
use yard_core::gang::{FromGang, GangJob, GangNews, GangPart, Gangs, Restored, ToGang};
use yard_core::holder::{Act, Cause, Happening, Holder};
use yard_core::ids::{AgentId, JobId, LeaseId};
use yard_core::job::Claim;
use yard_core::message::Why;
use yard_core::part::{
    Ending, Held, How, LAPSED_GRACE, Master, Order, PartId, Pause, Ranks, Start, Starved, Told,
};
use yard_core::{Span, Time};

pub(crate) const GB: u64 = 1_000_000_000;
pub(crate) const GRACE: Span = Span::from_whole_secs(30);

pub(crate) fn part(lease: u64, job: u64) -> PartId {
    PartId { lease: LeaseId(lease), job: JobId(job), instance: 1 }
}

pub(crate) fn start(part: PartId, mask: u128, count: u32) -> Start {
    Start {
        part,
        devices: smallvec![Held { group: 0, mask }],
        ranks: Ranks { first: 0, count, world: count, node_rank: 0, nodes: 1 },
        pause: Pause::Auto,
        grace: GRACE,
        limit: None,
        card: true,
        thaw: false,
        claim: Claim::Ordinary,
        loss_max: 0.0,
    }
}

/// A holder that has contact for an hour, and a clock that is turned by hand.
pub(crate) struct Node {
    pub(crate) holder: Holder,
    pub(crate) now: Time,
}

impl Node {
    pub(crate) fn new() -> Node {
        let mut node = Node { holder: Holder::default(), now: Time::from_secs(1.0) };
        node.does(Happening::Contact { valid_until: Time::from_secs(3600.0) });
        node.does(Happening::Room { bytes: 100 * GB });
        node
    }

    pub(crate) fn does(&mut self, what: Happening) -> Vec<Act> {
        let mut acts = Vec::new();
        self.holder.step(self.now, what, &mut acts);
        acts
    }

    pub(crate) fn order(&mut self, order: Order) -> Vec<Act> {
        self.does(Happening::Order(order))
    }

    pub(crate) fn later(&mut self, seconds: u64) -> Vec<Act> {
        self.now = self.now + Span::from_whole_secs(seconds);
        self.does(Happening::Tick)
    }

    /// Starts a part and says that it runs.
    pub(crate) fn runs(&mut self, start: Start) -> PartId {
        let part = start.part;
        let acts = self.order(Order::Start(start));
        assert!(acts.contains(&Act::Spawn { part, master: None }), "{acts:?}");
        self.does(Happening::Spawned { part });
        part
    }

    pub(crate) fn exits(&mut self, part: PartId, rank: u32, code: i32) -> Vec<Act> {
        self.does(Happening::Exited { part, rank, code: Some(code), signal: None, starved: None })
    }

    pub(crate) fn killed(&mut self, part: PartId, rank: u32) -> Vec<Act> {
        self.does(Happening::Exited { part, rank, code: None, signal: Some(9), starved: None })
    }

    pub(crate) fn stop(&mut self, part: PartId) -> Vec<Act> {
        self.order(Order::Stop { part, why: Why::Preempted })
    }
}

/// How the part ended, by the last word of it.
pub(crate) fn ending(acts: &[Act]) -> Ending {
    let told = acts.iter().rev().find_map(|act| match act {
        Act::Tell { told: Told::Ended(ending), .. } => Some(ending.clone()),
        _ => None,
    });
    told.unwrap_or_else(|| panic!("nothing ended in {acts:?}"))
}

pub(crate) fn tells(acts: &[Act]) -> Vec<Told> {
    let told = |act: &Act| match act {
        Act::Tell { told, .. } => Some(told.clone()),
        _ => None,
    };
    acts.iter().filter_map(told).collect()
}

#[test]
fn an_older_lease_is_refused_and_an_equal_one_shares() {
    let mut node = Node::new();
    let old = node.runs(start(part(5, 1), 0b01, 1));
    node.runs(start(part(5, 2), 0b01, 1));
    node.exits(old, 0, 0);
    node.exits(part(5, 2), 0, 0);
    assert_eq!(ending(&node.order(Order::Start(start(part(4, 3), 0b11, 1)))).how, How::Refused);
    node.runs(start(part(4, 4), 0b100, 1));
    node.runs(start(part(6, 5), 0b01, 1));
}

#[test]
fn devices_in_use_are_not_given_twice() {
    let mut node = Node::new();
    let first = node.runs(start(part(1, 1), 0b11, 1));
    assert!(node.holder.holds(0, 1) && !node.holder.holds(0, 2) && !node.holder.holds(1, 1));
    let refused = ending(&node.order(Order::Start(start(part(2, 2), 0b10, 1))));
    assert_eq!(refused.how, How::Refused);
    assert_eq!(refused.message.as_deref(), Some("job 1 still runs here under lease 1"));
    node.exits(first, 0, 0);
    node.runs(start(part(3, 2), 0b10, 1));
}

#[test]
fn repeated_orders_start_nothing_twice() {
    let mut node = Node::new();
    let id = node.runs(start(part(1, 1), 1, 1));
    let acts = node.order(Order::Start(start(id, 1, 1)));
    assert_eq!(tells(&acts), [Told::Accepted, Told::Started]);
    assert_eq!(acts.len(), 2, "it only says where it stands: {acts:?}");
    node.exits(id, 0, 3);
    for order in [Order::Start(start(id, 1, 1)), Order::Stop { part: id, why: Why::Moved }] {
        assert_eq!(ending(&node.order(order)).code, Some(3));
    }
    assert_eq!(node.order(Order::Forget { part: id }), [Act::Forget { part: id }]);
    assert_eq!(ending(&node.order(Order::Start(start(id, 1, 1)))).how, How::Refused);
}

#[test]
fn an_order_of_absurd_size_is_refused() {
    for count in [0, u32::MAX] {
        let acts = Node::new().order(Order::Start(start(part(1, 1), 1, count)));
        assert_eq!(ending(&acts).how, How::Refused);
    }
}

#[test]
fn who_does_not_stop_is_killed_after_its_grace_and_that_is_no_failure() {
    let mut node = Node::new();
    let id = node.runs(Start { pause: Pause::Checkpoint, ..start(part(1, 1), 1, 1) });
    assert_eq!(node.stop(id), [Act::Signal { part: id, ranks: vec![0] }]);
    assert_eq!(node.later(29), []);
    assert_eq!(node.later(1), [Act::Kill { part: id }]);
    let ending = ending(&node.killed(id, 0));
    assert_eq!((ending.how, ending.signal), (How::Saved, Some(9)));
    assert_eq!(ending.message.as_deref(), Some("it did not stop within 30s and was killed"));
}

#[test]
fn without_contact_everything_is_stopped_and_killed_in_time() {
    let mut node = Node::new();
    let id = node.runs(Start { pause: Pause::Checkpoint, ..start(part(1, 1), 1, 1) });
    node.does(Happening::Contact { valid_until: Time::from_secs(7200.0) });
    assert_eq!(node.holder.deadline(), Some(Time::from_secs(7200.0)));
    node.now = Time::from_secs(7220.0);
    assert!(node.later(0).contains(&Act::Signal { part: id, ranks: vec![0] }));
    assert_eq!(
        node.holder.deadline(),
        Some(Time::from_secs(7230.0)),
        "grace runs from when the lease lapsed"
    );
    assert_eq!(node.later(10), [Act::Kill { part: id }]);
    assert_eq!(ending(&node.killed(id, 0)).how, How::Saved);
    let late = ending(&node.order(Order::Start(start(part(2, 2), 2, 1))));
    assert_eq!(late.how, How::Refused);
}

#[test]
fn time_that_is_used_up_ends_a_job() {
    let mut node = Node::new();
    let limit = Some(Span::from_whole_secs(60));
    let id = node.runs(Start { limit, ..start(part(1, 1), 1, 1) });
    node.does(Happening::Hello { part: id, rank: 0 });
    assert_eq!(node.later(59), []);
    let cause = Cause::Expired;
    let stop = Act::Stop { part: id, ranks: vec![0], at: None, cause, grace: GRACE };
    assert_eq!(node.later(1), [stop]);
    let took = Span::from_whole_secs(2);
    node.does(Happening::Checkpointed { part: id, rank: 0, step: 7, took });
    let ending = ending(&node.exits(id, 0, 0));
    assert_eq!((ending.how, ending.step), (How::Expired, Some(7)));
}

/// What a stop of a part with one rank does first.
fn first_act(pause: Pause, card: bool, speaks: bool, why: Why) -> Act {
    let mut node = Node::new();
    let id = node.runs(Start { pause, card, ..start(part(1, 1), 1, 1) });
    if speaks {
        node.does(Happening::Hello { part: id, rank: 0 });
    }
    node.order(Order::Stop { part: id, why }).remove(0)
}

#[test]
fn jobs_pause_as_suits_them() {
    use Pause::{Auto, Checkpoint, Freeze, Never, Stop};
    let id = part(1, 1);
    let freeze = |deep| Act::Freeze { part: id, deep };
    let signal = Act::Signal { part: id, ranks: vec![0] };
    let cause = Cause::Ordered(Why::Preempted);
    let stop = Act::Stop { part: id, ranks: vec![0], at: None, cause, grace: GRACE };
    assert_eq!(first_act(Auto, false, true, Why::Preempted), stop);
    assert_eq!(first_act(Auto, false, false, Why::Preempted), freeze(false));
    assert_eq!(first_act(Auto, true, false, Why::Preempted), freeze(true));
    assert_eq!(first_act(Auto, true, true, Why::Preempted), stop);
    assert_eq!(first_act(Freeze, true, true, Why::Preempted), freeze(true));
    assert_eq!(first_act(Freeze, true, false, Why::Moved), signal);
    assert_eq!(first_act(Auto, false, false, Why::Cancelled), signal, "nobody will let it go on");
    assert_eq!(first_act(Auto, false, false, Why::Moved), signal);
    assert_eq!(first_act(Stop, true, true, Why::Preempted), freeze(false));
    assert_eq!(first_act(Checkpoint, false, false, Why::Preempted), signal);
    assert_eq!(first_act(Never, false, true, Why::Preempted), stop);
}

#[test]
fn stopped_processes_go_on_under_the_next_lease() {
    let mut node = Node::new();
    let still = |part, thaw| Start { card: false, thaw, ..start(part, 1, 1) };
    let old = node.runs(still(part(1, 1), false));
    assert_eq!(ending(&node.stop(old)).how, How::Paused);
    assert_eq!(node.holder.paused(), [JobId(1)]);
    assert_eq!(node.order(Order::Forget { part: old }), [], "its processes are still known by it");
    let new = part(2, 1);
    let acts = node.order(Order::Start(still(new, true)));
    assert!(acts.contains(&Act::Thaw { part: old, as_part: new, deep: false }), "{acts:?}");
    assert_eq!(tells(&acts), [Told::Accepted, Told::Started]);
    assert_eq!(ending(&node.exits(old, 0, 0)).how, How::Finished, "an exit under the old name counts");

    let other = node.runs(still(part(3, 2), false));
    node.stop(other);
    let acts = node.order(Order::Start(still(part(4, 2), false)));
    assert!(acts.contains(&Act::Drop { part: other }), "a new start wants the old processes gone: {acts:?}");
}

#[test]
fn a_stop_that_comes_while_processes_start_waits_for_them() {
    let mut node = Node::new();
    let id = part(1, 1);
    node.order(Order::Start(Start { pause: Pause::Checkpoint, ..start(id, 1, 1) }));
    assert_eq!(node.stop(id), []);
    let acts = node.does(Happening::Spawned { part: id });
    assert_eq!(acts.last(), Some(&Act::Signal { part: id, ranks: vec![0] }));
}

#[test]
fn a_rank_that_fails_takes_the_others_with_it() {
    let mut node = Node::new();
    let id = node.runs(start(part(1, 1), 0b11, 2));
    assert_eq!(node.exits(id, 1, 7), [Act::Signal { part: id, ranks: vec![0] }]);
    assert_eq!(node.later(5), [Act::Kill { part: id }]);
    let ending = ending(&node.killed(id, 0));
    assert_eq!((ending.how, ending.code), (How::Crashed, Some(7)));
    assert_eq!(ending.message.as_deref(), Some("rank 1 exited with code 7"));
}

#[test]
fn what_cannot_be_started_is_the_jobs_fault_or_the_nodes() {
    for (code, how) in [(Some(127), How::Crashed), (None, How::Refused)] {
        let mut node = Node::new();
        let id = part(1, 1);
        node.order(Order::Start(start(id, 1, 1)));
        let failed = Happening::SpawnFailed { part: id, code, message: "no such file".into() };
        let ending = ending(&node.does(failed));
        assert_eq!((ending.how, ending.code), (how, code));
    }
}

#[test]
fn ranks_on_one_node_agree_on_the_step_at_which_they_stop() {
    let mut node = Node::new();
    let id = node.runs(start(part(1, 1), 0b11, 2));
    for rank in [0, 1] {
        node.does(Happening::Hello { part: id, rank });
    }
    assert_eq!(node.stop(id), [Act::Hold { part: id, ranks: vec![0, 1] }]);
    assert_eq!(node.does(Happening::Boundary { part: id, rank: 0, step: 5 }), []);
    let acts = node.does(Happening::Boundary { part: id, rank: 1, step: 6 });
    let cause = Cause::Ordered(Why::Preempted);
    assert_eq!(acts, [Act::Stop { part: id, ranks: vec![0, 1], at: Some(6), cause, grace: GRACE }]);
}

#[test]
fn ranks_that_do_not_talk_get_a_signal_and_the_rest_agree() {
    let mut node = Node::new();
    let id = node.runs(start(part(1, 1), 0b11, 2));
    node.does(Happening::Hello { part: id, rank: 1 });
    let signal = Act::Signal { part: id, ranks: vec![0] };
    assert_eq!(node.stop(id), [signal, Act::Hold { part: id, ranks: vec![1] }]);
}

#[test]
fn a_rank_that_does_not_answer_holds_the_others_up_for_half_the_grace() {
    let mut node = Node::new();
    let id = node.runs(start(part(1, 1), 0b11, 2));
    for rank in [0, 1] {
        node.does(Happening::Hello { part: id, rank });
    }
    node.stop(id);
    node.does(Happening::Boundary { part: id, rank: 0, step: 5 });
    let cause = Cause::Ordered(Why::Preempted);
    assert_eq!(node.later(15), [Act::Stop { part: id, ranks: vec![0, 1], at: Some(5), cause, grace: GRACE }]);
}

#[test]
fn a_gang_waits_for_the_word_and_asks_where_to_stop() {
    let mut node = Node::new();
    let id = part(1, 1);
    let ranks = Ranks { first: 2, count: 1, world: 3, node_rank: 1, nodes: 2 };
    let acts = node.order(Order::Start(Start { ranks, ..start(id, 1, 1) }));
    assert_eq!(acts.last(), Some(&Act::Reserve { part: id }));
    let acts = node.does(Happening::PortFound { part: id, port: 4000 });
    assert_eq!(tells(&acts), [Told::Ready { port: 4000 }]);
    let master = Master { address: "10.0.0.1".into(), port: 5000 };
    let acts = node.order(Order::Go { part: id, master: master.clone() });
    assert_eq!(acts, [Act::Spawn { part: id, master: Some(master) }]);
    node.does(Happening::Spawned { part: id });
    node.does(Happening::Hello { part: id, rank: 2 });
    assert_eq!(node.stop(id), [Act::Hold { part: id, ranks: vec![2] }]);
    let acts = node.does(Happening::Boundary { part: id, rank: 2, step: 8 });
    assert_eq!(tells(&acts), [Told::Boundary { step: 8 }]);
    let acts = node.order(Order::StopAt { part: id, step: 9 });
    let cause = Cause::Ordered(Why::Preempted);
    assert_eq!(acts, [Act::Stop { part: id, ranks: vec![2], at: Some(9), cause, grace: GRACE }]);
}

#[test]
fn progress_is_told_once_a_second_and_at_the_end() {
    let mut node = Node::new();
    let id = node.runs(start(part(1, 1), 1, 1));
    let come = |step| Happening::Progress { part: id, rank: 0, step, total: Some(4) };
    let told = |step| vec![Told::Progress { step, total: Some(4) }];
    node.now = node.now + Span::from_whole_secs(5);
    assert_eq!(tells(&node.does(come(1))), told(1));
    assert_eq!(node.does(come(2)), []);
    assert_eq!(node.does(come(3)), []);
    assert_eq!(tells(&node.later(1)), told(3));
    assert_eq!(tells(&node.does(come(4))), told(4), "the end is told at once");
}

#[test]
fn who_was_done_when_told_to_stop_is_finished() {
    let mut node = Node::new();
    let id = node.runs(start(part(1, 1), 1, 1));
    node.does(Happening::Hello { part: id, rank: 0 });
    node.stop(id);
    node.does(Happening::Progress { part: id, rank: 0, step: 4, total: Some(4) });
    assert_eq!(ending(&node.exits(id, 0, 0)).how, How::Finished);
}

#[test]
fn who_talks_and_fails_to_save_has_crashed() {
    let mut node = Node::new();
    let id = node.runs(start(part(1, 1), 1, 1));
    node.does(Happening::Hello { part: id, rank: 0 });
    node.stop(id);
    let ending = ending(&node.exits(id, 0, 1));
    assert_eq!((ending.how, ending.code), (How::Crashed, Some(1)));
}

#[test]
fn an_agent_that_is_back_finds_its_processes_and_kills_strangers() {
    let mut node = Node::new();
    let (kept, lost, stranger) = (part(1, 1), part(2, 2), part(3, 3));
    node.runs(start(kept, 0b001, 1));
    node.runs(start(lost, 0b110, 2));
    let acts = node.does(Happening::Restarted { alive: vec![(kept, 0), (lost, 1), (stranger, 0)] });
    assert_eq!(acts, [Act::Kill { part: lost }, Act::Kill { part: stranger }], "half a job is no job");
    assert_eq!(ending(&node.killed(lost, 1)).how, How::Lost);
    assert_eq!(ending(&node.exits(kept, 0, 0)).how, How::Finished);
}

#[test]
fn an_agent_that_is_back_stops_what_should_lie_stopped() {
    let mut node = Node::new();
    let id = node.runs(Start { card: false, ..start(part(1, 1), 1, 1) });
    node.stop(id);
    assert_eq!(
        node.does(Happening::Restarted { alive: vec![(id, 0)] }),
        [Act::Freeze { part: id, deep: false }]
    );
    assert_eq!(node.does(Happening::Restarted { alive: vec![] }), [Act::Drop { part: id }]);
    assert_eq!(node.holder.paused(), []);
}

// Gangs.

pub(crate) fn gang(job: u64, agents: &[u32]) -> GangJob {
    let ranks = Ranks::split(&vec![1; agents.len()]);
    let part = |(agent, ranks): (&u32, Ranks)| GangPart {
        agent: AgentId(*agent),
        address: format!("node{agent}"),
        devices: smallvec![Held { group: 0, mask: 1 }],
        ranks,
        card: false,
    };
    let parts = agents.iter().zip(ranks).map(part).collect();
    GangJob {
        job: JobId(job),
        instance: 1,
        pause: Pause::Auto,
        grace: GRACE,
        limit: None,
        claim: Claim::Ordinary,
        loss_max: 0.0,
        parts,
    }
}

fn does(gangs: &mut Gangs, what: ToGang) -> Vec<FromGang> {
    let mut out = Vec::new();
    gangs.step(what, &mut out);
    out
}

pub(crate) fn told(gangs: &mut Gangs, agent: u32, part: PartId, told: Told) -> Vec<FromGang> {
    does(gangs, ToGang::Told { agent: AgentId(agent), part, told })
}

fn ended(gangs: &mut Gangs, agent: u32, part: PartId, how: How) -> Vec<FromGang> {
    let ending = Ending { how, step: None, code: Some(0), signal: None, message: None };
    told(gangs, agent, part, Told::Ended(ending))
}

pub(crate) fn grant(gangs: &mut Gangs, lease: u64, job: GangJob) -> Vec<FromGang> {
    does(gangs, ToGang::Granted { lease: LeaseId(lease), jobs: vec![job] })
}

pub(crate) fn orders(out: &[FromGang]) -> Vec<(u32, Order)> {
    let order = |wish: &FromGang| match wish {
        FromGang::Order { agent, order } => Some((agent.0, order.clone())),
        FromGang::Report { .. } => None,
    };
    out.iter().filter_map(order).collect()
}

pub(crate) fn reports(out: &[FromGang]) -> Vec<GangNews> {
    let report = |wish: &FromGang| match wish {
        FromGang::Report { news, .. } => Some(news.clone()),
        FromGang::Order { .. } => None,
    };
    out.iter().filter_map(report).collect()
}

fn end_of(out: &[FromGang]) -> Option<How> {
    reports(out).into_iter().find_map(|news| match news {
        GangNews::Ended(ending) => Some(ending.how),
        _ => None,
    })
}

#[test]
fn a_gang_goes_once_all_are_ready_and_has_started_once_all_have() {
    let (mut gangs, id) = (Gangs::default(), part(1, 1));
    assert_eq!(orders(&grant(&mut gangs, 1, gang(1, &[3, 5]))).len(), 2);
    assert_eq!(told(&mut gangs, 5, id, Told::Ready { port: 50 }), []);
    let master = Master { address: "node3".into(), port: 30 };
    let go = Order::Go { part: id, master };
    assert_eq!(orders(&told(&mut gangs, 3, id, Told::Ready { port: 30 })), [(3, go.clone()), (5, go)]);
    assert_eq!(told(&mut gangs, 3, id, Told::Started), []);
    assert_eq!(reports(&told(&mut gangs, 5, id, Told::Started)), [GangNews::Started]);
}

#[test]
fn a_gang_stops_before_the_last_of_its_boundaries() {
    let (mut gangs, id) = (Gangs::default(), part(1, 1));
    grant(&mut gangs, 1, gang(1, &[0, 1]));
    let why = Why::Preempted;
    does(&mut gangs, ToGang::Revoked { lease: LeaseId(1), jobs: vec![JobId(1)], why });
    assert_eq!(told(&mut gangs, 0, id, Told::Boundary { step: 7 }), []);
    let stop = Order::StopAt { part: id, step: 7 };
    assert_eq!(orders(&told(&mut gangs, 1, id, Told::Boundary { step: 6 })), [(0, stop.clone()), (1, stop)]);
}

#[test]
fn a_gang_whose_time_is_up_on_one_node_stops_on_all_before_the_same_step() {
    let (mut gangs, id) = (Gangs::default(), part(1, 1));
    grant(&mut gangs, 1, gang(1, &[0, 1]));
    let stop = Order::Stop { part: id, why: Why::Drained };
    assert!(orders(&told(&mut gangs, 0, id, Told::Boundary { step: 7 })).contains(&(1, stop)));
    let stop = Order::StopAt { part: id, step: 9 };
    assert_eq!(orders(&told(&mut gangs, 1, id, Told::Boundary { step: 9 })), [(0, stop.clone()), (1, stop)]);
}

#[test]
fn a_part_that_fails_stops_the_others_and_one_that_is_done_does_not() {
    let (mut gangs, id) = (Gangs::default(), part(1, 1));
    grant(&mut gangs, 1, gang(1, &[0, 1]));
    assert_eq!(ended(&mut gangs, 0, id, How::Finished), []);
    assert_eq!(end_of(&ended(&mut gangs, 1, id, How::Finished)), Some(How::Finished));

    let id = part(2, 2);
    grant(&mut gangs, 2, gang(2, &[0, 1]));
    let stop = Order::Stop { part: id, why: Why::Lost };
    assert_eq!(orders(&ended(&mut gangs, 0, id, How::Crashed)), [(1, stop)]);
    assert_eq!(end_of(&ended(&mut gangs, 1, id, How::Saved)), Some(How::Crashed));
}

#[test]
fn the_whole_ends_as_its_parts_explain() {
    use How::{Crashed, Expired, Finished, Lost, Paused, Refused, Saved};
    let cases = [
        ([Finished, Saved], Saved),
        ([Paused, Saved], Saved),
        ([Paused, Paused], Paused),
        ([Refused, Saved], Lost),
        ([Crashed, Lost], Lost),
        ([Crashed, Expired], Expired),
        ([Crashed, Finished], Crashed),
    ];
    for (parts, whole) in cases {
        for order in [[0, 1], [1, 0]] {
            let (mut gangs, id) = (Gangs::default(), part(1, 1));
            grant(&mut gangs, 1, gang(1, &[0, 1]));
            let first = ended(&mut gangs, order[0], id, parts[order[0] as usize]);
            assert_eq!(end_of(&first), None, "{parts:?}");
            let last = ended(&mut gangs, order[1], id, parts[order[1] as usize]);
            assert_eq!(end_of(&last), Some(whole), "{parts:?}");
        }
    }
}

#[test]
fn agents_forget_only_what_is_durable() {
    let (mut gangs, id) = (Gangs::default(), part(1, 1));
    grant(&mut gangs, 1, gang(1, &[4]));
    let mut out = Vec::new();
    gangs.durable(id.lease, id.job, &mut out);
    assert_eq!(out, [], "it has not ended");
    ended(&mut gangs, 4, id, How::Finished);
    assert_eq!(ended(&mut gangs, 4, id, How::Finished), [], "told twice, reported once");
    gangs.durable(id.lease, id.job, &mut out);
    assert_eq!(orders(&out), [(4, Order::Forget { part: id })]);
    assert_eq!(orders(&ended(&mut gangs, 4, id, How::Finished)), [(4, Order::Forget { part: id })]);
}

/// The longest grace that a server takes, and more.
const LONG: Span = Span::from_whole_secs(86_400);

#[test]
fn a_lapsed_lease_leaves_little_time_whatever_the_grace() {
    let mut node = Node::new();
    let long = |id, mask| Start { pause: Pause::Checkpoint, grace: LONG, ..start(id, mask, 1) };
    let (running, stopping) = (node.runs(long(part(1, 1), 1)), node.runs(long(part(2, 2), 2)));
    node.does(Happening::Contact { valid_until: Time::from_secs(7200.0) });
    node.now = Time::from_secs(7190.0);
    node.stop(stopping);
    node.now = Time::from_secs(7200.0);
    assert!(node.later(0).contains(&Act::Signal { part: running, ranks: vec![0] }));
    assert_eq!(node.holder.deadline(), Some(Time::from_secs(7215.0)), "half of 30 s");
    assert_eq!(node.later(29), []);
    assert_eq!(node.later(1), [Act::Kill { part: running }, Act::Kill { part: stopping }]);
    let message = ending(&node.killed(running, 0)).message;
    assert_eq!(message.as_deref(), Some("it did not stop within 30s and was killed"));
    let mut gangs = Gangs::default();
    grant(&mut gangs, 1, GangJob { grace: LONG, ..gang(1, &[0]) });
    assert_eq!((gangs.grace(AgentId(0)), gangs.lapsed_grace(AgentId(0))), (LONG, LAPSED_GRACE));
}

#[test]
fn who_is_killed_has_no_grace_even_while_it_is_being_stopped() {
    let mut node = Node::new();
    let long = |id, mask| Start { pause: Pause::Checkpoint, grace: LONG, ..start(id, mask, 1) };
    let kill = |part| Order::Stop { part, why: Why::Killed };
    let id = node.runs(long(part(1, 1), 1));
    assert_eq!(node.stop(id), [Act::Signal { part: id, ranks: vec![0] }]);
    assert_eq!(node.order(kill(id)), [Act::Kill { part: id }]);
    assert_eq!(node.later(10), [Act::Kill { part: id }], "until it is gone");
    let ending_of = ending(&node.killed(id, 0));
    assert_eq!(ending_of.how, How::Saved, "it is nobody's fault");
    assert_eq!(ending_of.message.as_deref(), Some("it was killed by its user"));
    assert_eq!(ending(&node.order(kill(id))).how, How::Saved, "once more does no harm");
    // One that is being started is killed as soon as it has processes.
    let next = long(part(3, 3), 1);
    node.order(Order::Start(next.clone()));
    node.order(kill(next.part));
    assert!(node.does(Happening::Spawned { part: next.part }).contains(&Act::Kill { part: next.part }));
    // A part of a gang that has none yet is over at once.
    let ready = part(4, 4);
    node.order(Order::Start(Start { ranks: Ranks::split(&[1, 1])[0], ..long(ready, 4) }));
    assert_eq!(ending(&node.order(kill(ready))).how, How::Saved);
}

#[test]
fn a_gang_that_is_killed_is_so_on_all_its_agents_also_on_those_that_come_back() {
    let (mut gangs, id) = (Gangs::default(), part(1, 1));
    grant(&mut gangs, 1, gang(1, &[0, 1]));
    let revoked = |why| ToGang::Revoked { lease: LeaseId(1), jobs: vec![JobId(1)], why };
    does(&mut gangs, revoked(Why::Preempted));
    let stop = Order::Stop { part: id, why: Why::Killed };
    let out = does(&mut gangs, revoked(Why::Killed));
    assert_eq!(orders(&out), [(0, stop.clone()), (1, stop.clone())]);
    let hello = ToGang::Hello { agent: AgentId(1), parts: vec![(id, Told::Started)], paused: vec![] };
    assert_eq!(orders(&does(&mut gangs, hello)), [(1, stop)], "it may have missed the order");
}

#[test]
fn a_lost_agent_takes_its_gangs_with_it() {
    let (mut gangs, id) = (Gangs::default(), part(1, 1));
    grant(&mut gangs, 1, gang(1, &[0, 1]));
    assert_eq!(gangs.grace(AgentId(1)), GRACE);
    let out = does(&mut gangs, ToGang::AgentLost { agent: AgentId(1) });
    assert_eq!(orders(&out), [(0, Order::Stop { part: id, why: Why::Lost })]);
    assert_eq!(gangs.grace(AgentId(1)), Span::ZERO);
    assert_eq!(end_of(&ended(&mut gangs, 0, id, How::Crashed)), Some(How::Lost));
}

/// Gangs after a restart of the server, with one job under lease 1 on agent 0.
fn restored(stop: Option<Why>) -> Gangs {
    Gangs::restore([Restored { lease: LeaseId(1), job: gang(1, &[0]), stop }])
}

fn hello(gangs: &mut Gangs, agent: u32, parts: Vec<(PartId, Told)>, paused: Vec<JobId>) -> Vec<FromGang> {
    does(gangs, ToGang::Hello { agent: AgentId(agent), parts, paused })
}

#[test]
fn after_a_restart_hello_settles_what_each_side_knows() {
    let id = part(1, 1);
    let out = hello(&mut restored(None), 0, vec![], vec![]);
    assert!(matches!(&orders(&out)[..], [(0, Order::Start(start))] if start.part == id && !start.thaw));

    let out = hello(&mut restored(Some(Why::Moved)), 0, vec![], vec![]);
    assert_eq!((orders(&out).len(), end_of(&out)), (0, Some(How::Saved)), "it never came and is not wanted");

    let out = hello(&mut restored(Some(Why::Moved)), 0, vec![(id, Told::Started)], vec![]);
    assert_eq!(orders(&out), [(0, Order::Stop { part: id, why: Why::Moved })]);

    let stranger = part(9, 9);
    let out = hello(&mut restored(None), 0, vec![(id, Told::Started), (stranger, Told::Started)], vec![]);
    assert_eq!(orders(&out), [(0, Order::Stop { part: stranger, why: Why::Lost })]);
}

#[test]
fn an_agent_that_comes_back_without_what_it_had_lost_it() {
    let (mut gangs, id) = (Gangs::default(), part(1, 1));
    grant(&mut gangs, 1, gang(1, &[0]));
    told(&mut gangs, 0, id, Told::Started);
    assert_eq!(end_of(&hello(&mut gangs, 0, vec![], vec![])), Some(How::Lost));
}

/// A job that lies stopped on these agents.
fn paused(agents: &[u32]) -> Gangs {
    let (mut gangs, id) = (Gangs::default(), part(1, 1));
    grant(&mut gangs, 1, gang(1, agents));
    agents.iter().for_each(|agent| drop(ended(&mut gangs, *agent, id, How::Paused)));
    gangs.durable(id.lease, id.job, &mut Vec::new());
    gangs
}

fn thaws(out: &[FromGang]) -> Vec<(u32, bool)> {
    let thaw = |(agent, order): (u32, Order)| match order {
        Order::Start(start) => Some((agent, start.thaw)),
        _ => None,
    };
    orders(out).into_iter().filter_map(thaw).collect()
}

#[test]
fn a_paused_job_goes_on_where_it_lies_or_anew_elsewhere() {
    assert_eq!(thaws(&grant(&mut paused(&[0]), 2, gang(1, &[0]))), [(0, true)]);
    assert_eq!(thaws(&grant(&mut paused(&[0, 1]), 2, gang(1, &[0, 1]))), [(0, true), (1, true)]);
    let out = grant(&mut paused(&[0, 1]), 2, gang(1, &[1, 2]));
    assert_eq!(thaws(&out), [(1, false), (2, false)]);
    assert!(orders(&out).contains(&(0, Order::Discard { job: JobId(1) })), "{out:?}");
}

#[test]
fn processes_of_a_job_that_is_over_or_half_gone_are_discarded() {
    let discard = Order::Discard { job: JobId(1) };
    let over = does(&mut paused(&[0]), ToGang::JobOver { job: JobId(1) });
    assert_eq!(orders(&over), [(0, discard.clone())]);
    let half = hello(&mut paused(&[0, 1]), 0, vec![], vec![]);
    assert!(orders(&half).contains(&(1, discard)), "{half:?}");
}

#[test]
fn a_new_server_learns_where_jobs_lie_stopped() {
    let mut gangs = Gangs::default();
    hello(&mut gangs, 0, vec![], vec![JobId(1)]);
    assert_eq!(thaws(&grant(&mut gangs, 2, gang(1, &[0]))), [(0, true)]);
    let out = hello(&mut gangs, 1, vec![], vec![JobId(1)]);
    assert_eq!(orders(&out), [(1, Order::Discard { job: JobId(1) })], "it runs elsewhere");
}

#[test]
fn a_job_that_ran_out_of_memory_is_said_to_have_and_not_to_have_had_a_signal() {
    let mut node = Node::new();
    let part = node.runs(start(part(1, 1), 1, 1));
    let starved = Some(Starved { limit_mib: Some(512), used_mib: Some(511) });
    let acts = node.does(Happening::Exited { part, rank: 0, code: None, signal: Some(9), starved });
    let message = ending(&acts).message.expect("it says why");
    assert_eq!(message, "it ran out of memory at its limit of 512 MiB (most used: 511 MiB)");
}
