#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::path::PathBuf;

use super::*;
use crate::throughput::{ThroughputError, Throughputs};

/// A folder with one application.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &str)]) -> Folder {
        let folder = std::env::temp_dir().join(format!("yard-sia-{}-{name}", std::process::id()));
        std::fs::create_dir_all(folder.join("app")).unwrap();
        files.iter().for_each(|(file, text)| std::fs::write(folder.join("app").join(file), text).unwrap());
        Folder(folder)
    }

    fn open(&self) -> Result<Throughputs, ThroughputError> {
        Throughputs::open(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const RUNS: [(&str, &str); 2] = [
    ("validation-8.csv", "progress,iteration,metric,grad_sqr,grad_var\n100,100,0.5,1,3\n220,210,0.6,1,5\n"),
    ("validation-32.csv", "progress,iteration,metric,grad_sqr,grad_var\n104,40,0.5,2,7\n210,80,0.6,1,9\n"),
];

const PLACED: (&str, &str) = (
    "placements-aws.csv",
    "placement,local_bsz,step_time,sync_time\n1,4,1.0,0.1\n1,8,2.0,0.1\n4,4,1.5,0.5\n4,8,2.5,0.5\n24,4,3,1\n44,4,4,2\n",
);

const SCALED: (&str, &str) =
    ("scalability-aws.csv", "num_nodes,num_replicas,local_bsz,step_time,sync_time\n4,16,4,8,6\n4,8,4,6,5\n");

#[test]
fn runs_say_how_much_a_step_is_worth() {
    let folder = Folder::new("runs", &[RUNS[0], RUNS[1], PLACED]);
    let table = folder.open().unwrap();
    let app = table.app("app").unwrap();
    assert_eq!((app.epochs(), app.batches()), (&[100.0, 210.0][..], [8, 32]));
    assert_eq!(app.noise(20.0, 0), Noise { sqr: 1.5, var: 5.0 });
    assert_eq!(app.noise(1000.0, 1), Noise { sqr: 1.0, var: 9.0 });
    // (5 + 1.5) / (5 / 2.5 + 1.5)
    assert_eq!((app.gain(8.0, 0), app.gain(20.0, 0)), (1.0, 6.5 / 3.5));
    assert_eq!(app.steps_of(8), 210.0);
    assert_eq!((app.start(), app.slowdown()), (Span::from_whole_secs(30), 1.0));
}

#[test]
fn times_are_linear_between_what_was_measured() {
    let folder = Folder::new("times", &[RUNS[0], RUNS[1], PLACED, SCALED]);
    let table = folder.open().unwrap();
    let timings = table.app("app").unwrap().timings("T4").unwrap();
    assert_eq!((timings.least, timings.most, timings.nodes_max()), (4, 8, 4));
    assert_eq!(timings.at(&[1], 6.0), [1.5, 0.1]);
    assert_eq!(timings.at(&[1], 10.0), [2.5, 0.1]);
    // The same way round is the same placement.
    assert_eq!(timings.at(&[4, 2], 4.0), timings.at(&[2, 4], 4.0));
    // Three whole nodes lie between two and four of them; beyond four nothing changes but the devices.
    assert_eq!(timings.at(&[4, 4, 4], 4.0), [6.0, 4.0]);
    assert_eq!(timings.at(&[4; 5], 4.0), [9.0, 6.5]);
}

#[test]
fn batches_are_split_over_devices_and_micro_steps() {
    assert_eq!(split(100, 4, 64), Batch { local: 25, extra: 0 });
    assert_eq!(split(100, 1, 64), Batch { local: 50, extra: 1 });
    assert_eq!(split(2, 4, 64), Batch { local: 1, extra: 0 });
}

#[test]
fn what_is_wrong_is_named() {
    let said = |name: &str, placed: &str| {
        let folder = Folder::new(name, &[RUNS[0], ("placements-rtx.csv", placed)]);
        let error = folder.open().unwrap_err().to_string();
        error.split_once("app").unwrap().1.trim_start_matches(['/', '\\']).to_owned()
    };
    assert_eq!(
        said("column", "placement,local_bsz,step_time\n1,4,1\n"),
        "placements-rtx.csv: the header has no column sync_time; it has: placement, local_bsz, step_time"
    );
    assert_eq!(
        said("placement", "placement,local_bsz,step_time,sync_time\n102,4,1,0\n"),
        "placements-rtx.csv, line 2, field placement: \"102\" is none; a placement is a digit from 1 to 9 for each node"
    );
    assert_eq!(
        said("step", "placement,local_bsz,step_time,sync_time\n1,4,0,0\n"),
        "placements-rtx.csv, line 2, field step_time: \"0\" is zero; a step takes seconds, at most 1e6"
    );
}
