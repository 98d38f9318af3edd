//! The page as chapters of prose and commands, and back.

/// A command and what it prints.
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) printed: Vec<String>,
}

/// A piece of a chapter, in order.
pub(crate) enum Part {
    Prose(String),
    Step(Step),
}

/// The text before the first heading of the second level, and each such heading with what follows.
pub(crate) fn chapters(text: &str) -> Vec<&str> {
    let mut starts: Vec<_> = text.match_indices("\n## ").map(|(at, _)| at + 1).collect();
    starts.insert(0, 0);
    starts.push(text.len());
    starts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

/// The pieces of a chapter.
pub(crate) fn parts(chapter: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut inside = false;
    for line in chapter.lines() {
        inside = if inside { line != "```" } else { line == "```console" };
        match (line.strip_prefix("$ "), line.strip_prefix("> "), parts.last_mut()) {
            (Some(command), ..) if inside => parts.push(step(command)),
            (_, Some(more), Some(Part::Step(step))) if inside && step.printed.is_empty() => {
                step.command.push('\n');
                step.command.push_str(more);
            }
            (.., Some(Part::Step(step))) if inside => step.printed.push(line.to_owned()),
            (.., Some(Part::Prose(text))) => *text += &format!("{line}\n"),
            _ => parts.push(Part::Prose(format!("{line}\n"))),
        }
    }
    parts
}

fn step(command: &str) -> Part {
    Part::Step(Step { command: command.to_owned(), printed: Vec::new() })
}

/// A step as it stands on the page.
pub(crate) fn written(step: &Step, printed: &[String]) -> String {
    let command = step.command.replace('\n', "\n> ");
    let printed: String = printed.iter().map(|line| format!("{line}\n")).collect();
    format!("$ {command}\n{printed}")
}

#[test]
fn a_page_is_what_its_parts_are() {
    let text =
        "intro\n\n## One\n\n```console\n$ a\nout\n\n$ b <<END\n> x\n> END\n```\n\n```\n$ c\n```\n## Two\n";
    assert_eq!(chapters(text).concat(), text);
    let back = |part: &Part| match part {
        Part::Prose(text) => text.clone(),
        Part::Step(step) => written(step, &step.printed),
    };
    let parts = parts(text);
    assert_eq!(parts.iter().map(back).collect::<String>(), text);
    let commands = parts.iter().filter_map(|part| match part {
        Part::Step(step) => Some(step.command.as_str()),
        Part::Prose(_) => None,
    });
    assert_eq!(commands.collect::<Vec<_>>(), ["a", "b <<END\nx\nEND"]);
}
