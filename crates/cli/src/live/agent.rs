//! An agent from its options.

use std::net::{ToSocketAddrs, UdpSocket};
use std::path::PathBuf;

use anyhow::{Context, bail};
use yard_core::cluster::{DomainPath, Level};
use yard_live::agent::{
    AgentCommands, AgentConfig, AgentGuests, Confinement, DeviceOffer, Dial, FakeDevices, LOOK, LinkServer,
    resources,
};

use crate::cmd::agent::{AgentArgs, ConfinementOptions, DeviceOptions, Enforced, JobOptions};

/// Where Linux has its control groups.
const CGROUPS: &str = "/sys/fs/cgroup";

/// What the agent is run with. Where it is part of `yard up`, it runs jobs of whoever started that, and they stop with it.
pub(super) fn config(
    data: PathBuf,
    (name, address): (String, String),
    devices: &DeviceOptions,
    jobs: &JobOptions,
    server: LinkServer,
) -> anyhow::Result<AgentConfig> {
    let program = std::env::current_exe().context("cannot find the file of this program")?;
    let itself = |command: &str| vec![program.to_string_lossy().into_owned(), command.to_owned()];
    let (keeper, launcher, cgroups) = (itself("keeper"), itself("launch"), Some(PathBuf::from(CGROUPS)));
    let (offer, freezer, freeze_room_mib) = (offer(devices), itself("freezer"), devices.freeze_room);
    let with_server = matches!(server, LinkServer::Local(_));
    let own = |name: &str| std::env::var(name).ok();
    let job_env = jobs.job_env.iter().map(|variable| variable.resolve(own)).collect::<Result<_, _>>();
    // Jobs are told of files in here, wherever they run.
    let data = std::path::absolute(&data).with_context(|| format!("{} is not a path", data.display()))?;
    Ok(AgentConfig {
        data,
        name,
        address,
        cpu_slots: devices.cpu_slots,
        resources: resources(&offer, &devices.resource),
        domains: devices.domain.iter().fold(DomainPath::default(), domain),
        offer,
        server,
        commands: AgentCommands { keeper, launcher, freezer },
        freeze_room_mib,
        cgroups,
        guests: AgentGuests {
            min_uid: jobs.min_uid,
            own_user_too: with_server,
            job_env: job_env.map_err(anyhow::Error::msg)?,
        },
        take_jobs_along: with_server,
        confinement: confinement(&devices.confinement),
        look: LOOK,
    })
}

fn confinement(options: &ConfinementOptions) -> Confinement {
    Confinement {
        pids_max: options.pids_max,
        job_memory: options.job_memory_default.unwrap_or_default(),
        devices_required: options.devices_enforced == Enforced::Required,
    }
}

fn domain(path: DomainPath, (level, name): &(Level, String)) -> DomainPath {
    path.with(*level, name.as_str())
}

fn offer(devices: &DeviceOptions) -> DeviceOffer {
    let fakes = devices.fake.iter().map(|group| (group.kind.clone(), group.count));
    match devices.no_gpus {
        _ if !devices.fake.is_empty() => DeviceOffer::Fake(FakeDevices(fakes.collect())),
        true => DeviceOffer::NoCards,
        false => DeviceOffer::Found,
    }
}

/// Where its server is.
pub(super) fn dial(args: &AgentArgs) -> anyhow::Result<Dial> {
    let read = |path: &PathBuf| {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        anyhow::Ok(text.trim().to_owned())
    };
    let join_token = args.join_token.as_ref().map(read).transpose()?;
    Ok(Dial { address: host_and_port(&args.server)?, join_token })
}

fn host_and_port(url: &str) -> anyhow::Result<String> {
    let rest = url.strip_prefix("https://").or(url.strip_prefix("http://")).unwrap_or(url);
    let rest = rest.trim_end_matches('/');
    if rest.is_empty() || rest.contains('/') {
        bail!("--server {url}: give the server as https://HOST:PORT");
    }
    let port = rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Ok(if port { rest.to_owned() } else { format!("{rest}:7411") })
}

/// Where other nodes reach this one: what was said, or the address from which it reaches the server.
pub(super) fn address(args: &AgentArgs) -> anyhow::Result<String> {
    if let Some(address) = &args.address {
        return Ok(address.clone());
    }
    let server = host_and_port(&args.server)?;
    let found = || -> std::io::Result<String> {
        let to = server.to_socket_addrs()?.next().ok_or(std::io::ErrorKind::NotFound)?;
        // Nothing is sent: the system only says which of its addresses it would use.
        let socket = UdpSocket::bind(if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
        socket.connect(to)?;
        Ok(socket.local_addr()?.ip().to_string())
    };
    found().with_context(|| format!("no route to {server}; give the address of this machine with --address"))
}

/// What this machine is called.
pub(super) fn host_name() -> anyhow::Result<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() {
        bail!("this machine has no host name; give it a name with --name");
    }
    Ok(name.to_owned())
}
