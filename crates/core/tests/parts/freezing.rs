//! Rules of freezing and thawing, one at a time.

use yard_core::gang::{GangNews, Gangs};
use yard_core::holder::{Act, Cause, Happening};
use yard_core::ids::JobId;
use yard_core::message::Why;
use yard_core::part::{Ending, How, Order, PartId, Pause, Start, Told};
use yard_core::{Span, Time};

use crate::rules::{GB, GRACE, Node, ending, gang, grant, part, reports, start, tells, told};

const SECOND: Span = Span::from_whole_secs(1);

fn freezes(part: PartId, mask: u128) -> Start {
    Start { pause: Pause::Freeze, ..start(part, mask, 1) }
}

fn freeze(part: PartId) -> Act {
    Act::Freeze { part, deep: true }
}

fn signal(part: PartId) -> Act {
    Act::Signal { part, ranks: vec![0] }
}

impl Node {
    fn uses(&mut self, part: PartId, gb: u64) -> Vec<Act> {
        self.does(Happening::Usage { part, bytes: gb * GB })
    }

    fn frozen(&mut self, part: PartId, gb: u64) -> Vec<Act> {
        self.does(Happening::Frozen { part, bytes: gb * GB, took: SECOND })
    }

    fn fails(&mut self, part: PartId, forever: bool) -> Vec<Act> {
        self.does(Happening::FreezeFailed { part, reason: "no driver".into(), forever })
    }

    /// Runs a job for so many seconds and freezes it.
    fn freezes(&mut self, start: Start, seconds: u64, gb: u64) -> PartId {
        let id = self.runs(start);
        self.later(seconds);
        self.uses(id, gb);
        assert!(self.stop(id).contains(&freeze(id)));
        self.frozen(id, gb);
        id
    }

    /// Orders a frozen job to go on.
    fn thaws(&mut self, start: Start) -> Vec<Act> {
        self.order(Order::Start(Start { thaw: true, ..start }))
    }
}

#[test]
fn a_part_is_paused_only_once_the_driver_is_done() {
    let mut node = Node::new();
    let id = node.runs(freezes(part(1, 1), 1));
    assert_eq!(node.stop(id), [freeze(id)]);
    assert!(node.holder.holds(0, 0) && node.holder.paused().is_empty());
    let acts = node.frozen(id, 2);
    assert_eq!(tells(&acts)[0], Told::Cost { save: Some(SECOND), load: None, bytes: 2 * GB });
    assert_eq!(ending(&acts).how, How::Paused);
    assert_eq!((node.holder.paused(), node.holder.holds(0, 0)), (vec![JobId(1)], false));
}

#[test]
fn a_freeze_that_fails_is_followed_by_the_next_way() {
    let mut node = Node::new();
    let mute = node.runs(freezes(part(1, 1), 1));
    node.stop(mute);
    node.later(29);
    assert_eq!(node.fails(mute, false), [signal(mute)]);
    assert_eq!(node.later(29), [], "its grace begins when it is told");
    assert_eq!(node.later(1), [Act::Kill { part: mute }]);
    let ending = ending(&node.killed(mute, 0));
    assert_eq!(ending.how, How::Saved);
    assert!(ending.message.unwrap().starts_with("it could not be frozen (no driver), and it did not stop"));

    let talks = node.runs(freezes(part(2, 2), 1));
    node.does(Happening::Hello { part: talks, rank: 0 });
    assert_eq!(node.stop(talks), [freeze(talks)]);
    let cause = Cause::Ordered(Why::Preempted);
    let stop = Act::Stop { part: talks, ranks: vec![0], at: None, cause, grace: GRACE };
    assert_eq!(node.fails(talks, false), [stop]);
}

#[test]
fn what_can_never_be_frozen_is_not_tried_again() {
    let mut node = Node::new();
    let once = node.runs(freezes(part(1, 1), 1));
    node.stop(once);
    node.fails(once, false);
    node.killed(once, 0);
    let again = node.runs(freezes(part(2, 1), 1));
    assert_eq!(node.stop(again), [freeze(again)], "it failed for the moment only");
    node.fails(again, true);
    node.killed(again, 0);
    let third = node.runs(freezes(part(3, 1), 1));
    assert_eq!(tells(&node.later(10)), [Told::Stuck(true)]);
    assert_eq!(node.stop(third), [signal(third)]);
    let other = node.runs(freezes(part(4, 2), 2));
    assert_eq!(node.stop(other), [freeze(other)]);
    let known = node.runs(freezes(part(5, 3), 4));
    node.does(Happening::Unfreezable { part: known, reason: "it goes through MPS".into() });
    assert_eq!(node.stop(known), [signal(known)], "that needs no try");
}

