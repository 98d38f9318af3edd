//! A server from its options: driver, tokens, certificates, API.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use yard_core::policy::{Knowledge, Priorities};
use yard_core::units::Span;
use yard_live::api::{self, ApiSite};
use yard_live::auth::Tokens;
use yard_live::ca::{Authority, write_private};
use yard_live::clock::now_us;
use yard_live::driver::{Config, Driver};
use yard_live::exec::agents::CardSharing;
use yard_live::handle::{Ask, Handle};
use yard_live::history::History;
use yard_live::metrics::Metrics;
use yard_live::quota::{Quota, QuotaLimits};
use yard_live::secrets::Secrets;
use yard_live::store::certificates::BarredCertificate;
use yard_live::topology::Topology;
use yard_live::{Estimating, MakePlacer, MakePolicy};
use yard_live::{listen, tls};

use super::catalog::CatalogTable;
use super::replay::Simulator;
use crate::cmd::server::{Believed, PromisesFlag, ServerOptions, SharingFlag};
use crate::policy::{Chosen, PREFIX, ProgramUses};

/// How long the scheduling loop may be silent before `/readyz` says so.
const STALL: Duration = Duration::from_secs(15);

/// How long a request may take until its answer begins.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often jobs are foretold at most.
const ESTIMATES_EVERY: Span = Span::from_whole_secs(15);

/// How often, and after how long each time, to look whether this machine has joined.
const JOIN_TRIES: u32 = 100;
const JOIN_PAUSE: Duration = Duration::from_millis(20);

/// A server that runs.
pub(super) struct RunningServer {
    pub(super) handle: Handle,
    pub(super) address: SocketAddr,
    pub(super) url: String,
    pub(super) policy: String,
    driver: JoinHandle<()>,
    stop: CancellationToken,
    tasks: TaskTracker,
    tokens: Arc<Tokens>,
}

/// Starts a server; it answers once this returns. `local`: the name of the node that this process will be itself.
pub(super) async fn start(options: &ServerOptions, local: Option<&str>) -> anyhow::Result<RunningServer> {
    let metrics = Metrics::new();
    yard_policies::placer(&options.placer)?;
    let chosen = Chosen::find(&options.policy, &Arc::from([]), ProgramUses::Server)?;
    let (make, placer) = (maker(chosen.clone()), placer(&options.placer));
    let mut config = config(options, &metrics)?;
    // Once in the life of the process.
    let needs: &'static [Knowledge] = Box::leak(chosen.needs.clone().into_boxed_slice());
    (config.priorities, config.needs) = (chosen.priority, needs);
    let round = config.settings.round;
    let listener = TcpListener::bind(options.listen).await;
    let listener = listener.with_context(|| format!("cannot listen on {}", options.listen))?;
    let (handle, driver) = Driver::start(config, make, placer)?;
    let data = &options.data;
    let authority = Arc::new(Authority::open(&data.join("ca"), now_us())?);
    let tokens = Arc::new(Tokens::open(&data.join("yard.db"))?);
    first_tokens(data, &tokens, &authority)?;
    local.map_or(Ok(()), |node| hold_name(&tokens, node))?;
    let address = listener.local_addr()?;
    let identity = authority.server(&names(options, address), now_us())?;
    let acceptor = tls::server(&authority, identity)?;
    let url = name_server(data, address, &authority)?;
    let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
    let site = ApiSite {
        handle: handle.clone(),
        history: Arc::new(History::open(data, round)?),
        tokens: tokens.clone(),
        secrets: Arc::new(Secrets::open(data)?),
        authority,
        metrics,
        stall: STALL,
        patience: PATIENCE,
        asking: Default::default(),
        quota: Quota::new(QuotaLimits {
            user_streams: options.user_streams_max,
            token_requests: options.token_requests,
            ..QuotaLimits::default()
        }),
        replayer: Arc::new(Simulator { present: chosen.clone() }),
        stop: stop.clone(),
    };
    let site = Arc::new(site);
    tasks.spawn(api::housekeeping(site.clone()));
    let router = api::router(site);
    tasks.spawn(listen::serve(listener, acceptor, router, listen::ListenLimits::for_process(), stop.clone()));
    let policy = options.policy.clone();
    if let Some(file) = chosen.file() {
        tracing::info!(program = %file.display(), "a program decides");
    }
    let warnings = yard_live::warnings::of_policy(&policy, needs);
    warnings.into_iter().chain(unheeded(&handle, &chosen)).for_each(|warning| tracing::warn!("{warning}"));
    Ok(RunningServer { handle, address, url, policy, driver, stop, tasks, tokens })
}

impl RunningServer {
    /// Waits for this machine to be a node that takes jobs, but not for ever: it may be drained.
    pub(super) async fn has(&self, node: Option<&str>) {
        let Some(node) = node else { return };
        for _ in 0..JOIN_TRIES {
            if self.is_up(node) {
                return;
            }
            tokio::time::sleep(JOIN_PAUSE).await;
        }
    }

    fn is_up(&self, node: &str) -> bool {
        let board = self.handle.board.read().unwrap_or_else(PoisonError::into_inner);
        board.nodes.get(node).is_some_and(|node| node.state == "up")
    }

    /// Inputs that were set aside because the scheduler failed on them.
    pub(super) fn set_aside(&self) -> u64 {
        let board = self.handle.board.read().unwrap_or_else(PoisonError::into_inner);
        board.status.as_ref().map_or(0, |status| status.set_aside)
    }

