//! Jobs that their users hold, release, have started again, and edit.

use yard_core::part::How;

use super::*;
use crate::handle::Steering;
use crate::request::edit::JobEdit;

impl Rig {
    async fn steer(&self, who: Who, job: u64, steering: Steering) -> Result<JobView, Refusal> {
        self.handle.ask(|reply| Ask::Steer { who, job: JobId(job), steering, reply }).await
    }

    /// A job that waits because its node takes no jobs.
    async fn waits(&self) -> (Agent, u64) {
        let agent = Agent::join(&self.handle, "n1", &[("a100", 1)]).await;
        self.drain("n1", true).await.unwrap();
        (agent, self.submit(job(0.0, 0)).await.id)
    }

    pub(super) async fn hold(&self, user: &str, job: u64) -> Result<JobView, Refusal> {
        self.steer(who(user), job, Steering::Hold { reason: Some("bad data".into()) }).await
    }

    pub(super) async fn release(&self, user: &str, job: u64) -> Result<JobView, Refusal> {
        self.steer(who(user), job, Steering::Release).await
    }

    async fn edit(&self, user: &str, job: u64, edit: JobEdit) -> Result<JobView, Refusal> {
        self.steer(who(user), job, Steering::Edit(Box::new(edit))).await
    }
}

fn root() -> Who {
    Who { user: "root".into(), admin: true }
}

fn named(name: &str) -> JobEdit {
    JobEdit { name: Some(name.into()), ..JobEdit::default() }
}

fn said(answer: Result<JobView, Refusal>) -> String {
    answer.expect_err("it is refused").to_string()
}

#[tokio::test]
async fn a_job_that_waits_is_held_through_a_restart_until_it_is_released() {
    let rig = Rig::new();
    let (agent, id) = rig.waits().await;
    let view = rig.hold("ann", id).await.unwrap();
    let shown = (view.state.as_str(), view.held_by.as_deref(), view.reason.as_deref());
    assert_eq!(shown, ("pending", Some("ann"), Some("held by ann: bad data")));
    drop(agent);
    let dir = rig.stop(&[]).await;
    let rig = Rig::at(dir, |_| ());
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    rig.drain("n1", false).await.unwrap();
    let other = rig.submit(job(0.0, 0)).await.id;
    let part = agent.start().await;
    assert_eq!(part.job.0, other, "the older one is held");
    let view = rig.job(id).unwrap();
    assert_eq!((view.held_by.as_deref(), view.estimate), (Some("ann"), None));
    let told = rig.handle.ask(|reply| Ask::Explain { job: JobId(id), reply }).await.unwrap();
    assert_eq!(
        (told.reason.as_str(), told.remedies),
        ("held", vec![format!("release it: yard release {id}")])
    );
    assert!(told.text.contains("held by ann: bad data"), "{}", told.text);
    agent.end(part, How::Finished, Some(0)).await;
    agent.forget_of(part).await;
    assert_eq!(rig.release("ann", id).await.unwrap().held_by, None);
    assert_eq!(agent.start().await.job.0, id);
    assert!(said(rig.release("ann", id).await).contains("is not held"));
}

#[tokio::test]
async fn a_job_that_runs_is_paused_and_goes_on_once_it_is_released() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(job(0.0, 0)).await.id;
    let part = agent.start_running().await;
    rig.until_state(id, "running").await;
    let view = rig.hold("ann", id).await.unwrap();
    assert_eq!(
        (view.state.as_str(), view.reason.as_deref()),
        ("suspending", Some("stopping: held by ann: bad data"))
    );
    agent.stop_of(part).await;
    agent.end(part, How::Saved, Some(0)).await;
    agent.forget_of(part).await;
    let view = rig.until_state(id, "suspended").await;
    assert_eq!((view.reason.as_deref(), view.preemptions), (Some("held by ann: bad data"), 0));
    rig.drain("n1", true).await.unwrap();
    let view = rig.release("ann", id).await.unwrap();
    assert_eq!(view.reason.as_deref(), Some("no a100 node is up"), "who held it is no reason any more");
    rig.drain("n1", false).await.unwrap();
    let part = agent.start().await;
    assert_eq!((part.job.0, part.instance), (id, 2));
    let names: Vec<_> = rig.events_of(id, "granted").await.into_iter().map(|event| event.event).collect();
    assert_eq!(names[3..], ["held", "stopping", "stopped", "released", "granted"]);
}

#[tokio::test]
async fn what_an_administrator_holds_only_an_administrator_releases() {
    let rig = Rig::new();
    let (_agent, id) = rig.waits().await;
    assert!(matches!(rig.hold("bob", id).await, Err(Refusal::NotFound(_))), "it is not bob's");
    rig.hold("ann", id).await.unwrap();
    rig.steer(root(), id, Steering::Hold { reason: None }).await.unwrap();
    assert_eq!(rig.job(id).unwrap().reason.as_deref(), Some("held by root"));
    let refused = rig.release("ann", id).await;
    assert!(matches!(refused, Err(Refusal::Forbidden(_))), "{refused:?}");
    assert!(said(refused).contains("only an administrator can release it"));
    assert!(said(rig.hold("ann", id).await).contains("held already, by root"));
    assert_eq!(rig.steer(root(), id, Steering::Release).await.unwrap().held_by, None);
    // Side by side, so that they may be in one batch: the later word of the user does not take the place of the other.
    let (first, second) =
        tokio::join!(rig.steer(root(), id, Steering::Hold { reason: None }), rig.hold("ann", id));
    assert!(first.is_ok() && second.is_err(), "{second:?}");
    assert!(matches!(rig.release("ann", id).await, Err(Refusal::Forbidden(_))));
}