#[test]
fn the_more_there_is_to_move_the_longer_it_may_take() {
    let mut node = Node::new();
    let id = node.runs(freezes(part(1, 1), 1));
    node.uses(id, 60);
    node.stop(id);
    assert_eq!(node.later(59), []);
    assert_eq!(node.later(1), [Act::Kill { part: id }]);
    assert_eq!(node.frozen(id, 60), [], "too late");
    assert_eq!(ending(&node.killed(id, 0)).how, How::Saved);
}

#[test]
fn nothing_is_frozen_for_longer_than_the_server_waits() {
    let mut node = Node::new();
    let (small, large) = (node.runs(freezes(part(1, 1), 1)), node.runs(freezes(part(2, 2), 2)));
    node.uses(small, 20);
    node.uses(large, 60);
    node.now = Time::from_secs(3590.0);
    assert_eq!(node.stop(large), [freeze(large)]);
    node.now = Time::from_secs(3600.0);
    assert_eq!(node.later(0), [freeze(small)]);
    assert_eq!(node.holder.deadline(), Some(Time::from_secs(3630.0)), "grace runs from the lease's end");
    let acts = node.later(30);
    assert_eq!(acts, [Act::Kill { part: small }, Act::Kill { part: large }]);

    let mut node = Node::new();
    let large = node.runs(freezes(part(2, 2), 2));
    node.uses(large, 60);
    node.now = Time::from_secs(3600.0);
    assert_eq!(node.later(0), [signal(large)], "there is no time for it");
}

#[test]
fn a_thawed_part_runs_once_the_driver_is_done_and_stops_wait_for_it() {
    let mut node = Node::new();
    let old = node.freezes(freezes(part(1, 1), 1), 5, 2);
    let new = part(2, 1);
    let acts = node.thaws(freezes(new, 1));
    assert_eq!(acts.last(), Some(&Act::Thaw { part: old, as_part: new, deep: true }));
    assert_eq!(tells(&acts), [Told::Accepted]);
    assert_eq!(node.stop(new), []);
    assert_eq!(node.later(31), [], "there is time for what is to be moved, and then its grace");
    let acts = node.does(Happening::Thawed { part: new, took: SECOND });
    let cost = Told::Cost { save: None, load: Some(SECOND), bytes: 2 * GB };
    assert_eq!(tells(&acts), [Told::Started, cost]);
    assert_eq!(acts.last(), Some(&freeze(new)));
    assert_eq!(node.later(29), [], "its grace runs from when it could be told");
    assert_eq!(ending(&node.frozen(new, 2)).how, How::Paused);

    let stubborn = node.runs(freezes(part(3, 2), 1));
    node.does(Happening::Room { bytes: 0 });
    assert_eq!(node.stop(stubborn), [signal(stubborn)]);
    let ending = ending(&node.killed(stubborn, 0));
    assert_eq!(
        ending.message.as_deref(),
        Some("it could not be frozen and was stopped instead: this node cannot freeze jobs")
    );
}

#[test]
fn a_thaw_that_fails_loses_the_processes_and_blames_nobody() {
    let mut node = Node::new();
    let old = node.freezes(freezes(part(1, 1), 1), 5, 2);
    let new = part(2, 1);
    node.thaws(freezes(new, 1));
    let failed = Happening::ThawFailed { part: new, reason: "out of memory".into() };
    assert_eq!(node.does(failed), [Act::Kill { part: new }]);
    let ending = ending(&node.killed(old, 0));
    assert_eq!(ending.how, How::Lost);
    assert_eq!(ending.message.as_deref(), Some("its frozen processes could not continue: out of memory"));
}

#[test]
fn who_ends_in_the_drivers_hands_is_judged_by_how() {
    let freezing = |code: Option<i32>, signal: Option<i32>| {
        let mut node = Node::new();
        let id = node.runs(freezes(part(1, 1), 1));
        node.stop(id);
        ending(&node.does(Happening::Exited { part: id, rank: 0, code, signal, starved: None })).how
    };
    assert_eq!(freezing(Some(0), None), How::Finished, "it was done before it was told anything");
    assert_eq!(freezing(Some(1), None), How::Crashed);
    assert_eq!(freezing(None, Some(9)), How::Lost);

    let thawing = |code: Option<i32>, signal: Option<i32>| {
        let mut node = Node::new();
        let old = node.freezes(freezes(part(1, 1), 1), 5, 2);
        node.thaws(freezes(part(2, 1), 1));
        ending(&node.does(Happening::Exited { part: old, rank: 0, code, signal, starved: None })).how
    };
    assert_eq!(thawing(None, Some(11)), How::Lost);
    assert_eq!(thawing(Some(0), None), How::Finished);
}

