//! The first seeds of `yard fuzz`, with every test run, and seeds that follow from the commit, so that every change
//! tries new ones. A failure names its seed and how to repeat it (`make fuzz SEED=n`, or `yard fuzz --seed n --count 1`
//! on any build); the same seed fails the same way.

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::Dir;
use sha2::{Digest, Sha256};

#[test]
fn invariants_hold_on_the_first_seeds() {
    let answer = Dir::new().yard("fuzz --seed 0 --count 400");
    assert_eq!(answer.code, Some(0), "{}", answer.out);
    assert!(answer.out.starts_with("400 seeds from 0: "), "{}", answer.out);
    assert!(answer.out.ends_with("; every invariant held\n"), "{}", answer.out);
}

/// Seconds that the seeds of the commit get.
const SECONDS: u32 = 10;

#[test]
fn invariants_hold_on_seeds_that_follow_from_the_commit() {
    let (seed, from) = seed_of_the_sources();
    let line = format!("fuzz --seed {seed} --seconds {SECONDS}");
    let answer = Dir::new().yard(&line);
    // Said whether it holds or not: past the test harness, which keeps what a passing test prints.
    let said = format!("yard {line} ({from}): {}", answer.err.lines().last().unwrap_or_default());
    writeln!(std::io::stderr(), "{said}").expect("stderr can be written");
    assert_eq!(answer.code, Some(0), "{said}\n{}", answer.out);
    let tried = answer.out.split(' ').next().and_then(|count| count.parse::<u32>().ok());
    assert!(tried > Some(0), "{}", answer.out);
}

/// A seed from the commit, or from the sources where there is no git.
fn seed_of_the_sources() -> (u64, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let head = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(&root).output();
    let head = head.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let from = if head.is_some() { "from the commit" } else { "from the sources" };
    let hash = Sha256::digest(head.unwrap_or_else(|| sources(&root.join("crates"))));
    // Whole millions: ranges of two commits do not overlap, and the number is easy to copy.
    let number = u64::from_be_bytes(hash[..8].try_into().expect("a hash has more than eight bytes"));
    (number % 1_000_000 * 1_000_000, from.into())
}

/// All files below a folder, one after the other, in the order of their names.
fn sources(folder: &Path) -> Vec<u8> {
    let entries = std::fs::read_dir(folder).expect("the sources are there").flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let bytes =
        |path: &PathBuf| if path.is_dir() { sources(path) } else { std::fs::read(path).unwrap_or_default() };
    paths.iter().flat_map(bytes).collect()
}

/// Jobs that are in several groups, some of which hold devices while their members change.
#[test]
fn invariants_hold_on_seeds_that_once_broke_them() {
    for seed in [351, 498, 1071, 2091, 4083, 6204] {
        Dir::new().yard(&format!("fuzz --seed {seed} --count 1")).printed();
    }
}

/// More was promised than there was, a job never ended, or a promise was broken.
#[test]
fn promises_stay_sound_and_jobs_end_on_seeds_where_they_did_not() {
    let unsound = [5002152, 7000335, 9004190, 20025148, 20067304, 20082169, 30044158, 30058093];
    let endless = [5003659, 20016451, 30034180, 30072047];
    for seed in unsound.into_iter().chain(endless).chain([20056803, 50032350, 50076315, 1001037]) {
        Dir::new().yard(&format!("fuzz --seed {seed} --count 1")).printed();
    }
}

/// Who may not be stopped and was about to have its devices was planned elsewhere, and had them all the same.
#[test]
fn who_is_about_to_begin_and_may_not_be_stopped_keeps_its_plan() {
    hold([80004467, 80265077]);
}

/// One that took too long to stop began early; then plans reckoned with longer stops, and it had none.
#[test]
fn who_can_be_stopped_in_time_at_last_has_a_plan() {
    Dir::new().yard("fuzz --calm --seed 95018606 --count 1").printed();
}

/// One that was slower than believed and may not be stopped was planned anew, for later, and then moved about.
#[test]
fn who_runs_and_may_not_be_stopped_is_planned_around() {
    hold([80914463]);
}

/// A plan had a stretch from one instant to the same.
#[test]
fn no_plan_has_a_stretch_that_does_not_last() {
    hold([80097808]);
}

