//! docs/first-hour.md is true: every command on the page is typed into a shell, chapter by chapter, and prints what the
//! page says. `make bless` writes what is printed now; lines with `…` that still hold stay as they are.
//!
//! The notation, in blocks marked `console`:
//! - `$ ` begins a command, `> ` goes on with it; what follows is what it prints, errors included.
//! - `…` in a line stands for any text, also none; a line of `…` alone for any number of lines, also none.
//! - Columns may be as wide as they like: several blanks in a row are one.
//! - A command that only looks (`LOOKS`) is tried again until it prints what the page says, or for too long.
//!
//! Each `## ` heading begins a chapter: a shell and a folder of its own. Chapters run side by side.

#[path = "first_hour/page.rs"]
mod page;
#[path = "first_hour/pattern.rs"]
mod pattern;
#[path = "first_hour/shell.rs"]
mod shell;

use std::time::Duration;

use expect_test::expect_file;

use page::{Part, Step};
use shell::Shell;

/// Commands that change nothing.
const LOOKS: [&str; 8] = [
    "yard jobs",
    "yard nodes",
    "yard show",
    "yard explain",
    "yard what-if",
    "yard events",
    "yard audit",
    "yard logs",
];

/// How long a command that looks is tried again, and how often. Nothing is asserted about speed.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(200);

#[test]
fn the_first_hour_is_as_the_page_says() {
    let page = expect_file!["../../../docs/first-hour.md"];
    let text = page.data();
    let chapters: Vec<Vec<Part>> = page::chapters(&text).into_iter().map(page::parts).collect();
    let done = std::thread::scope(|scope| {
        let threads: Vec<_> = chapters.iter().map(|chapter| scope.spawn(|| run(chapter))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a chapter runs to its end"))
            .collect::<String>()
    });
    page.assert_eq(&done);
}

/// Types a chapter's commands; the chapter as it would have to be written.
fn run(chapter: &[Part]) -> String {
    let mut shell = None;
    let write = |part: &Part| match part {
        Part::Prose(text) => text.clone(),
        Part::Step(step) => page::written(step, &seen(shell.get_or_insert_with(Shell::new), step)),
    };
    chapter.iter().map(write).collect()
}

/// What a step prints, in the page's words where those hold.
fn seen(shell: &mut Shell, step: &Step) -> Vec<String> {
    let looks = LOOKS.iter().any(|look| step.command.starts_with(look));
    let mut pauses_left = if looks { patience().div_duration_f64(PAUSE) as u32 } else { 0 };
    loop {
        let printed = shell.run(&step.command);
        if pattern::all_match(&step.printed, &printed) {
            return step.printed.clone();
        }
        if pauses_left == 0 {
            return pattern::kept(&step.printed, &printed);
        }
        pauses_left -= 1;
        std::thread::sleep(PAUSE);
    }
}

/// Who writes the page does not want to wait for what it does not say yet.
fn patience() -> Duration {
    if std::env::var_os("UPDATE_EXPECT").is_some() { Duration::from_secs(3) } else { PATIENCE }
}