#[test]
fn ranks_whose_sibling_failed_are_ended_after_the_freeze() {
    for well in [true, false] {
        let mut node = Node::new();
        let id = node.runs(Start { pause: Pause::Freeze, ..start(part(1, 1), 0b11, 2) });
        node.stop(id);
        assert_eq!(node.exits(id, 1, 7), []);
        let acts = if well { node.frozen(id, 1) } else { node.fails(id, true) };
        assert_eq!(acts, [Act::Kill { part: id }]);
        let ending = ending(&node.killed(id, 0));
        assert_eq!((ending.how, ending.code), (How::Crashed, Some(7)));
    }
}

#[test]
fn frozen_jobs_whose_loss_costs_least_make_room() {
    let mut node = Node::new();
    let cheap = node.freezes(freezes(part(1, 1), 0b001), 100, 40);
    let dear = node.freezes(freezes(part(2, 2), 0b010), 500, 40);
    let newcomer = node.runs(freezes(part(3, 3), 0b100));
    node.later(200);
    node.uses(newcomer, 50);
    assert_eq!(node.stop(newcomer), [Act::Drop { part: cheap }, freeze(newcomer)]);
    node.frozen(newcomer, 50);
    assert_eq!(node.holder.frozen_bytes(), 90 * GB);

    let late = node.runs(freezes(part(4, 4), 0b001));
    node.later(150);
    node.uses(late, 50);
    assert_eq!(node.stop(late), [signal(late)], "it has less to lose than either of those");
    assert_eq!(node.holder.paused(), [dear.job, newcomer.job]);
    let ending = ending(&node.killed(late, 0));
    assert!(ending.message.unwrap().contains("memory of this node for frozen jobs is full"));
}

#[test]
fn what_turns_out_larger_than_thought_makes_room_too() {
    let mut node = Node::new();
    let old = node.freezes(freezes(part(1, 1), 0b01), 100, 60);
    let unknown = node.runs(freezes(part(2, 2), 0b10));
    node.later(200);
    assert_eq!(node.stop(unknown), [freeze(unknown)], "it is tried");
    assert_eq!(node.frozen(unknown, 50).last(), Some(&Act::Drop { part: old }));
    assert_eq!(node.holder.frozen_bytes(), 50 * GB);
}

#[test]
fn what_was_run_before_a_freeze_counts_after_it() {
    let mut node = Node::new();
    node.freezes(freezes(part(1, 1), 0b01), 1000, 60);
    let again = part(2, 1);
    node.thaws(freezes(again, 0b01));
    node.does(Happening::Thawed { part: again, took: SECOND });
    let between = node.freezes(freezes(part(3, 2), 0b10), 100, 60);
    assert_eq!(node.stop(again), [Act::Drop { part: between }, freeze(again)]);
}

#[test]
fn a_part_that_cannot_be_paused_is_named_ahead_of_time() {
    let mut node = Node::new();
    let lies = node.freezes(freezes(part(1, 1), 0b01), 5, 60);
    let id = node.runs(Start { pause: Pause::Auto, ..freezes(part(2, 2), 0b10) });
    node.uses(id, 50);
    assert_eq!(tells(&node.later(9)), [], "it may still say its first word");
    assert_eq!(tells(&node.later(1)), [Told::Stuck(true)]);
    assert!(node.holder.parts().contains(&(id, Told::Stuck(true))));
    assert_eq!(node.later(1), [], "once is enough");
    let acts = node.order(Order::Discard { job: lies.job });
    assert_eq!(tells(&acts), [Told::Stuck(false)]);

    let full = node.freezes(freezes(part(4, 4), 0b01), 5, 60);
    assert!(node.holder.parts().contains(&(id, Told::Stuck(true))), "{full:?} took the room");
    let acts = node.does(Happening::Hello { part: id, rank: 0 });
    assert_eq!(tells(&acts), [Told::Stuck(false)], "one that talks can save");
}