/// Jobs ended less than two milliseconds after what they were promised, and nobody had said that they might.
#[test]
fn a_promise_that_is_broken_by_little_is_said_to_be_at_risk() {
    hold([80138017, 80482464, 80609818, 80649097]);
}

/// A group passed its devices on to what was left of another, which already waited as a share of its own.
#[test]
fn shares_of_a_job_never_add_up_to_more_than_one() {
    hold([80216295]);
}

/// One that was let in early, and lost its node before it had the devices, was planned for those and bound to them.
#[test]
fn devices_are_not_spoken_for_by_a_plan_and_a_record() {
    hold([200367235]);
}

/// A job was to have the devices of another that was still on its way out, and was cancelled.
#[test]
fn devices_come_back_though_who_was_to_have_them_is_gone() {
    hold([200854554]);
}

/// One that failed and began again where its plan has it counted as done as soon as believed, not when its plan ends.
#[test]
fn who_begins_as_planned_keeps_what_its_plan_has() {
    hold([300690729]);
}

/// A job was told to stop by a node that left; the plan made meanwhile passed it over, and no other was asked for.
#[test]
fn who_was_stopped_by_a_node_that_left_is_planned_for() {
    hold([400277942]);
}

/// Two jobs of which neither gains more took devices from each other before either had started.
#[test]
fn equal_jobs_do_not_stop_each_other_for_ever() {
    hold([80086624]);
}

/// Policies count devices by kind: jobs waited for a shape that no node in service could hold, beside others that one could.
#[test]
fn nobody_waits_for_a_shape_that_cannot_be_had_beside_one_that_can() {
    hold([400009934, 400012280, 400014350, 400044160, 400046437, 400097219]);
}

/// A job waited beside idle devices for others of its word, or in a group with one, that waited for more devices than were up.
#[test]
fn nobody_waits_for_company_that_cannot_come() {
    hold([400039681, 400055413, 400062037, 400291598]);
}

/// A job lost every auction though it was the only one, for it was always better to wait: it took longer to start than a
/// lease lasts, or an own part of the cluster was reckoned with shapes that no node could hold.
#[test]
fn who_is_alone_in_an_auction_does_not_wait_for_the_next() {
    hold([400025531, 400043195, 400164980]);
}

/// A job said that it had done more steps than it has, and no plan could be made any more.
#[test]
fn who_says_too_much_of_itself_stops_no_plan() {
    hold([400033285, 400034665]);
}

/// A job turned out to take longer to stop than plans reckon with, and nobody planned again.
#[test]
fn plans_reckon_with_what_stopping_turns_out_to_cost() {
    hold([400042078]);
}

/// Two kinds of one node were each found room for by themselves, and together took more of its host than there was.
#[test]
fn what_several_kinds_of_one_node_take_of_its_host_is_added_up() {
    hold([110630000193]);
}

fn hold<const N: usize>(seeds: [u64; N]) {
    for seed in seeds {
        Dir::new().yard(&format!("fuzz --seed {seed} --count 1")).printed();
    }
}

/// Deadlines that were promised, where nothing happens that nobody could plan for.
#[test]
fn promises_are_kept_whatever_the_policy() {
    for policy in ["fifo", "max-min", "srtf", "las", "elasticflow", "market", "chaos"] {
        Dir::new().yard(&format!("fuzz --calm --policy {policy} --seed 0 --count 100")).printed();
    }
}

#[test]
fn a_seed_is_one_scenario() {
    let dir = Dir::new();
    let once = || dir.yard("fuzz --seed 17 --count 5").printed();
    assert_eq!(once(), once());
}

#[test]
fn what_cannot_be_fuzzed_is_refused() {
    let refused = |line: &str, why: &str| {
        let answer = Dir::new().yard(line);
        assert_eq!(answer.code, Some(2), "{line}: {}", answer.out);
        assert!(answer.err.contains(why), "{line}: {}", answer.err);
    };
    refused("fuzz --policy fastest", "fastest");
    refused("fuzz --keep job3", "add --count 1");
    refused("fuzz --count 1 --keep job3.colour", "job3.colour is no part of a scenario");
    refused("fuzz --jobs 0", "--jobs");
}
