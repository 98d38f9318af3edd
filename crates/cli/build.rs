//! Tells the binary from which commit it was built, where the source is a checkout: bundles of results name it.

use std::process::Command;

fn main() {
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|files| !files.is_empty());
    println!("cargo::rustc-env=YARD_COMMIT={commit}{}", if changed { "+changes" } else { "" });
    println!("cargo::rerun-if-changed=build.rs");
    // What a commit, a checkout or a rebase adds a line to.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
}

/// What git says; nothing where this is no checkout.
fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
