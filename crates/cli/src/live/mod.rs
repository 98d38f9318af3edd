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
use yard_live::agent::LinkServer;

use self::server::RunningServer;
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
        let local = (!args.no_agent).then_some(name.as_str());
        let running = server::start(&args.server, local).await?;
        let stop = CancellationToken::new();
        let here = (!args.no_agent).then(|| {
            let address = running.address.ip().to_string();
            let data = args.server.data.join("agent");
            let server = LinkServer::Local(running.handle.clone());
            agent::config(data, (name.clone(), address), &args.devices, &args.jobs, server)
        });
        let here = here.transpose()?;
        let node = here.as_ref().map(|config| config.name.clone());
        let agent = here.map(|config| tokio::spawn(yard_live::agent::run(config, stop.clone())));
        running.has(node.as_deref()).await;
        greet(&running, &args.server.data);
        let broke = wait(agent, &running).await;
        let left = farewell(running, node).await;
        stop.cancel();
        broke.and(left)
    })
}

/// A server, until it is told to stop.
pub(crate) fn server(args: &ServerCommandArgs) -> anyhow::Result<()> {
    start_log(&args.server.log)?;
    threads()?.block_on(async {
        let running = server::start(&args.server, None).await?;
        greet(&running, &args.server.data);
        let broke = wait(None, &running).await;
        farewell(running, None).await.and(broke)
    })
}

/// An agent, until it is told to stop.
pub(crate) fn agent(args: &AgentArgs) -> anyhow::Result<()> {
    start_log(&args.log)?;
    let name = args.name.clone().map_or_else(agent::host_name, Ok)?;
    let dial = agent::dial(args)?;
    let address = agent::address(args)?;
    let server = LinkServer::Dial(dial);
    let config = agent::config(args.data.clone(), (name, address), &args.devices, &args.jobs, server)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = CancellationToken::new();
        let agent = yard_live::agent::run(config, stop.clone());
        tokio::pin!(agent);
        tokio::select! {
            ended = &mut agent => return ended,
            () = stop::asked() => {}
        }
        note("stopping; the jobs of this node keep running, and the next start takes them over");
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
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")
}

fn start_log(level: &str) -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_new(level)
        .with_context(|| format!("--log {level}: use error, warn, info, debug or trace"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    log.with_target(false).with_ansi(crate::output::is_watched()).init();
    Ok(())
}

/// What to do next.
fn greet(running: &RunningServer, data: &Path) {
    note(&format!(
        "Switchyard is up at {}  (policy {}, data in {})\n\
         Open it in a browser and log in with the token in {}.\n{}\n\
         Try:  yard submit -- sleep 30      yard jobs      yard top      yard explain last\n\
         Ctrl-C stops it cleanly; the next start continues where it left off.",
        running.url,
        running.policy,
        data.display(),
        data.join("token").display(),
        how_to_find(data),
    ));
    if running.set_aside() > 0 {
        note(&format!(
            "WARNING: the scheduler failed on {} of its inputs, which were set aside. To list them: yard repair \
             --data {}",
            running.set_aside(),
            data.display()
        ));
    }
}

/// How the command line finds a server with this data folder.
fn how_to_find(data: &Path) -> String {
    let data = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    let here = std::env::current_dir().unwrap_or_default();
    let found = |folder: &Path| data.parent().is_some_and(|parent| folder.starts_with(parent));
    if data.ends_with(".yard") && found(&here) {
        return "In this folder, yard commands find this server without further settings.".into();
    }
    let text = data.display().to_string();
    let quoted = if text.contains([' ', '\'']) { format!("'{}'", text.replace('\'', r"'\''")) } else { text };
    format!("To use it from other shells:  export YARD_DATA={quoted}")
}

/// Waits until somebody wants it to stop, or the agent breaks down.
async fn wait(
    agent: Option<tokio::task::JoinHandle<anyhow::Result<()>>>,
    running: &RunningServer,
) -> anyhow::Result<()> {
    let agent_ended = async {
        match agent {
            Some(agent) => agent.await.map_err(anyhow::Error::from).and_then(|ended| ended),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop::asked() => Ok(()),
        () = running.failed() => anyhow::bail!("the scheduler stopped unexpectedly; see the log above"),
        ended = agent_ended => ended.context("the agent on this machine stopped"),
    }
}

/// Jobs of the node that goes away save and stop; the journal is closed. Of a scheduler that died nothing is asked.
async fn farewell(running: RunningServer, node: Option<String>) -> anyhow::Result<()> {
    if !running.handle.is_alive() {
        return Ok(());
    }
    if node.is_some() {
        note(
            "stopping: jobs on this machine save and stop (press Ctrl-C again to leave them running for the \
        next start)",
        );
    }
    tokio::select! {
        done = tokio::time::timeout(FAREWELL, running.end(node)) => done.context("the jobs took too long to stop")?,
        () = stop::asked() => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use yard_live::handle::Ask;

    use super::*;

    #[derive(Parser)]
    struct LiveOptions {
        #[command(flatten)]
        server: crate::cmd::server::ServerOptions,
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_scheduler_that_stops_by_itself_ends_the_process() {
        let folder = std::env::temp_dir().join(format!("yard-ends-{}", std::process::id()));
        let data = folder.to_string_lossy().into_owned();
        let options = LiveOptions::parse_from(["yard", "--listen", "127.0.0.1:0", "--data", &data]);
        let running = server::start(&options.server, None).await.expect("a server starts");
        let leave = Vec::new();
        running.handle.ask(|reply| Ask::Shutdown { leave, reply }).await.expect("the driver is told to end");
        let ended = wait(None, &running).await.expect_err("the process must end with an error");
        assert!(ended.to_string().contains("stopped unexpectedly"), "{ended}");
        farewell(running, None).await.expect("nothing is left to wait for");
        let _ = std::fs::remove_dir_all(folder);
    }
}
