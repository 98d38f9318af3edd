//! What tests need of the machine they run on. A test that finds it missing asks here whether it may be skipped: with
//! `CI` set it fails, because continuous integration has to have it; elsewhere it is skipped, and says so on stderr
//! even where it passes. Used by tests only; knows nothing of the project.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Whether the test can go on. Panics where `what` is missing and `CI` is set to anything.
pub fn needs(what: &str, is_there: bool) -> bool {
    let demanded = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(is_there || !demanded, "CI is set and this machine lacks what the test needs: {what}");
    is_there || lacks(what)
}

/// The same for what continuous integration cannot always have: a test that lacks it is skipped there too.
pub fn needs_if_any(what: &str, is_there: bool) -> bool {
    is_there || lacks(what)
}

/// A file or folder of the data beside the repository, `../shared/data/PATH`.
pub fn shared(path: &str) -> Option<PathBuf> {
    let found = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(path);
    needs(&format!("../shared/data/{path}"), found.exists()).then_some(found)
}

/// The text of a file of those data.
pub fn shared_text(path: &str) -> Option<String> {
    shared(path).map(|found| std::fs::read_to_string(found).unwrap_or_else(|error| panic!("{path}: {error}")))
}

/// Whether this is root.
pub fn root(why: &str) -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    needs(&format!("root ({why})"), is_root)
}

/// Says that the test is skipped: past the test harness, which keeps what passing tests print.
fn lacks(what: &str) -> bool {
    let thread = std::thread::current();
    // Where stderr cannot be written nobody can be told.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {}: it needs {what}", thread.name().unwrap_or("a test"));
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Runs one test of this file once more, with `CI` as given. What it said on stderr, and whether it passed.
    fn again(test: &str, ci: &str) -> (bool, String) {
        let own = std::env::current_exe().expect("a test knows its file");
        let mut command = Command::new(own);
        command.args(["--exact", test, "--ignored"]).env("CI", ci);
        let output = command.output().expect("a test can be run");
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    }

    #[test]
    #[ignore = "a part of the test below"]
    fn lacking() {
        assert!(!needs("a unicorn", false));
    }

    #[test]
    fn what_is_missing_fails_in_ci_and_is_skipped_loudly_elsewhere() {
        let (passed, said) = again("tests::lacking", "");
        assert!(passed && said.contains("SKIPPED: tests::lacking: it needs a unicorn"), "{said}");
        let (passed, said) = again("tests::lacking", "true");
        assert!(!passed && said.contains("CI is set and this machine lacks"), "{said}");
    }
}
