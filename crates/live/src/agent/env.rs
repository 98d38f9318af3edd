//! The environment of a rank: what the contract promises, with the twins that Slurm's users and the launchers of
//! PyTorch look for. What the user set comes before what the node has, and the contract before both: a job that
//! could choose its devices would not be alone on them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nix::unistd::User;
use yard_core::job::Claim;
use yard_core::part::{Master, Start};

use super::mps::MpsClient;
use crate::wire::{Handed, Task};

/// All that a rank's environment depends on.
pub(crate) struct RankEnv<'a> {
    /// The order.
    pub(crate) start: &'a Start,
    /// What is run.
    pub(crate) task: &'a Task,
    /// Which rank of the job.
    pub(crate) rank: u32,
    /// Where ranks meet.
    pub(crate) master: &'a Master,
    /// The node's name.
    pub(crate) node: &'a str,
    /// The part's devices, as CUDA calls them; none where they are no cards.
    pub(crate) devices: &'a [String],
    /// Its way to the card, where it goes through MPS.
    pub(crate) mps: Option<&'a MpsClient>,
    /// Where it talks to the agent.
    pub(crate) socket: &'a Path,
    /// Where it keeps its checkpoints.
    pub(crate) checkpoints: &'a Path,
    /// Where it runs.
    pub(crate) workdir: &'a Path,
}

/// Names that the contract is made of: an operator cannot set them for jobs.
pub(crate) fn is_ours(name: &str) -> bool {
    name.starts_with("YARD_") || name.starts_with("SLURM_")
}

