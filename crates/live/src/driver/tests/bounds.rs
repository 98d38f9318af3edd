//! What fills up: logs that nobody reads, orders that a node does not take, jobs of a user who submits without end.

use futures_util::future::join_all;
use tokio::sync::mpsc;
use yard_core::part::{Ending, How, Told};
use yard_core::units::Time;

use super::*;
use crate::exec::agents::AgentCall;
use crate::handle::{LogOf, LogRequest, LogStream};
use crate::wire::{FromAgent, Hello, LOG_CREDIT, LOG_PIECE, ToAgent};

/// A job that is over on an agent, which has its log.
async fn with_log(rig: &Rig) -> (Agent, u64) {
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(job(0.0, 0)).await.id;
    let part = agent.start().await;
    agent.end(part, How::Finished, Some(0)).await;
    agent.forget_of(part).await;
    rig.until_state(id, "succeeded").await;
    (agent, id)
}

async fn read(rig: &Rig, agent: &mut Agent, id: u64) -> LogStream {
    let log = LogRequest { job: JobId(id), rank: 0, of: LogOf::Stdout, tail: None, follow: true };
    let stream = rig.handle.ask(|reply| Ask::Logs { who: who("ann"), log, reply }).await.unwrap();
    let Some(ToAgent::Logs { request, .. }) = agent.receive().await else { panic!("it is asked for a log") };
    assert_eq!(request, stream.request);
    stream
}

async fn piece(agent: &Agent, request: u64) {
    let text = "x".repeat(LOG_PIECE);
    agent.say(FromAgent::Logs { request, text, end: false, error: None }).await;
}

/// An agent that keeps to its credit and sends as fast as it may, to three readers who stand still and one who reads.
#[tokio::test]
async fn slow_readers_of_a_log_cost_no_more_than_the_credit() {
    let rig = Rig::new();
    let (mut agent, id) = with_log(&rig).await;
    let mut still = Vec::new();
    for _ in 0..3 {
        still.push(read(&rig, &mut agent, id).await);
    }
    let mut reader = read(&rig, &mut agent, id).await;
    for _ in 0..LOG_CREDIT {
        for stream in still.iter().chain([&reader]) {
            piece(&agent, stream.request).await;
        }
    }
    for _ in 0..20 {
        for _ in 0..LOG_CREDIT {
            assert!(reader.pieces.recv().await.is_some_and(|piece| piece.is_ok()));
        }
        let more = Ask::LogsMore { request: reader.request, pieces: LOG_CREDIT };
        rig.handle.asks.send(more).await.unwrap();
        let granted = agent.receive().await.unwrap();
        assert_eq!(granted, ToAgent::LogsMore { request: reader.request, pieces: LOG_CREDIT });
        for _ in 0..LOG_CREDIT {
            piece(&agent, reader.request).await;
        }
    }
    for stream in &still {
        assert_eq!(stream.pieces.len(), LOG_CREDIT as usize, "and nobody granted more");
    }
}

#[tokio::test]
async fn an_agent_that_ignores_its_credit_is_cut_off() {
    let rig = Rig::new();
    let (mut agent, id) = with_log(&rig).await;
    let mut still = read(&rig, &mut agent, id).await;
    for _ in 0..50 * LOG_CREDIT {
        piece(&agent, still.request).await;
    }
    let ended = agent.receive().await.unwrap();
    assert_eq!(ended, ToAgent::LogsEnd { request: still.request });
    let kept = still.pieces.len();
    assert_eq!(kept, LOG_CREDIT as usize + 1, "the pieces it may send, and why there are no more");
    let mut all = Vec::new();
    while let Some(piece) = still.pieces.recv().await {
        all.push(piece);
    }
    assert!(all.pop().is_some_and(|last| last.is_err_and(|why| why.contains("more of the log"))));
    assert!(all.iter().all(Result::is_ok));
}