#[tokio::test]
async fn a_job_that_runs_starts_again_and_others_are_refused_with_what_to_do() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(job(0.0, 0)).await.id;
    let part = agent.start_running().await;
    rig.until_state(id, "running").await;
    assert!(matches!(rig.steer(who("bob"), id, Steering::Requeue).await, Err(Refusal::NotFound(_))));
    let view = rig.steer(who("ann"), id, Steering::Requeue).await.unwrap();
    assert_eq!(view.state, "suspending");
    agent.stop_of(part).await;
    agent.end(part, How::Saved, Some(0)).await;
    agent.forget_of(part).await;
    let part = agent.start().await;
    assert_eq!((part.job.0, part.instance), (id, 2));
    let waiting = rig.submit(job(0.0, 0)).await.id;
    assert!(said(rig.steer(who("ann"), waiting, Steering::Requeue).await).contains("is waiting already"));
    agent.end(part, How::Finished, Some(0)).await;
    rig.until_state(id, "succeeded").await;
    let over = said(rig.steer(who("ann"), id, Steering::Requeue).await);
    assert!(over.contains("is over already: succeeded") && over.contains("submit it again"), "{over}");
}

#[tokio::test]
async fn a_job_that_may_not_be_paused_is_not_held_where_it_runs() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let bound = JobRequest { pause: yard_core::part::Pause::Never, ..job(0.0, 0) };
    let id = rig.submit(bound).await.id;
    agent.start_running().await;
    rig.until_state(id, "running").await;
    assert!(said(rig.hold("ann", id).await).contains("cannot be paused"));
}

#[tokio::test]
async fn what_waits_can_be_edited_and_the_rest_says_why_not() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let running = rig.submit(job(0.0, 0)).await.id;
    let part = agent.start_running().await;
    rig.until_state(running, "running").await;
    let [first, second] = [rig.submit(job(0.0, 0)).await.id, rig.submit(job(0.0, 0)).await.id];
    let change = JobEdit {
        priority: Some(7),
        duration_s: Some(Some(60.0)),
        time_limit_s: Some(Some(90.0)),
        ..named("soon")
    };
    let view = rig.edit("ann", second, change).await.unwrap();
    assert_eq!((view.name.as_str(), view.priority), ("soon", 7));
    let (one, other) =
        tokio::join!(rig.edit("ann", first, named("one")), rig.edit("ann", first, named("other")));
    let last = if other.is_ok() { "other" } else { "one" };
    assert_eq!(
        (one.is_ok(), rig.job(first).unwrap().name.as_str()),
        (true, last),
        "in one batch, or after each other"
    );
    assert!(matches!(rig.edit("bob", second, named("mine")).await, Err(Refusal::NotFound(_))));
    assert!(said(rig.edit("ann", running, named("late")).await).contains("yard hold"));
    assert!(said(rig.edit("ann", first, named("a/b")).await).contains("slash"));
    agent.end(part, How::Finished, Some(0)).await;
    agent.forget_of(part).await;
    let part = agent.start().await;
    assert_eq!(part.job.0, second, "it goes before the older one now");
    let (start, task) = &agent.tasks[&part];
    assert_eq!((task.name.as_str(), start.limit), ("soon", Some(Span::from_whole_secs(90))));
    let dir = rig.stop(&[]).await;
    let rig = Rig::at(dir, |_| ());
    let view = rig.look(|board| board.jobs[&second].clone());
    assert_eq!((view.name.as_str(), view.priority), ("soon", 7), "after a restart");
}

#[tokio::test]
async fn what_was_promised_stays_as_it_was_planned_until_it_is_given_up() {
    let rig = Rig::with(|config| config.settings.promises = true);
    let _agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let now = crate::clock::now_us() as f64 / 1e6;
    let busy = JobRequest { duration_s: Some(100.0), pause: yard_core::part::Pause::Never, ..job(0.0, 0) };
    rig.submit(busy).await;
    let due = JobRequest { duration_s: Some(60.0), deadline: Some(now + 5_000.0), ..job(0.0, 0) };
    let id = rig.submit(due).await.id;
    assert!(rig.job(id).unwrap().promise.is_some());
    let later = JobEdit { deadline: Some(Some(now + 9_000.0)), ..JobEdit::default() };
    assert!(said(rig.edit("ann", id, later.clone()).await).contains("is promised"));
    let longer = JobEdit { duration_s: Some(Some(600.0)), ..JobEdit::default() };
    assert!(said(rig.edit("ann", id, longer).await).contains("is promised"));
    let held = rig.hold("ann", id).await.unwrap();
    assert!(held.promise.is_none() && held.warnings[0].contains("is cancelled"), "{held:?}");
    let view = rig.edit("ann", id, later).await.unwrap();
    assert_eq!(view.deadline, Some(now + 9_000.0));
    assert!(view.warnings[0].contains("best effort"), "{:?}", view.warnings);
}