/// What a job begins with, whoever runs the agent: as after a login, and nothing of the agent's own environment, which
/// may hold its operator's secrets.
pub(crate) fn login(name: &str, known: Option<&User>) -> BTreeMap<String, String> {
    let text = |path: Option<&PathBuf>, other: &str| {
        path.map_or_else(|| other.to_owned(), |path| path.to_string_lossy().into_owned())
    };
    let vars = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()),
        ("HOME", text(known.map(|user| &user.dir), "/")),
        ("SHELL", text(known.map(|user| &user.shell), "/bin/sh")),
        ("USER", name.to_owned()),
        ("LOGNAME", name.to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
    ];
    vars.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl RankEnv<'_> {
    /// The whole environment, on top of what the node gives.
    pub(crate) fn environment(&self, base: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut env = base.clone();
        env.extend(self.task.env.clone());
        env.extend(self.secrets());
        // A tracker should see one run, however often the job starts; who has said otherwise knows better.
        env.entry("WANDB_RUN_ID".into()).or_insert_with(|| format!("yard-{}", self.start.part.job));
        env.entry("WANDB_RESUME".into()).or_insert_with(|| "allow".into());
        env.extend(self.own().into_iter().map(|(name, value)| (name.to_owned(), value)));
        env.extend(self.mps.iter().flat_map(|client| client.environment()));
        env.extend(self.torch().into_iter().map(|(name, value)| (name.to_owned(), value)));
        env.extend(self.slurm().into_iter().map(|(name, value)| (name.to_owned(), value)));
        env
    }

    /// The secrets that it finds in its environment.
    fn secrets(&self) -> impl Iterator<Item = (String, String)> {
        let handed = self.task.secrets.iter().filter(|secret| secret.handed == Handed::Env);
        handed.map(|secret| (secret.name.clone(), secret.value.0.clone()))
    }

    fn own(&self) -> Vec<(&'static str, String)> {
        let mut vars = vec![
            ("YARD_JOB_ID", self.start.part.job.to_string()),
            ("YARD_INSTANCE", self.start.part.instance.to_string()),
            ("YARD_RESTARTS", self.restarts()),
            ("YARD_REPORT_S", self.report_every()),
            ("YARD_SOCKET", self.socket.to_string_lossy().into_owned()),
            ("YARD_CHECKPOINT_DIR", self.checkpoints.to_string_lossy().into_owned()),
            ("YARD_STOP_SIGNAL", self.task.stop_signal.clone()),
            ("YARD_NODE", self.node.to_owned()),
            ("YARD_KIND", self.task.kind.clone()),
            ("CUDA_VISIBLE_DEVICES", self.devices.join(",")),
            ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()),
        ];
        vars.extend(self.task.batch_size.map(|size| ("YARD_BATCH_SIZE", size.to_string())));
        vars.extend(self.task.accumulation.map(|times| ("YARD_ACCUMULATION", times.to_string())));
        vars
    }

    fn torch(&self) -> [(&'static str, String); 8] {
        let ranks = self.start.ranks;
        [
            ("MASTER_ADDR", self.master.address.clone()),
            ("MASTER_PORT", self.master.port.to_string()),
            ("WORLD_SIZE", ranks.world.to_string()),
            ("RANK", self.rank.to_string()),
            ("LOCAL_RANK", self.local().to_string()),
            ("LOCAL_WORLD_SIZE", ranks.count.to_string()),
            ("NODE_RANK", ranks.node_rank.to_string()),
            ("GROUP_RANK", ranks.node_rank.to_string()),
        ]
    }

    fn slurm(&self) -> Vec<(&'static str, String)> {
        let ranks = self.start.ranks;
        let mut vars = vec![
            ("SLURM_JOB_ID", self.start.part.job.to_string()),
            ("SLURM_JOBID", self.start.part.job.to_string()),
            ("SLURM_JOB_NAME", self.task.name.clone()),
            ("SLURM_JOB_NUM_NODES", ranks.nodes.to_string()),
            ("SLURM_NNODES", ranks.nodes.to_string()),
            ("SLURM_NTASKS", ranks.world.to_string()),
            ("SLURM_NPROCS", ranks.world.to_string()),
            ("SLURM_PROCID", self.rank.to_string()),
            ("SLURM_LOCALID", self.local().to_string()),
            ("SLURM_NODEID", ranks.node_rank.to_string()),
            ("SLURM_GPUS_ON_NODE", self.devices.len().to_string()),
            ("SLURM_RESTART_COUNT", self.restarts()),
            ("SLURM_SUBMIT_DIR", self.workdir.to_string_lossy().into_owned()),
            ("SLURMD_NODENAME", self.node.to_owned()),
        ];
        // Of a gang this agent knows only itself, and half a list would be worse than none.
        if ranks.nodes == 1 {
            vars.push(("SLURM_NODELIST", self.node.to_owned()));
            vars.push(("SLURM_JOB_NODELIST", self.node.to_owned()));
        }
        vars
    }

    fn local(&self) -> u32 {
        self.rank - self.start.ranks.first
    }

    /// How often at most a rank says how far it is. What is guaranteed is watched step by step.
    fn report_every(&self) -> String {
        if self.start.claim == Claim::Guaranteed { "0.02" } else { "0.2" }.to_owned()
    }

    fn restarts(&self) -> String {
        self.start.part.instance.saturating_sub(1).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::testing::{start, task};

    fn environment(devices: &[String], user: &[(&str, &str)]) -> BTreeMap<String, String> {
        let mut start = start(7, 3);
        start.part.instance = 2;
        start.ranks = yard_core::part::Ranks { first: 4, count: 4, world: 8, node_rank: 1, nodes: 2 };
        let mut task = task(&["true"]);
        task.env = user.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let master = Master { address: "10.0.0.1".into(), port: 29_500 };
        let rank = RankEnv {
            start: &start,
            task: &task,
            rank: 6,
            master: &master,
            node: "n2",
            devices,
            mps: None,
            socket: Path::new("/run/s"),
            checkpoints: Path::new("/ck"),
            workdir: Path::new("/work"),
        };
        rank.environment(&BTreeMap::from([("HOME".into(), "/home/ada".into()), ("X".into(), "node".into())]))
    }

    #[test]
    fn a_rank_of_a_gang_finds_its_place() {
        let devices = ["GPU-a".to_owned(), "GPU-b".to_owned()];
        let env = environment(&devices, &[("X", "user"), ("WANDB_RUN_ID", "mine")]);
        let expected = [
            ("YARD_JOB_ID", "3"),
            ("YARD_INSTANCE", "2"),
            ("YARD_SOCKET", "/run/s"),
            ("YARD_CHECKPOINT_DIR", "/ck"),
            ("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b"),
            ("MASTER_ADDR", "10.0.0.1"),
            ("MASTER_PORT", "29500"),
            ("WORLD_SIZE", "8"),
            ("RANK", "6"),
            ("LOCAL_RANK", "2"),
            ("LOCAL_WORLD_SIZE", "4"),
            ("NODE_RANK", "1"),
            ("SLURM_PROCID", "6"),
            ("SLURM_NNODES", "2"),
            ("SLURM_RESTART_COUNT", "1"),
            ("X", "user"),
            ("HOME", "/home/ada"),
            ("WANDB_RUN_ID", "mine"),
        ];
        for (name, value) in expected {
            assert_eq!(env.get(name).map(String::as_str), Some(value), "{name}");
        }
        assert_eq!(env.get("SLURM_NODELIST"), None);
    }

    #[test]
    fn a_job_cannot_choose_its_devices_and_without_any_it_sees_none() {
        let env = environment(&[], &[("CUDA_VISIBLE_DEVICES", "0,1,2,3"), ("RANK", "0")]);
        assert_eq!(env["CUDA_VISIBLE_DEVICES"], "");
        assert_eq!(env["RANK"], "6");
        assert_eq!(env["WANDB_RUN_ID"], "yard-3");
    }
}
