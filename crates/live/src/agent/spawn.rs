//! From an order to processes: whose they are, where they run, what they see and where their output goes.

use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use nix::sys::signal::Signal;
use nix::unistd::geteuid;
use yard_core::part::{Master, PartId, Start};

use super::admit::{Admission, UserAccount};
use super::cgroup::Cgroups;
use super::env;
use super::keeper::{Confine, RankSpec, SecretFiles, Sink, StartPart, secrets_base};
use super::layout::Layout;
use super::logs::{LOG_MAX, NamedLog};
use super::mps::MpsClient;
use crate::wire::{Handed, Task};

/// Why a part has no processes.
#[derive(Debug, PartialEq)]
pub(crate) struct Unspawned {
    /// As a shell would say it, where it is the job's own fault.
    pub(crate) code: Option<i32>,
    /// In a sentence.
    pub(crate) message: String,
}

impl From<io::Error> for Unspawned {
    fn from(error: io::Error) -> Unspawned {
        Unspawned { code: None, message: format!("this node could not make room for the job: {error}") }
    }
}

/// Makes processes of orders.
pub(crate) struct Spawner {
    /// Where things are.
    pub(crate) layout: Layout,
    /// The node's name.
    pub(crate) node: String,
    /// The command that becomes another user.
    pub(crate) launcher: Vec<String>,
    /// Who jobs are run for.
    pub(crate) admission: Admission,
    /// Control groups, where there are any.
    pub(crate) cgroups: Option<Cgroups>,
}

impl Spawner {
    /// Whose processes a task's are, if they may run here.
    pub(crate) fn account(&self, task: &Task) -> Result<UserAccount, Unspawned> {
        self.admission.account(&task.user, &self.launcher)
    }

    /// Makes folders ready and says what to start.
    pub(crate) fn prepare(
        &self,
        start: &Start,
        task: &Task,
        account: UserAccount,
        master: Option<Master>,
        devices: &[String],
        mps: Option<&MpsClient>,
    ) -> Result<StartPart, Unspawned> {
        let job = start.part.job;
        let owner = account.owner();
        let folder = self.layout.make_job(job)?;
        let workdir = match task.workdir.as_os_str().is_empty() {
            true => self.layout.make_theirs(job, "work", owner)?,
            false => task.workdir.clone(),
        };
        let checkpoints = match &task.checkpoint_dir {
            Some(path) => path.clone(),
            None => self.layout.make_theirs(job, "checkpoints", owner)?,
        };
        let master = match master {
            Some(master) => master,
            None => Master { address: "127.0.0.1".into(), port: free_port()? },
        };
        let socket = self.layout.socket(start.part).join("s");
        let secrets = self.secret_files(start, task)?;
        let mut named = NamedLog::load(&folder);
        (named.uid, named.user) = (account.uid(), account.run_as.clone());
        let ranks = start.ranks.first..start.ranks.first + start.ranks.count;
        let ranks = ranks.map(|rank| {
            let place = env::RankEnv {
                start,
                task,
                rank,
                master: &master,
                node: &self.node,
                devices,
                mps,
                socket: &socket,
                checkpoints: &checkpoints,
                workdir: &workdir,
            };
            let (stdout, stderr) = self.sinks(start, task, rank, &workdir, &mut named);
            let mut env = place.environment(&account.base);
            if let Some(secrets) = &secrets {
                env.insert("YARD_SECRETS_DIR".into(), secrets.folder.to_string_lossy().into_owned());
            }
            RankSpec { rank, argv: task.command.clone(), env, cwd: workdir.clone(), stdout, stderr }
        });
        let ranks = ranks.collect();
        if !named.files.is_empty() {
            named.save(&folder)?;
        }
        let group = self.cgroups.as_ref().map(|groups| groups.make(start.part, task, &start.devices));
        let (cgroup, closed) = group.transpose()?.map(|group| (group.path, group.closed)).unzip();
        let (closed, launcher) = (closed.unwrap_or_default(), self.launcher.clone());
        Ok(StartPart {
            part: start.part,
            ranks,
            user: account.run_as,
            confine: Confine { cgroup, closed, secrets, launcher },
            stop_signal: signal(&task.stop_signal) as i32,
            grace: start.grace.0,
            log_max: LOG_MAX,
        })
    }

    /// The secrets that a job finds as files, and where.
    fn secret_files(&self, start: &Start, task: &Task) -> Result<Option<SecretFiles>, Unspawned> {
        let files = task.secrets.iter().filter(|secret| secret.handed == Handed::File);
        let files: Vec<_> = files.map(|secret| (secret.name.clone(), secret.value.clone())).collect();
        if let Some((name, _)) = files.iter().find(|(name, _)| !is_file_name(name)) {
            let message = format!("secret {name:?} cannot be a file; give it a name without /");
            return Err(Unspawned { code: Some(126), message });
        }
        let mounted = geteuid().is_root();
        let PartId { lease, job, instance } = start.part;
        let folder = match mounted {
            true => self.layout.secrets(),
            false => secrets_base(&self.layout.keeper()).join(format!("{lease}-{job}-{instance}")),
        };
        Ok((!files.is_empty()).then_some(SecretFiles { folder, mounted, files }))
    }

