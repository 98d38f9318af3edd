//! Whose process it is. The driver knows processes by their numbers; jobs are told theirs in their environment, which
//! the system shows. A process that dropped its environment is its parent's. Who lies about it deceives only those
//! who share the card: nobody else is asked about.

use std::path::Path;

use yard_core::ids::JobId;

/// Parents that are asked.
const PARENTS_MAX: usize = 32;

/// The job of a process, where it is some job's. `proc` is where the system shows processes: `/proc`.
pub(crate) fn job_of(proc: &Path, process: u32) -> Option<JobId> {
    let mut process = process;
    for _ in 0..PARENTS_MAX {
        if process <= 1 {
            return None;
        }
        let folder = proc.join(process.to_string());
        if let Some(job) = named(&std::fs::read(folder.join("environ")).unwrap_or_default()) {
            return Some(job);
        }
        process = parent(&std::fs::read_to_string(folder.join("status")).ok()?)?;
    }
    None
}

/// The job that an environment names.
fn named(environment: &[u8]) -> Option<JobId> {
    let value = environment.split(|byte| *byte == 0).find_map(|line| line.strip_prefix(b"YARD_JOB_ID="))?;
    std::str::from_utf8(value).ok()?.parse().ok().map(JobId)
}

fn parent(status: &str) -> Option<u32> {
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::testing::Folder;

    fn process(proc: &Path, number: u32, parent: u32, environment: &str) {
        let folder = proc.join(number.to_string());
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("environ"), environment).unwrap();
        std::fs::write(folder.join("status"), format!("Name:\tx\nPPid:\t{parent}\nTgid:\t1\n")).unwrap();
    }

    #[test]
    fn a_process_is_its_jobs_or_its_parents() {
        let folder = Folder::new();
        let proc = folder.path();
        process(proc, 10, 1, "PATH=/bin\0YARD_JOB_ID=7\0RANK=0\0");
        process(proc, 11, 10, "HOME=/\0NOT_YARD_JOB_ID=8\0");
        process(proc, 12, 11, "");
        process(proc, 20, 1, "YARD_JOB_ID=x\0");
        process(proc, 30, 30, "");
        let of = |process| job_of(proc, process);
        assert_eq!([of(10), of(11), of(12)], [Some(JobId(7)); 3]);
        assert_eq!([of(20), of(30), of(99), of(1), of(0)], [None; 5]);
    }

    #[test]
    fn the_system_shows_environments() {
        let mut child =
            std::process::Command::new("sleep").arg("60").env("YARD_JOB_ID", "41").spawn().unwrap();
        // Between the fork and the new program it still has ours.
        let found = (0..1000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            job_of(Path::new("/proc"), child.id())
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, Some(JobId(41)));
    }
}
