//! What can be said of a request without knowing the cluster: sizes, characters, numbers that make sense together.
//! The command line checks before it sends, and the server checks again.

use std::path::Path;

use super::{JobRequest, TrainingRequest, closeness, regimes, rewards, secrets, sharing};

/// Devices that one job may ask for.
pub const GPUS_MAX: u32 = 1_000_000;

/// Bytes of a command and an environment together, each word with its end and its pointer, as Linux counts them.
pub const BYTES_MAX: usize = 64 << 10;

/// What a word costs beside its bytes: its end and its pointer.
const WORD: usize = 9;

/// Jobs that one may come after.
pub const AFTER_MAX: usize = 1_000;

/// Characters of a name.
pub const NAME_MAX: usize = 128;

/// Signals that may ask a job to stop.
pub const SIGNALS: [&str; 8] = ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "CONT", "WINCH"];

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
pub struct Problem {
    /// The field, as in `JobRequest`.
    pub field: &'static str,
    /// In a sentence.
    pub message: String,
}

pub(super) fn problem(field: &'static str, message: impl Into<String>) -> Result<(), Problem> {
    Err(Problem { field, message: message.into() })
}

/// Whether a request makes sense.
pub fn check(request: &JobRequest) -> Result<(), Problem> {
    command(request)?;
    environment(request)?;
    secrets::check(request)?;
    names(request)?;
    sizes(request)?;
    closeness::check(request)?;
    numbers(request)?;
    request.training.as_ref().map_or(Ok(()), TrainingRequest::check)?;
    sharing::check(request)?;
    rewards::check(request)?;
    regimes::check(request)?;
    paths(request)?;
    signal(request)
}

fn command(request: &JobRequest) -> Result<(), Problem> {
    let Some(program) = request.command.first() else {
        return problem("command", "there is no command; give a program and its arguments");
    };
    if program.is_empty() {
        return problem("command", "the program's name is empty");
    }
    if request.command.iter().any(|arg| arg.contains('\0')) {
        return problem("command", "an argument contains a NUL byte, which cannot be passed to a program");
    }
    Ok(())
}

fn environment(request: &JobRequest) -> Result<(), Problem> {
    for (key, value) in &request.env {
        if key.is_empty() || key.contains(['=', '\0']) || value.contains('\0') {
            return problem(
                "env",
                format!("{key:?} cannot be a variable: a name has no = and nothing has a NUL"),
            );
        }
    }
    let words = request.command.iter().map(|word| word.len() + WORD);
    let pairs = request.env.iter().map(|(key, value)| key.len() + value.len() + 1 + WORD);
    let bytes: usize = words.chain(pairs).sum();
    if bytes > BYTES_MAX {
        return problem(
            "command",
            format!(
                "command and environment have {bytes} bytes, more than {BYTES_MAX}; put long text into a file"
            ),
        );
    }
    Ok(())
}

/// Names go into file names, tables and labels.
fn names(request: &JobRequest) -> Result<(), Problem> {
    name("name", request.name.as_deref())?;
    name("tenant", request.tenant.as_deref())?;
    name("model", request.model.as_deref())?;
    if request.kinds.len() > 64 {
        return problem("kinds", "more than 64 kinds are given");
    }
    for kind in &request.kinds {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if kind.is_empty() || kind.len() > 64 || !kind.chars().all(plain) {
            return problem(
                "kinds",
                format!("{kind:?} is not a kind; a kind has letters, digits, -, _ and ."),
            );
        }
    }
    Ok(())
}

/// Whether a name can be shown and used in files and labels.
pub(crate) fn name(field: &'static str, name: Option<&str>) -> Result<(), Problem> {
    let Some(name) = name else { return Ok(()) };
    if name.trim().is_empty() || name.chars().count() > NAME_MAX {
        return problem(field, format!("{name:?} is empty or longer than {NAME_MAX} characters"));
    }
    let path = name.contains(['/', '\\']) || name == "." || name.contains("..");
    if path || name.chars().any(char::is_control) {
        return problem(
            field,
            format!("{name:?} has a slash, two dots or a control character; use plain text"),
        );
    }
    Ok(())
}

