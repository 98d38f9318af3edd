//! The program that `exec:PATH[:key=value…]` names: where it is, what it is told at its start, and what it declares.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};

use super::answer;
use super::process::{PolicyProcess, Stderr, Trouble};
use super::words::{Declared, ExecHello, ExecSaid, ExecTold, PROTOCOL};

/// How an `exec:` policy begins on the command line.
pub(crate) const PREFIX: &str = "exec:";

/// How long an answer may take unless `timeout` says otherwise.
const LIMIT: Duration = Duration::from_secs(5);

/// The longest limit in a server: its planner gives up a plan after ten seconds.
const SERVER_LIMIT_MAX: Duration = Duration::from_secs(9);

/// How long a program may take to start and say hello, at least.
const HELLO_LIMIT: Duration = Duration::from_secs(20);

/// What a program is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramUses {
    /// A simulation, by whoever started it.
    Simulation,
    /// The decisions of a server, which many people depend on.
    Server,
}

/// A program that decides.
#[derive(Debug)]
pub(crate) struct PolicyProgram {
    /// As the user wrote it.
    pub(super) name: String,
    pub(crate) path: PathBuf,
    params: BTreeMap<String, String>,
    pub(super) limit: Duration,
    pub(super) uses: ProgramUses,
    pub(crate) declared: Declared,
}

impl PolicyProgram {
    /// Reads `PATH[:key=value…]`, and starts the program once for what it declares.
    pub(crate) fn open(rest: &str, uses: ProgramUses) -> anyhow::Result<PolicyProgram> {
        let name = format!("{PREFIX}{rest}");
        let wrong = || format!("policy {name}");
        let (path, mut params) = parse(rest).with_context(wrong)?;
        let limit = limit(params.remove("timeout"), uses).with_context(wrong)?;
        let path = check_file(&path, uses).with_context(wrong)?;
        let (_, declared) =
            start(&path, &params, limit, Stderr::Keep).map_err(|trouble| told(&name, &trouble))?;
        Ok(PolicyProgram { name, path, params, limit, uses, declared })
    }

    /// Starts it for questions.
    pub(super) fn start(&self) -> Result<PolicyProcess, Trouble> {
        let stderr = if self.uses == ProgramUses::Simulation { Stderr::Pass } else { Stderr::Keep };
        start(&self.path, &self.params, self.limit, stderr).map(|(process, _)| process)
    }
}

/// A program that did not start: all that it wrote on stderr is of use.
fn told(name: &str, trouble: &Trouble) -> anyhow::Error {
    trouble.stderr.iter().for_each(|line| crate::output::note(&format!("{name}: {line}")));
    anyhow::anyhow!("policy {name}: {}", trouble.what)
}

fn start(
    path: &Path,
    params: &BTreeMap<String, String>,
    limit: Duration,
    stderr: Stderr,
) -> Result<(PolicyProcess, Declared), Trouble> {
    let mut process = PolicyProcess::start(path, stderr)
        .map_err(|error| Trouble { what: format!("it cannot be started: {error}"), stderr: Vec::new() })?;
    let hello = ExecTold::Hello(ExecHello { protocol: PROTOCOL, yard: env!("CARGO_PKG_VERSION"), params });
    let mut line = serde_json::to_vec(&hello).expect("plain data");
    line.push(b'\n');
    let answer = process.ask(line, limit.max(HELLO_LIMIT))?;
    match answer::read(&answer) {
        Ok(ExecSaid::Hello(declared)) if declared.protocol == PROTOCOL => Ok((process, declared)),
        Ok(ExecSaid::Hello(declared)) => Err(process.trouble(format!(
            "it speaks version {} of the protocol, and this yard version {PROTOCOL}",
            declared.protocol
        ))),
        Ok(ExecSaid::Error(why)) => {
            Err(process.trouble(format!("it refuses: {}", crate::output::plain(&why))))
        }
        Ok(ExecSaid::Plan(_)) => {
            Err(process.trouble("line 1 of its output: it must begin with its hello".into()))
        }
        Err(wrong) => {
            Err(process.trouble(format!("line 1 of its output, its hello: {wrong}{}", excerpt(&answer))))
        }
    }
}

/// The beginning of a line, for people.
pub(super) fn excerpt(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(160)]);
    format!("; the line is: {}", crate::output::plain(text.trim_end()))
}

fn parse(rest: &str) -> anyhow::Result<(PathBuf, BTreeMap<String, String>)> {
    let mut parts = rest.split(':');
    let path = parts.next().filter(|path| !path.is_empty());
    let path = path.context("name a program, as exec:./mine.py or exec:./mine.py:key=value")?;
    let mut params = BTreeMap::new();
    for part in parts {
        let pair = part.split_once('=').filter(|(key, _)| !key.is_empty());
        let (key, value) =
            pair.with_context(|| format!("`{part}`: write each parameter once, as key=value"))?;
        if params.insert(key.to_owned(), value.to_owned()).is_some() {
            bail!("`{part}`: write each parameter once, as key=value");
        }
    }
    Ok((path.into(), params))
}

fn limit(given: Option<String>, uses: ProgramUses) -> anyhow::Result<Duration> {
    let Some(given) = given else { return Ok(LIMIT) };
    let read = given.parse::<crate::cmd::sim::Duration>();
    let time = read.map_err(|wrong| anyhow::anyhow!("timeout={given}: {wrong}"))?;
    let limit = Duration::from_micros(time.0.0);
    if limit.is_zero() {
        bail!("timeout={given}: must be above 0");
    }
    if uses == ProgramUses::Server && limit > SERVER_LIMIT_MAX {
        bail!("timeout={given}: a server waits for at most 9s; choose less");
    }
    Ok(limit)
}

/// A file that can be started. As root in a server, one that nobody else can change.
fn check_file(path: &Path, uses: ProgramUses) -> anyhow::Result<PathBuf> {
    let found = path.canonicalize().with_context(|| format!("cannot find {}", path.display()))?;
    let about = found.metadata().with_context(|| format!("cannot read {}", path.display()))?;
    if !about.is_file() {
        bail!("{} is no file", path.display());
    }
    if about.permissions().mode() & 0o111 == 0 {
        bail!("{} is not executable: chmod +x {}", path.display(), path.display());
    }
    let others = about.uid() != 0 || about.permissions().mode() & 0o022 != 0;
    if uses == ProgramUses::Server && nix::unistd::geteuid().is_root() && others {
        bail!(
            "{} would run as root and others can change it: have it belong to root and chmod go-w it",
            path.display()
        );
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_as_those_of_other_policies() {
        let (path, params) = parse("./mine.py:a=1:b=x/y").unwrap();
        assert_eq!(path, PathBuf::from("./mine.py"));
        assert_eq!(params, BTreeMap::from([("a".into(), "1".into()), ("b".into(), "x/y".into())]));
        let said = |rest: &str| parse(rest).unwrap_err().to_string();
        assert!(said("").contains("name a program"));
        assert!(said("p:x").contains("key=value") && said("p:a=1:a=2").contains("once"));
    }

    #[test]
    fn a_limit_is_a_time_and_shorter_in_a_server() {
        let of = |text: &str, uses| limit(Some(text.into()), uses).map_err(|error| error.to_string());
        assert_eq!(of("2m", ProgramUses::Simulation), Ok(Duration::from_secs(120)));
        assert!(of("2m", ProgramUses::Server).unwrap_err().contains("at most 9s"));
        assert!(of("0", ProgramUses::Simulation).unwrap_err().contains("above 0"));
        assert!(of("soon", ProgramUses::Simulation).unwrap_err().contains("timeout=soon"));
    }
}