    /// Where a rank's output goes: our files, or those that the user named.
    fn sinks(
        &self,
        start: &Start,
        task: &Task,
        rank: u32,
        workdir: &Path,
        named: &mut NamedLog,
    ) -> (Sink, Option<Sink>) {
        let header = (start.part.instance > 1).then(|| self.header(start.part.instance));
        let mut sink = |template: Option<&String>, stderr: bool| {
            let ours = self.layout.log(start.part.job, rank, stderr);
            let name = ours.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(template) = template else {
                named.files.remove(&name);
                return Sink { path: ours, theirs: false, header: header.clone() };
            };
            let path = workdir.join(expand(template, start, task, rank));
            named.files.insert(name, path.clone());
            Sink { path, theirs: true, header: header.clone() }
        };
        let stdout = sink(task.output.as_ref(), false);
        if task.error.is_none() && task.output.is_some() {
            return (stdout, None);
        }
        (stdout, Some(sink(task.error.as_ref(), true)))
    }

    /// The line between two starts in one log.
    fn header(&self, instance: u32) -> String {
        let now = jiff::Timestamp::now().as_second();
        let now = jiff::Timestamp::from_second(now).unwrap_or_default();
        format!("--- start {instance} on {} at {now} ---", self.node)
    }
}

fn is_file_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 255 && name != "." && name != ".." && !name.contains(['/', '\0'])
}

/// A port that is free now, for the ranks to meet at.
pub(crate) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("0.0.0.0", 0))?.local_addr()?.port())
}

/// The signal of this name, with or without `SIG`, or of this number; `TERM` where there is none.
pub(crate) fn signal(name: &str) -> Signal {
    let number = name.parse().ok().and_then(|number: i32| Signal::try_from(number).ok());
    let full = if name.starts_with("SIG") { name.to_owned() } else { format!("SIG{name}") };
    number.or_else(|| Signal::from_str(&full).ok()).unwrap_or(Signal::SIGTERM)
}

/// `%j` job, `%x` name, `%t` rank, `%n` node rank, `%%` itself. A name cannot lead to another folder.
fn expand(template: &str, start: &Start, task: &Task, rank: u32) -> PathBuf {
    let mut path = String::new();
    let mut chars = template.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '%' { chars.next() } else { None }) {
            ('%', Some('j')) => path.push_str(&start.part.job.to_string()),
            ('%', Some('x')) => path.push_str(&task.name.replace('/', "_")),
            ('%', Some('t')) => path.push_str(&rank.to_string()),
            ('%', Some('n')) => path.push_str(&start.ranks.node_rank.to_string()),
            ('%', Some('%') | None) => path.push('%'),
            ('%', Some(other)) => path.extend(['%', other]),
            (c, _) => path.push(c),
        }
    }
    path.into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::agent::testing::{Folder, start, task};

    fn spawner(folder: &Folder) -> Spawner {
        Spawner {
            layout: Layout::open(folder.path()).unwrap(),
            node: "n1".into(),
            launcher: vec!["yard".into(), "launch".into()],
            admission: Admission::of_test(0),
            cgroups: None,
        }
    }

    #[test]
    fn templates_are_filled_in() {
        let (mut start, mut task) = (start(7, 3), task(&["true"]));
        (start.ranks.node_rank, task.name) = (2, "../net".into());
        let expanded = expand("out/%x-%j-%t-%n-%%-%q-%", &start, &task, 5);
        assert_eq!(expanded, PathBuf::from("out/.._net-3-5-2-%-%q-%"));
    }

    #[test]
    fn signals_have_names_and_numbers() {
        let names = ["TERM", "SIGUSR1", "HUP", "10", "nonsense", "0"];
        let signals = names.map(signal);
        use Signal::{SIGHUP, SIGTERM, SIGUSR1};
        assert_eq!(signals, [SIGTERM, SIGUSR1, SIGHUP, SIGUSR1, SIGTERM, SIGTERM]);
    }

    #[test]
    fn output_goes_to_our_files_or_theirs_and_restarts_are_marked() {
        let folder = Folder::new();
        let spawner = spawner(&folder);
        let (mut start, mut task) = (start(7, 3), task(&["true"]));
        let part = |start: &Start, task: &Task| {
            let account = UserAccount { run_as: None, base: BTreeMap::new() };
            spawner.prepare(start, task, account, None, &[], None).unwrap()
        };
        let first = part(&start, &task);
        assert_eq!(first.ranks[0].stdout.header, None);
        assert!(first.ranks[0].stdout.path.ends_with("jobs/3/rank-0.out"));
        assert!(first.ranks[0].stderr.as_ref().is_some_and(|sink| sink.path.ends_with("jobs/3/rank-0.err")));
        assert!(first.ranks[0].cwd.ends_with("jobs/3/work") && first.ranks[0].cwd.is_dir());
        (start.part.instance, task.output, task.workdir) = (2, Some("%j.txt".into()), "/tmp".into());
        let second = part(&start, &task);
        assert_eq!(second.ranks[0].stdout.path, PathBuf::from("/tmp/3.txt"));
        assert!(second.ranks[0].stdout.theirs && second.ranks[0].stderr.is_none());
        let header = second.ranks[0].stdout.header.as_deref().unwrap();
        assert!(header.starts_with("--- start 2 on n1 at 20"), "{header}");
        let named = NamedLog::load(&spawner.layout.job(start.part.job));
        assert_eq!(named.files["rank-0.out"], PathBuf::from("/tmp/3.txt"));
    }
}