fn sizes(request: &JobRequest) -> Result<(), Problem> {
    let JobRequest { gpus, min_gpus, max_gpus, nodes, .. } = *request;
    for (field, value) in [("gpus", gpus), ("min_gpus", min_gpus), ("max_gpus", max_gpus), ("nodes", nodes)] {
        if value.is_some_and(|value| value > GPUS_MAX) {
            return problem(field, format!("more than {GPUS_MAX}"));
        }
    }
    if min_gpus == Some(0) || max_gpus == Some(0) || nodes == Some(0) {
        return problem(if nodes == Some(0) { "nodes" } else { "min_gpus" }, "0 is too few; use 1 or more");
    }
    // Without devices it has a slot on each of its nodes.
    let most = max_gpus.or(gpus).map_or(1, |most| if most == 0 { nodes.unwrap_or(1) } else { most });
    if min_gpus.is_some_and(|least| least > most || gpus.is_some_and(|gpus| least > gpus)) {
        return problem("min_gpus", "it is larger than max_gpus");
    }
    if gpus.is_some_and(|gpus| max_gpus.is_some_and(|most| most < gpus)) {
        return problem("max_gpus", "it is less than gpus");
    }
    if nodes.is_some_and(|nodes| nodes > most.max(1)) {
        return problem("nodes", format!("{most} devices cannot be spread over more nodes than that"));
    }
    Ok(())
}

fn numbers(request: &JobRequest) -> Result<(), Problem> {
    let above_zero = [
        ("weight", request.weight, 1e6),
        ("time_limit_s", request.time_limit_s, 1e9),
        ("duration_s", request.duration_s, 1e9),
        ("cpus", request.cpus, 1e6),
        ("checkpoint", request.checkpoint.grace_s, 86_400.0),
        ("deadline", request.deadline, 1e11),
        ("begin", request.begin, 1e11),
        ("batch_size", request.batch_size.map(f64::from), 1e9),
        ("memory_mib", request.memory_mib.map(|memory| memory as f64), 1e9),
    ];
    for (field, value, most) in above_zero {
        if value.is_some_and(|value| !(value > 0.0 && value <= most)) {
            return problem(field, format!("it must be above 0 and at most {most}"));
        }
    }
    let unknown = |name: &&String| ["cores", "cpus", "memory"].contains(&name.as_str());
    if let Some(name) = request.resources.keys().find(unknown) {
        return problem(
            "resources",
            format!("{name} has a field of its own: cpus for cores, memory for memory"),
        );
    }
    if request.max_restarts.is_some_and(|restarts| restarts > 10_000) {
        return problem("max_restarts", "more than 10000");
    }
    if request.after.len() > AFTER_MAX {
        return problem("after", format!("it depends on more than {AFTER_MAX} jobs; put one job in between"));
    }
    if request.deadline.zip(request.begin).is_some_and(|(deadline, begin)| deadline <= begin) {
        return problem("deadline", "it is before the job's begin time");
    }
    Ok(())
}

fn paths(request: &JobRequest) -> Result<(), Problem> {
    absolute("workdir", request.workdir.as_deref())?;
    absolute("checkpoint", request.checkpoint.dir.as_deref())?;
    for (field, pattern) in [("output", &request.output), ("error", &request.error)] {
        let Some(pattern) = pattern else { continue };
        if pattern.is_empty() || pattern.len() > 4096 || pattern.chars().any(char::is_control) {
            return problem(field, format!("{pattern:?} is not a path"));
        }
        if let Some(letter) = unknown_pattern(pattern) {
            return problem(
                field,
                format!("%{letter} is unknown; use %j (job), %x (name), %t (rank) or %n (node rank)"),
            );
        }
    }
    Ok(())
}

fn absolute(field: &'static str, path: Option<&Path>) -> Result<(), Problem> {
    let Some(path) = path else { return Ok(()) };
    if !path.is_absolute() || path.to_str().is_none_or(|path| path.len() > 4096 || path.contains('\0')) {
        return problem(field, format!("{path:?} is not an absolute path"));
    }
    Ok(())
}

/// The first letter after a `%` that stands for nothing.
pub(super) fn unknown_pattern(pattern: &str) -> Option<char> {
    let mut letters = pattern.chars();
    while letters.any(|c| c == '%') {
        match letters.next() {
            Some('j' | 'x' | 't' | 'n' | '%') => {}
            other => return Some(other.unwrap_or(' ')),
        }
    }
    None
}