#[test]
fn before_it_was_frozen_once_the_cost_is_guessed() {
    let mut node = Node::new();
    let id = node.runs(freezes(part(1, 1), 1));
    let cost = |save: f64, load: f64, bytes: u64| Told::Cost {
        save: Some(Span::from_secs(save)),
        load: Some(Span::from_secs(load)),
        bytes,
    };
    assert_eq!(tells(&node.uses(id, 56)), [cost(28.0, 10.0, 56 * GB)]);
    assert_eq!(node.uses(id, 53), [], "that is about the same");
    assert_eq!(tells(&node.uses(id, 28)), [cost(14.0, 5.0, 28 * GB)]);
    let saves = node.runs(Start { pause: Pause::Checkpoint, ..start(part(2, 2), 2, 1) });
    assert_eq!(node.uses(saves, 50), [], "it is never frozen");
}

#[test]
fn an_agent_that_is_back_goes_on_with_what_was_under_way() {
    let mut node = Node::new();
    let id = node.runs(freezes(part(1, 1), 1));
    node.stop(id);
    assert_eq!(node.does(Happening::Restarted { alive: vec![(id, 0)] }), [freeze(id)]);
    node.frozen(id, 1);
    let again = Act::Freeze { part: id, deep: false };
    assert_eq!(node.does(Happening::Restarted { alive: vec![(id, 0)] }), [again], "only to be sure");
    let new = part(2, 1);
    node.thaws(freezes(new, 1));
    for name in [id, new] {
        let acts = node.does(Happening::Restarted { alive: vec![(name, 0)] });
        assert_eq!(acts, [Act::Thaw { part: id, as_part: new, deep: true }]);
    }
    let acts = node.does(Happening::Thawed { part: new, took: SECOND });
    assert_eq!(tells(&acts)[0], Told::Started);
}

#[test]
fn the_costs_of_a_gang_are_those_of_its_slowest_part() {
    let (mut gangs, id) = (Gangs::default(), part(1, 1));
    grant(&mut gangs, 1, gang(1, &[0, 1]));
    let took = |seconds| Some(Span::from_whole_secs(seconds));
    let cost = |save, load| Told::Cost { save, load, bytes: 5 };
    let costs = |save, load| [GangNews::Costs { save, load }];
    assert_eq!(reports(&told(&mut gangs, 0, id, cost(took(4), took(1)))), costs(took(4), took(1)));
    assert_eq!(reports(&told(&mut gangs, 1, id, cost(took(3), took(2)))), costs(took(4), took(2)));
    assert_eq!(reports(&told(&mut gangs, 1, id, cost(None, took(3)))), costs(took(4), took(3)));
}

#[test]
fn a_gang_is_stuck_while_any_of_its_parts_is() {
    let (mut gangs, id) = (Gangs::default(), part(1, 1));
    grant(&mut gangs, 1, gang(1, &[0, 1]));
    let mut hears = |agent, stuck| reports(&told(&mut gangs, agent, id, Told::Stuck(stuck)));
    assert_eq!(hears(0, true), [GangNews::Stuck(true)]);
    assert_eq!(hears(1, true), []);
    assert_eq!(hears(0, false), []);
    assert_eq!(hears(1, false), [GangNews::Stuck(false)]);
}

#[test]
fn a_gang_of_which_one_part_could_not_be_frozen_keeps_nothing_frozen() {
    let (mut gangs, id) = (Gangs::default(), part(1, 1));
    grant(&mut gangs, 1, gang(1, &[0, 1]));
    for (agent, how) in [(0, How::Paused), (1, How::Saved)] {
        let ending = Ending { how, step: None, code: None, signal: None, message: None };
        told(&mut gangs, agent, id, Told::Ended(ending));
    }
    let mut out = Vec::new();
    gangs.durable(id.lease, id.job, &mut out);
    let discards =
        crate::rules::orders(&out).into_iter().filter(|(_, order)| matches!(order, Order::Discard { .. }));
    assert_eq!(discards.collect::<Vec<_>>(), [(0, Order::Discard { job: id.job })]);
}

#[test]
fn a_job_that_was_done_just_before_it_was_stopped_has_finished() {
    for pause in [Pause::Stop, Pause::Freeze] {
        let mut node = Node::new();
        let id = node.runs(Start { pause, ..start(part(1, 1), 1, 1) });
        node.stop(id);
        node.frozen(id, 1);
        assert_eq!(node.exits(id, 0, 0), []);
        assert_eq!(node.holder.paused(), [JobId(1)]);
        node.does(Happening::Restarted { alive: vec![] });
        let acts = node.thaws(Start { pause, ..start(part(2, 1), 1, 1) });
        assert_eq!(ending(&acts).how, How::Finished, "{acts:?}");
    }
    let mut node = Node::new();
    let id = node.runs(Start { pause: Pause::Stop, ..start(part(1, 1), 1, 1) });
    node.stop(id);
    assert_eq!(node.killed(id, 0), [Act::Drop { part: id }]);
}