    /// Waits for the driver to end, which it should not.
    pub(super) async fn failed(&self) {
        self.handle.asks.closed().await;
    }

    /// Ends it: jobs on the node that goes away with this process save and stop.
    pub(super) async fn end(self, node: Option<String>) -> anyhow::Result<()> {
        let leave = node.into_iter().collect();
        let ended = self.handle.ask(|reply| Ask::Shutdown { leave, reply }).await;
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        drop(self.handle);
        let driver = tokio::task::spawn_blocking(move || self.driver.join());
        driver.await?.map_err(|_| anyhow::anyhow!("the scheduler failed while it stopped"))?;
        self.tokens.flush()?;
        Ok(ended?)
    }
}

fn config(options: &ServerOptions, metrics: &Metrics) -> anyhow::Result<Config> {
    let mut config = Config::new(&options.data);
    config.settings.round = options.round.0;
    config.settings.backoff = options.backoff.0;
    config.settings.promises = options.promises == PromisesFlag::On;
    config.policy = options.policy.clone();
    config.terms.lease = options.lease.0;
    config.grace_max = options.grace_max.0;
    config.terms.beat = config.terms.beat.min(yard_core::Span(options.lease.0.0 / 4));
    config.terms.sharing = match options.sharing {
        SharingFlag::Plain => CardSharing::Plain,
        SharingFlag::Mps => CardSharing::Mps,
    };
    config.learn = options.belief == Believed::Learned;
    config.limits.jobs_per_user = options.user_jobs_max;
    anyhow::ensure!(options.user_promised_max >= 0.0, "--user-promised-max must be 0 or more device-hours");
    config.limits.promised_hours_per_user = options.user_promised_max;
    config.limits.bytes_per_user =
        usize::try_from(options.user_bytes_max.saturating_mul(1 << 20)).unwrap_or(usize::MAX);
    config.meter = Arc::new(metrics.clone());
    config.estimates = Some(Estimating { every: ESTIMATES_EVERY, placer: placer(&options.placer) });
    if let Some(path) = &options.topology {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        config.topology = Topology::parse(&text).with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &options.throughputs {
        config.catalog = Arc::new(CatalogTable::open(path)?);
    }
    Ok(config)
}

/// Jobs from before whose priorities do not count under this policy, where there are any.
fn unheeded(handle: &Handle, policy: &Chosen) -> Option<String> {
    let board = handle.board.read().unwrap_or_else(PoisonError::into_inner);
    let live = board.jobs.values().filter(|job| job.priority != 0 && job.ended_at.is_none()).count();
    let refused = matches!(policy.priority, Priorities::Refused(_)) && live > 0;
    let name = &policy.name;
    refused.then(|| format!("policy {name} ignores priorities, and {live} jobs have one"))
}

/// Makes the placer anew; its name is checked elsewhere, and a wrong one never gets here.
fn placer(name: &str) -> MakePlacer {
    let name = name.to_owned();
    Arc::new(move || yard_policies::placer(&name).expect("it was made once already"))
}

/// Makes a new policy whenever one is wanted.
fn maker(policy: Chosen) -> MakePolicy {
    Arc::new(move || policy.make())
}

/// The same for one of the table that users ask about. They name no programs: only whoever starts the server does.
pub(super) fn policy(spec: &str) -> anyhow::Result<MakePolicy> {
    if spec.starts_with(PREFIX) {
        anyhow::bail!(
            "{spec}: programs can only be used on the server's command line; choose a policy from yard policies"
        );
    }
    Ok(maker(Chosen::find(spec, &Arc::from([]), ProgramUses::Server)?))
}

/// The names by which agents and people reach this machine.
fn names(options: &ServerOptions, address: SocketAddr) -> Vec<String> {
    let mut names = options.host.clone();
    if !address.ip().is_unspecified() {
        names.push(address.ip().to_string());
    }
    names
}

/// Writes the first tokens where only their owner reads them.
fn first_tokens(data: &Path, tokens: &Tokens, authority: &Authority) -> anyhow::Result<()> {
    let user = yard_live::agent::own_name();
    if let Some(first) = tokens.first(&user, &authority.fingerprint())? {
        write_private(&data.join("token"), &format!("{}\n", first.admin.secret))?;
        write_private(&data.join("join-token"), &format!("{}\n", first.join.secret))?;
    }
    Ok(())
}

/// Keeps this machine's name from others, before any of them can ask.
fn hold_name(tokens: &Tokens, node: &str) -> anyhow::Result<()> {
    match tokens.store().hold_local(node, now_us()) {
        Err(BarredCertificate::Taken(_)) => anyhow::bail!(
            "another machine has already joined as node {node}; start with --name OTHER or --no-agent, or free \
             the name: yard nodes rm {node}"
        ),
        other => Ok(other?),
    }
}

/// Says where the server is, for the command line on this machine.
fn name_server(data: &Path, address: SocketAddr, authority: &Authority) -> anyhow::Result<String> {
    let ip = address.ip();
    let local = ip.is_loopback() || ip.is_unspecified();
    let url =
        if local { format!("http://127.0.0.1:{}", address.port()) } else { format!("https://{address}") };
    let url = if ip.is_loopback() && ip.is_ipv6() { format!("http://[::1]:{}", address.port()) } else { url };
    let named = serde_json::json!({ "url": url, "ca": authority.pem() });
    crate::output::write_whole(&data.join("server.json"), named.to_string().as_bytes())?;
    Ok(url)
}
