//! Jobs that write more than anybody wants to keep.

use super::*;

/// Bytes on disk of a log and what was moved aside of it.
fn on_disk(bench: &Bench) -> u64 {
    let size = |name: &str| std::fs::metadata(bench.folder.path().join(name)).map_or(0, |file| file.len());
    size("0.out") + size("0.out.1")
}

#[tokio::test]
async fn a_job_that_floods_its_log_cannot_outrun_the_rotation() {
    let mut bench = Bench::new().await;
    bench.start(1, &[&["sh", "-c", "timeout 3 yes; seq 1000000 1000100; echo the end"]]);
    let mut most = 0;
    let exit = loop {
        most = most.max(on_disk(&bench));
        if let Ok(exit) = tokio::time::timeout(Duration::from_millis(5), bench.exit()).await {
            break exit;
        }
    };
    assert_eq!(exit, (1, 0, code(0)));
    assert!(most > LOG_MAX && most <= 2 * LOG_MAX, "{most} bytes");
    let log = std::fs::read_to_string(bench.folder.path().join("0.out")).unwrap();
    assert!(log.ends_with("1000099\n1000100\nthe end\n"), "{:?}", &log[log.len().saturating_sub(50)..]);
}

#[tokio::test]
async fn all_that_a_rank_wrote_is_on_file_before_its_end_is_told() {
    let mut bench = Bench::new().await;
    for number in 1..=30 {
        bench.start(number, &[&["sh", "-c", &format!("seq 1 5000; echo end {number}")]]);
        assert_eq!(bench.exit().await, (number, 0, code(0)));
        let log = std::fs::read_to_string(bench.folder.path().join("0.out")).unwrap();
        assert!(log.ends_with(&format!("5000\nend {number}\n")));
    }
}

#[tokio::test]
async fn a_child_that_keeps_the_output_open_does_not_hold_up_the_end() {
    let mut bench = Bench::new().await;
    // One that is found by its mark, and one that hides it and goes on writing.
    bench.start(2, &[&["sleep", "600"]]);
    let script = "setsid sleep 601 & (env -i PATH=$PATH setsid sh -c 'while :; do echo still here; done' &) ; echo last words; exit 4";
    bench.start(1, &[&["sh", "-c", script]]);
    assert_eq!(bench.exit().await, (1, 0, code(4)));
    assert!(bench.read("0.out").await.contains("last words"));
    bench.ask(&KeeperAsk::Kill { part: part(2) });
    assert_eq!(bench.exit().await, (2, 0, killed(Signal::SIGKILL)));
}

#[tokio::test]
async fn an_agent_that_does_not_listen_is_cut_off_and_the_next_hears_everything() {
    let mut bench = Bench::new().await;
    bench.start(1, &[&["sleep", "600"]]);
    bench.hear().await;
    let mut deaf =
        std::os::unix::net::UnixStream::connect(super::super::socket(&bench.folder.path().join("k")))
            .unwrap();
    deaf.set_write_timeout(Some(PATIENCE)).unwrap();
    // It asks and never reads, until the keeper has had enough.
    let question = super::super::line(&KeeperAsk::List).repeat(100);
    let cut_off = (0..100_000).any(|_| deaf.write_all(&question).is_err());
    assert!(cut_off);
    bench.reconnect().await;
    let Say::Parts { alive, .. } = bench.list().await else { unreachable!() };
    assert_eq!(alive, [(part(1), 0)]);
    bench.ask(&KeeperAsk::Kill { part: part(1) });
    assert_eq!(bench.exit().await, (1, 0, killed(Signal::SIGKILL)));
}
