//! A script with `#SBATCH` lines: the script itself is the job's command, and its lines say what it needs. What is
//! not understood is refused with its line, never ignored: a flag without effect is worse than none.

mod flags;
mod wanted;

use std::path::Path;

use jiff::Zoned;

use super::{JobRequest, Mistake};
use flags::{FLAGS, SbatchFlag, Takes};
use wanted::Wanted;

/// What a script asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The job; in an array, each job but for its number (see `Script::jobs`).
    pub request: JobRequest,
    /// The numbers of an array's jobs; none where it is a single job.
    pub array: Option<Vec<u32>>,
}

impl Script {
    /// The jobs to submit: one, or one for each number of an array.
    pub fn jobs(&self) -> Vec<JobRequest> {
        let Some(array) = &self.array else { return vec![self.request.clone()] };
        array.iter().map(|&task| self.member(task, array)).collect()
    }

    fn member(&self, task: u32, array: &[u32]) -> JobRequest {
        let mut request = self.request.clone();
        let numbered =
            |pattern: Option<String>| pattern.map(|pattern| pattern.replace("%a", &task.to_string()));
        request.output = numbered(request.output);
        request.error = numbered(request.error);
        let (first, last) = (array.iter().min().copied(), array.iter().max().copied());
        let facts = [("ID", Some(task)), ("COUNT", Some(array.len() as u32)), ("MIN", first), ("MAX", last)];
        for (name, value) in facts {
            for prefix in ["YARD", "SLURM"] {
                request.env.insert(format!("{prefix}_ARRAY_TASK_{name}"), value.unwrap_or(task).to_string());
            }
        }
        request
    }
}

/// Whether a file is a script rather than a job file in YAML.
pub fn is_script(text: &str) -> bool {
    text.starts_with("#!") || text.lines().any(|line| directive(line).is_some())
}

/// Reads a script that lies at `path`, an absolute path. Times of the day are counted from `now`.
pub fn parse(text: &str, path: &Path, now: &Zoned) -> Result<Script, Mistake> {
    let mut wanted = Wanted::default();
    wanted.request.command = command(text, path)?;
    let mut begun = false;
    for (number, line) in (1..).zip(text.lines()) {
        let at = |message| Mistake { line: Some(number), message };
        match directive(line) {
            Some(_) if begun => {
                return Err(at("#SBATCH lines after the first command are ignored; move it up".into()));
            }
            Some(rest) => read_line(&mut wanted, rest, now).map_err(at)?,
            None => begun |= !(line.trim().is_empty() || line.starts_with('#')),
        }
    }
    wanted.finish().map_err(|message| Mistake { line: None, message })
}

/// What follows `#SBATCH` on a line.
fn directive(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("#SBATCH")?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some(rest)
}

/// The script's interpreter, and the script.
fn command(text: &str, path: &Path) -> Result<Vec<String>, Mistake> {
    let first = text.lines().next().unwrap_or_default();
    let interpreter = first.strip_prefix("#!").map(|rest| rest.split_whitespace().map(str::to_owned));
    let mut command: Vec<String> = interpreter.into_iter().flatten().collect();
    let wrong = |message: &str| Mistake { line: Some(1), message: message.into() };
    if command.is_empty() {
        return Err(wrong("the script does not begin with #! and its interpreter, such as #!/bin/bash"));
    }
    command.push(path.to_str().ok_or_else(|| wrong("the script's path is not UTF-8"))?.to_owned());
    Ok(command)
}

fn read_line(wanted: &mut Wanted, rest: &str, now: &Zoned) -> Result<(), String> {
    let mut words = words(rest)?.into_iter();
    while let Some(word) = words.next() {
        let (flag, given) = find(&word)?;
        let value = match (&flag.takes, given) {
            (Takes::Value, None) => words.next().ok_or_else(|| format!("--{} needs a value", flag.long))?,
            (Takes::Nothing, Some(_)) => return Err(format!("--{} takes no value", flag.long)),
            (_, given) => given.unwrap_or_default(),
        };
        (flag.set)(wanted, &value, now).map_err(|wrong| format!("--{}: {wrong}", flag.long))?;
    }
    Ok(())
}

/// The flag that a word names, and the value that is in the same word.
fn find(word: &str) -> Result<(&'static SbatchFlag, Option<String>), String> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let flag =
            FLAGS.iter().find(|flag| flag.long == name).ok_or_else(|| unknown(&format!("--{name}")))?;
        return Ok((flag, value.map(str::to_owned)));
    }
    let mut letters = word.strip_prefix('-').unwrap_or_default().chars();
    let letter = letters.next().ok_or_else(|| format!("{word:?} is not a flag; flags begin with - or --"))?;
    let flag =
        FLAGS.iter().find(|flag| flag.short == Some(letter)).ok_or_else(|| unknown(&format!("-{letter}")))?;
    let value = letters.as_str();
    let value = value.strip_prefix('=').unwrap_or(value);
    Ok((flag, (!value.is_empty()).then(|| value.to_owned())))
}

/// Flags of Slurm that scripts often have and that mean nothing here, with what does.
const INSTEAD: [(&str, &str); 12] = [
    ("--mail-type", "no mail is sent; remove it, and use yard submit --wait or yard events -f --job"),
    ("--mail-user", "no mail is sent; remove it, and use yard submit --wait or yard events -f --job"),
    ("--mem-per-cpu", "memory is for each node; use --mem"),
    ("--mem-per-gpu", "memory is for each node; use --mem"),
    ("--cpus-per-gpu", "cores are for each task; use --cpus-per-task"),
    ("--gpus-per-task", "GPUs are for each node; use --gpus-per-node"),
    ("--nodelist", "the scheduler chooses the nodes; choose kinds of GPU with --constraint"),
    ("-w", "the scheduler chooses the nodes; choose kinds of GPU with --constraint"),
    ("--exclude", "the scheduler chooses the nodes; an admin can drain one with yard drain"),
    ("--reservation", "reservations are not supported; set a --deadline"),
    ("--export", "the job gets a clean environment; set variables in the script, or with yard submit --env"),
    ("--open-mode", "output is always appended; remove it"),
];

fn unknown(flag: &str) -> String {
    let known: Vec<_> = FLAGS.iter().map(|flag| format!("--{}", flag.long)).collect();
    if let Some((_, instead)) = INSTEAD.iter().find(|(name, _)| *name == flag) {
        return format!("{flag} is not supported: {instead}");
    }
    format!("{flag} is not supported; supported flags: {}", known.join(" "))
}

/// Words of a line: separated by blanks, in quotes where they hold some; a `#` begins a comment.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c == '#' && word.is_none() => return Ok(words),
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if quote.is_some() { Err("a quote is not closed".into()) } else { Ok(words) }
}

#[cfg(test)]
mod tests;