/// An agent that says much and takes nothing: what waits for it has an end, and it can come back.
#[tokio::test]
async fn an_agent_that_takes_no_orders_is_disconnected_and_may_come_back() {
    let rig = Rig::new();
    let mut agent = Agent::new("n1", &[("a100", 1)]);
    let (link, mut inbox) = mpsc::channel(4);
    let hello = Box::new(Hello { ..agent.hello.clone() });
    let connection = rig.handle.ask(|reply| AgentCall::Connect { hello, link, reply }.into()).await.unwrap();
    // It beats all the time, so that it is not silence for which it is disconnected.
    let asks = rig.handle.asks.clone();
    let beats = tokio::spawn(async move {
        for seq in 0.. {
            let message = FromAgent::Beat { seq };
            asks.send(AgentCall::From { connection, message, room: None }.into()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    rig.until_node("n1", "unreachable").await;
    let mut waiting = 0;
    while tokio::time::timeout(PATIENCE, inbox.recv()).await.expect("the link is closed").is_some() {
        waiting += 1;
    }
    assert_eq!(waiting, 4, "no more than there was room for, and no gap before the end");
    beats.abort();
    agent.connect(&rig.handle).await.unwrap();
    rig.until_node("n1", "up").await;
    rig.submit(job(0.0, 0)).await;
    agent.start().await;
}

fn long() -> JobRequest {
    let command = vec!["run".into(), "0".into(), "0".into(), "x".repeat(62 << 10)];
    JobRequest { command, gpus: Some(1), ..JobRequest::default() }
}

/// With the limits that a server has: what one user submitted takes 24 MiB at most.
#[tokio::test]
async fn what_one_user_submits_has_a_size_and_others_still_submit() {
    let rig = Rig::new();
    let _agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let most = crate::driver::DriverLimits::default().bytes_per_user;
    let fit = most / long().footprint();
    let answers = join_all((0..fit + 50).map(|_| rig.try_submit("ann", long(), None))).await;
    let taken = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(taken, fit, "exactly as many as fit");
    let used = fit * long().footprint();
    for refused in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        let Refusal::TooMany(why) = refused else { panic!("{refused:?}") };
        assert!(why.contains(&format!("use {used} of at most {most} bytes")), "{why}");
        assert!(why.contains("--user-bytes-max"), "{why}");
    }
    rig.try_submit("bob", long(), None).await.expect("others go on");
    let dir = rig.stop(&[]).await;
    let rig = Rig::at(dir, |_| ());
    let still = rig.try_submit("ann", long(), None).await;
    assert!(matches!(still, Err(Refusal::TooMany(_))), "also after a restart: {still:?}");
    rig.cancel("ann", 5).await.unwrap();
    rig.try_submit("ann", long(), None).await.expect("what is over does not count");
}

#[tokio::test]
async fn what_an_agent_says_of_an_ending_is_kept_up_to_a_length() {
    let rig = Rig::new();
    let mut agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let id = rig.submit(JobRequest { max_restarts: Some(0), ..job(0.0, 0) }).await.id;
    let part = agent.start_running().await;
    let message = Some("é".repeat(1 << 20));
    let ending = Ending { how: How::Crashed, step: None, code: Some(1), signal: None, message };
    agent.tell(part, Told::Ended(ending)).await;
    let reason = rig.until_state(id, "failed").await.reason.unwrap();
    assert!(reason.starts_with("éé") && reason.len() < 5_000, "{} bytes", reason.len());
}

/// What a question about the past reads is bounded by bytes, not only by jobs.
#[tokio::test]
async fn a_question_about_the_past_does_not_read_more_than_memory_holds() {
    let rig = Rig::with(|config| (config.limits.bytes_per_user, config.limits.bytes) = (1 << 40, 1 << 40));
    let _agent = Agent::join(&rig.handle, "n1", &[("a100", 1)]).await;
    let words = JobRequest { command: vec!["x".into(); 6_000], ..job(0.0, 0) };
    let count = crate::history::RECORDED_BYTES_MAX / words.footprint() + 1;
    for answer in join_all((0..count).map(|_| rig.try_submit("ann", words.clone(), None))).await {
        answer.unwrap();
    }
    let all = Time(u64::MAX / 4);
    assert!(rig.history().recorded(Time::ZERO, all, 50_000).unwrap().is_none());
    assert_eq!(rig.history().recorded(Time::ZERO, all, 100).unwrap().map(|jobs| jobs.len()), Some(100));
}
