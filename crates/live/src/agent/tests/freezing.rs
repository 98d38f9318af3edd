//! Freezing and thawing with real processes, a real keeper and a freezer whose driver only pretends.

use std::path::PathBuf;

use super::*;

/// A job that waits for the file `go` and ends with this code. It dies of its signal.
const WAITS: &str = "echo $$ > pid; while [ ! -e go ]; do sleep 0.01; done; exit 4";

impl Stage {
    fn freezer(&self, name: &str) -> PathBuf {
        self.folder.path().join("a/freezer").join(name)
    }

    fn driver(&self, settings: &str) {
        std::fs::write(self.freezer("settings.json"), settings).unwrap();
    }

    /// Runs the job and tells it to stop for another one.
    async fn freeze(&mut self) {
        self.run(freezes(1), self.script(WAITS));
        self.read("pid").await;
        self.started().await;
        self.order(Order::Stop { part: part(1, 1), why: Why::Preempted }, None);
    }

    fn thaw(&self) {
        let start = Start { thaw: true, ..freezes(2) };
        self.run(start, self.script(WAITS));
    }

    async fn ends_well(&mut self) {
        std::fs::write(self.folder.path().join("go"), "").unwrap();
        let (id, ending) = self.ended().await;
        assert_eq!((id, ending.code), (part(2, 1), Some(4)), "{ending:?}");
    }

    /// What the kernel says of the job's process: stopped, or held in the middle of a vfork by a child that is.
    async fn is_stopped(&self) -> bool {
        let pid = self.read("pid").await;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains(") T ") || stat.contains(") D ")
    }

    /// What the driver says of it.
    async fn driver_says(&self) -> Option<String> {
        std::fs::read_to_string(self.freezer(&self.read("pid").await)).ok()
    }
}

fn freezes(lease: u64) -> Start {
    let mut start = start(lease, 1);
    start.pause = Pause::Freeze;
    start
}

#[tokio::test]
async fn a_frozen_job_goes_on_where_it_was_also_after_the_agents_death() {
    let mut stage = Stage::new("h100:1").await;
    stage.driver(r#"{"bytes": 5000000, "delay_ms": 20}"#);
    stage.freeze().await;
    let cost = |told: &Told| match told {
        Told::Cost { save: Some(_), load: None, bytes } => Some(*bytes),
        _ => None,
    };
    // The shell, and what it was just running.
    assert!([5_000_000, 10_000_000].contains(&stage.told(cost).await.1));
    assert_eq!(stage.ended().await.1.how, How::Paused);
    while !stage.is_stopped().await {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(stage.driver_says().await.as_deref(), Some("checkpointed"));
    stage.kill_agent().await;
    assert_eq!(stage.begin("h100:1").await.paused, [JobId(1)]);
    stage.thaw();
    assert_eq!(stage.started().await, part(2, 1));
    stage.told(|told| matches!(told, Told::Cost { save: None, load: Some(_), .. }).then_some(())).await;
    assert_eq!(stage.driver_says().await, None);
    stage.ends_well().await;
}

#[tokio::test]
async fn where_the_driver_fails_the_job_is_stopped_the_next_way() {
    for call in ["lock", "checkpoint"] {
        let mut stage = Stage::new("h100:1").await;
        stage.driver(&format!(r#"{{"fail": "{call}", "forever": true}}"#));
        stage.freeze().await;
        let ending = stage.ended().await.1;
        assert_eq!((ending.how, ending.signal), (How::Saved, Some(15)), "{ending:?}");
        assert!(ending.message.unwrap().starts_with("it could not be frozen and was stopped instead: "));
        assert_eq!(stage.driver_says().await, None, "it was unlocked after {call}");
    }
}

#[tokio::test]
async fn a_job_that_cannot_be_thawed_is_lost_and_ended() {
    for call in ["restore", "unlock"] {
        let mut stage = Stage::new("h100:1").await;
        stage.freeze().await;
        assert_eq!(stage.ended().await.1.how, How::Paused);
        stage.driver(&format!(r#"{{"fail": "{call}"}}"#));
        stage.thaw();
        let (id, ending) = stage.ended().await;
        assert_eq!((id, ending.how), (part(2, 1), How::Lost), "{ending:?}");
        assert!(ending.message.unwrap().starts_with("its frozen processes could not continue"));
    }
}

#[tokio::test]
async fn a_freezer_that_crashes_is_followed_by_one_that_goes_on() {
    for (freeze, thaw) in [("lock", "restore"), ("checkpoint", "unlock")] {
        let mut stage = Stage::new("h100:1").await;
        stage.driver(&format!(r#"{{"crash": "{freeze}"}}"#));
        stage.freeze().await;
        assert_eq!(stage.ended().await.1.how, How::Paused);
        assert!(!stage.freezer("settings.json").exists(), "it did crash");
        stage.driver(&format!(r#"{{"crash": "{thaw}"}}"#));
        stage.thaw();
        assert_eq!(stage.started().await, part(2, 1));
        assert!(!stage.freezer("settings.json").exists(), "it did crash");
        stage.ends_well().await;
    }
}

#[tokio::test]
async fn an_agent_that_dies_meanwhile_finishes_what_was_under_way() {
    let mut stage = Stage::new("h100:1").await;
    stage.driver(r#"{"delay_ms": 300}"#);
    stage.freeze().await;
    while stage.driver_says().await.is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stage.kill_agent().await;
    stage.begin("h100:1").await;
    assert_eq!(stage.ended().await.1.how, How::Paused);
    stage.thaw();
    stage.told(|told| (*told == Told::Accepted).then_some(())).await;
    stage.kill_agent().await;
    stage.begin("h100:1").await;
    assert_eq!(stage.started().await, part(2, 1));
    stage.ends_well().await;
}

#[tokio::test]
async fn a_job_that_dies_while_it_is_frozen_is_not_waited_for() {
    let mut stage = Stage::new("h100:1").await;
    stage.freeze().await;
    assert_eq!(stage.ended().await.1.how, How::Paused);
    let pid: i32 = stage.read("pid").await.parse().unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).unwrap();
    std::fs::remove_file(stage.folder.path().join("pid")).unwrap();
    let mut again = freezes(2);
    again.thaw = true;
    while std::path::Path::new(&format!("/proc/{pid}")).exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stage.run(again, stage.script(WAITS));
    stage.read("pid").await;
    stage.ends_well().await;
}

#[tokio::test]
async fn a_node_says_what_it_can_freeze() {
    let mut stage = Stage::new("h100:1").await;
    stage.kill_agent().await;
    let hello = stage.begin("h100:1").await;
    assert_eq!(hello.abilities.no_freeze, None);
    assert!(hello.abilities.freeze_room_mib > 0);
}

#[tokio::test]
async fn what_a_job_holds_on_all_its_cards_is_what_freezing_it_would_cost() {
    let mut stage = Stage::new("h100:2").await;
    let card = r#"{"jobs": {"1": {"memory_mib": 1000}}}"#;
    let cards = format!(r#"{{"cards": {{"h100:0": {card}, "h100:1": {card}}}}}"#);
    std::fs::write(stage.folder.path().join("a/fake-cards.json"), cards).unwrap();
    let mut both = freezes(1);
    both.devices[0].mask = 0b11;
    stage.run(both, stage.script(WAITS));
    let guess = |told: &Told| match told {
        Told::Cost { save: Some(save), load: Some(load), bytes } if save > load => Some(*bytes),
        _ => None,
    };
    assert_eq!(stage.told(guess).await, (part(1, 1), 2000 << 20));
}