fn signal(request: &JobRequest) -> Result<(), Problem> {
    match &request.checkpoint.signal {
        Some(signal) if !SIGNALS.contains(&signal.as_str()) => problem(
            "checkpoint",
            format!("{signal:?} is not a signal that can stop a job; use {}", SIGNALS.join(", ")),
        ),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> JobRequest {
        JobRequest { command: vec!["true".into()], ..JobRequest::default() }
    }

    fn wrong(change: impl Fn(&mut JobRequest)) -> &'static str {
        let mut request = sound();
        change(&mut request);
        check(&request).expect_err("it is wrong").field
    }

    #[test]
    fn little_is_needed() {
        assert_eq!(check(&sound()), Ok(()));
        assert_eq!(wrong(|r| r.command.clear()), "command");
    }

    #[test]
    fn names_are_plain() {
        for name in ["", " ", "../etc", "a/b", "a\\b", "..", ".", "bell\u{7}", "line\n", &"x".repeat(129)] {
            assert_eq!(wrong(|r| r.name = Some(name.into())), "name", "{name:?}");
            assert_eq!(wrong(|r| r.tenant = Some(name.into())), "tenant", "{name:?}");
        }
        assert_eq!(wrong(|r| r.kinds = vec!["a|b".into()]), "kinds");
        assert_eq!(check(&JobRequest { name: Some("ResNet-50 (größer)".into()), ..sound() }), Ok(()));
    }

    #[test]
    fn sizes_fit_together() {
        assert_eq!(wrong(|r| (r.gpus, r.max_gpus) = (Some(4), Some(2))), "max_gpus");
        assert_eq!(wrong(|r| (r.min_gpus, r.max_gpus) = (Some(4), Some(2))), "min_gpus");
        assert_eq!(wrong(|r| (r.gpus, r.nodes) = (Some(2), Some(4))), "nodes");
        assert_eq!(wrong(|r| r.nodes = Some(0)), "nodes");
        assert_eq!(wrong(|r| r.gpus = Some(2_000_000)), "gpus");
        let elastic =
            JobRequest { gpus: Some(4), min_gpus: Some(1), max_gpus: Some(8), nodes: Some(2), ..sound() };
        assert_eq!(check(&elastic), Ok(()));
    }

    #[test]
    fn numbers_are_above_zero() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(wrong(|r| r.weight = Some(bad)), "weight");
            assert_eq!(wrong(|r| r.time_limit_s = Some(bad)), "time_limit_s");
            assert_eq!(wrong(|r| r.deadline = Some(bad)), "deadline");
        }
        assert_eq!(wrong(|r| r.after = vec![1; AFTER_MAX + 1]), "after");
        assert_eq!(wrong(|r| (r.begin, r.deadline) = (Some(2e9), Some(1.9e9))), "deadline");
    }

    #[test]
    fn commands_and_variables_can_be_given_to_a_process() {
        assert_eq!(wrong(|r| r.command.push("a\0b".into())), "command");
        assert_eq!(wrong(|r| r.command.push("x".repeat(BYTES_MAX))), "command");
        assert_eq!(wrong(|r| drop(r.env.insert("A=B".into(), String::new()))), "env");
        assert_eq!(wrong(|r| drop(r.env.insert(String::new(), String::new()))), "env");
    }

    #[test]
    fn paths_are_absolute_and_patterns_known() {
        assert_eq!(wrong(|r| r.workdir = Some("here".into())), "workdir");
        assert_eq!(wrong(|r| r.checkpoint.dir = Some("here".into())), "checkpoint");
        assert_eq!(wrong(|r| r.output = Some("%q.log".into())), "output");
        assert_eq!(wrong(|r| r.error = Some("log%".into())), "error");
        assert_eq!(check(&JobRequest { output: Some("%x-%j-%t-%n-%%.log".into()), ..sound() }), Ok(()));
    }

    #[test]
    fn only_signals_that_can_be_caught_stop_a_job() {
        assert_eq!(wrong(|r| r.checkpoint.signal = Some("KILL".into())), "checkpoint");
        assert_eq!(wrong(|r| r.checkpoint.signal = Some("SIGTERM".into())), "checkpoint");
    }
}
