//! How cards are doing, as agents say it and people see it.

use yard_core::part::{How, PartId};
use yard_core::units::Span;

use super::*;
use crate::views::DeviceView;
use crate::wire::{CardNow, FromAgent};

/// A card of the only group.
fn card(device: u32, busy: f64) -> CardNow {
    let (memory_used_mib, temperature_c) = (Some(1024), Some(60));
    CardNow { device, busy: Some(busy), memory_used_mib, temperature_c, ..CardNow::default() }
}

fn device(board: &Board, index: usize) -> DeviceView {
    board.nodes["n1"].devices[index].clone()
}

#[tokio::test]
async fn who_holds_devices_and_uses_none_of_them_is_shown() {
    let rig = Rig::with(|config| config.idle = Span(50_000));
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 3)]).await;
    let id = rig.submit(wide(2)).await.id;
    let part = agent.start_running().await;
    rig.until_state(id, "running").await;
    let mut looked = vec![card(0, 0.0), card(1, 0.0), card(2, 0.0)];
    agent.say(FromAgent::Looked { cards: looked.clone() }).await;
    rig.until("idle", |board| board.jobs[&id].idle_s.is_some()).await;
    let reason = rig.job(id).unwrap().reason.unwrap();
    assert!(reason.starts_with("has not used its 2 devices for "), "{reason}");
    agent.say(FromAgent::Looked { cards: looked.clone() }).await;
    rig.until("idle devices", |board| device(board, 1).idle_jobs == [id]).await;
    let (held, free) = rig.look(|board| (device(board, 0), device(board, 2)));
    assert_eq!((held.idle_jobs, held.busy, held.memory_used_mib), (vec![id], Some(0.0), Some(1024)));
    assert_eq!((free.idle_jobs, free.temperature_c), (vec![], Some(60)), "nobody holds it");
    // One of the two works: the job does.
    looked[1].busy = Some(0.5);
    agent.say(FromAgent::Looked { cards: looked }).await;
    rig.until("busy", |board| board.jobs[&id].idle_s.is_none() && board.jobs[&id].reason.is_none()).await;
    // What is not heard of any more is not known.
    agent.disconnect().await;
    rig.until("nothing is known", |board| device(board, 0).busy.is_none()).await;
    agent.connect(&rig.handle).await.unwrap();
    agent.end(part, How::Finished, Some(0)).await;
    agent.forget_of(part).await;
    assert_eq!(rig.until_state(id, "succeeded").await.idle_s, None);
}

#[tokio::test]
async fn what_a_job_uses_is_believed_of_its_own_agent_only_and_survives() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let other = Agent::join(&rig.handle, "n2", &[("cpu", 1)]).await;
    let id = rig.submit(JobRequest { kinds: vec!["a100".into()], ..job(0.0, 0) }).await.id;
    let part = agent.start_running().await;
    rig.until_state(id, "running").await;
    let used = |part: PartId, busy: f64| FromAgent::Used { part, busy, memory_mib: 3 };
    for nonsense in [f64::NAN, f64::INFINITY, -1.0, 1.5] {
        agent.say(used(part, nonsense)).await;
    }
    other.say(used(part, 0.25)).await;
    let mine = |view: yard_core::view::View| {
        let row = view.active().find(|row| view.run(*row).id == JobId(id));
        row.and_then(|row| view.run(row).usage).map(|usage| usage.busy)
    };
    let view = || rig.handle.ask(|reply| Ask::View { reply });
    assert_eq!(mine(view().await.unwrap()), None);
    agent.say(used(part, 0.75)).await;
    while mine(view().await.unwrap()) != Some(0.75) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Nothing of the nonsense is in the journal, or it could not be read.
    let rig = Rig::at(rig.stop(&[]).await, |_| ());
    let view = rig.handle.ask(|reply| Ask::View { reply }).await.unwrap();
    assert_eq!(mine(view), Some(0.75));
}
