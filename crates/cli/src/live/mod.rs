//! The live cluster put together: server, agent and keeper from the options of their commands.

mod agent;
mod catalog;
mod replay;
mod server;
mod stop;

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use tokio_util::sync::CancellationToken;
use yard_live::agent::Server;

use self::server::Running;
use crate::cmd::agent::{AgentArgs, FreezerArgs, KeeperArgs};
use crate::cmd::server::ServerCommandArgs;
use crate::cmd::up::UpArgs;
use crate::output::note;

/// How long jobs may take to save when everything stops, before they are left to the next start.
const FAREWELL: Duration = Duration::from_secs(120);

/// Server, agent and API in this process, until it is told to stop.
pub(crate) fn up(args: &UpArgs) -> anyhow::Result<()> {
    start_log(&args.server.log)?;
    let name = args.name.clone().map_or_else(agent::host_name, Ok)?;
    threads()?.block_on(async {
        let running = server::start(&args.server).await?;
        let stop = CancellationToken::new();
        let here = (!args.no_agent).then(|| {
            let address = running.address.ip().to_string();
            let data = args.server.data.join("agent");
            let server = Server::Local(running.handle.clone());
            agent::config(data, name.clone(), address, &args.devices, server, true)
        });
        let here = here.transpose()?;
        let node = here.as_ref().map(|config| config.name.clone());
        let agent = here.map(|config| tokio::spawn(yard_live::agent::run(config, stop.clone())));
        running.has(node.as_deref()).await;
        greet(&running, &args.server.data);
        let broke = wait(agent, &running).await;
        farewell(running, node).await?;
        stop.cancel();
        broke
    })
}

/// A server, until it is told to stop.
pub(crate) fn server(args: &ServerCommandArgs) -> anyhow::Result<()> {
    start_log(&args.server.log)?;
    threads()?.block_on(async {
        let running = server::start(&args.server).await?;
        greet(&running, &args.server.data);
        stop::asked().await;
        farewell(running, None).await
    })
}

/// An agent, until it is told to stop.
pub(crate) fn agent(args: &AgentArgs) -> anyhow::Result<()> {
    start_log(&args.log)?;
    let name = args.name.clone().map_or_else(agent::host_name, Ok)?;
    let dial = agent::dial(args)?;
    let address = agent::address(args)?;
    let config = agent::config(args.data.clone(), name, address, &args.devices, Server::Dial(dial), false)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        let agent = yard_live::agent::run(config, stop.clone());
        tokio::pin!(agent);
        tokio::select! {
            ended = &mut agent => return ended,
            () = stop::asked() => {}
        }
        note("stopping; the jobs of this node run on, and the next start finds them");
        stop.cancel();
        agent.await
    })
}

/// The parent of an agent's jobs, until they are over.
pub(crate) fn keeper(args: &KeeperArgs) -> anyhow::Result<()> {
    start_log("info")?;
    yard_live::agent::keeper_main(&args.dir)
}

/// What moves processes from cards to memory and back, until its agent is gone.
pub(crate) fn freezer(args: &FreezerArgs) -> anyhow::Result<()> {
    start_log("info")?;
    yard_live::agent::freezer_main(&args.dir, args.fake)
}

fn threads() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no threads can be started")
}

fn start_log(level: &str) -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_new(level)
        .with_context(|| format!("--log {level}: use error, warn, info, debug or trace"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    log.with_target(false).with_ansi(crate::output::is_watched()).init();
    Ok(())
}

/// What to do next.
fn greet(running: &Running, data: &Path) {
    note(&format!(
        "Switchyard is up at {}  (policy {}, data in {})\n\
         Open it in a browser and log in with the token in {}; the command line finds it by itself from this folder.\n\
         Try:  yard submit -- sleep 30      yard jobs      yard top      yard explain last\n\
         Ctrl-C stops it tidily; the next start finds everything as it was.",
        running.url,
        running.policy,
        data.display(),
        data.join("token").display(),
    ));
}

/// Waits until somebody wants it to stop, or the agent breaks down.
async fn wait(
    agent: Option<tokio::task::JoinHandle<anyhow::Result<()>>>,
    running: &Running,
) -> anyhow::Result<()> {
    let agent_ended = async {
        match agent {
            Some(agent) => agent.await.map_err(anyhow::Error::from).and_then(|ended| ended),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop::asked() => Ok(()),
        () = running.failed() => anyhow::bail!("the scheduler stopped by itself; its log says why"),
        ended = agent_ended => ended.context("the agent of this machine stopped"),
    }
}

/// Jobs of the node that goes away save and stop; the journal is closed.
async fn farewell(running: Running, node: Option<String>) -> anyhow::Result<()> {
    if node.is_some() {
        note("stopping: jobs on this machine save and stop (once more Ctrl-C leaves them to the next start)");
    }
    tokio::select! {
        done = tokio::time::timeout(FAREWELL, running.end(node)) => done.context("jobs took too long to stop")?,
        () = stop::asked() => Ok(()),
    }
}
