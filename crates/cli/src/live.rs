//! The live cluster put together: server, agent and keeper from the options of their commands.

use anyhow::bail;

use crate::cmd::agent::{AgentArgs, KeeperArgs};
use crate::cmd::server::ServerCommandArgs;
use crate::cmd::up::UpArgs;

/// Server, agent and API in this process, until it is told to stop.
pub(crate) fn up(args: &UpArgs) -> anyhow::Result<()> {
    bail!("this build has no live cluster yet: {args:?}")
}

/// A server, until it is told to stop.
pub(crate) fn server(args: &ServerCommandArgs) -> anyhow::Result<()> {
    bail!("this build has no live cluster yet: {args:?}")
}

/// An agent, until it is told to stop.
pub(crate) fn agent(args: &AgentArgs) -> anyhow::Result<()> {
    bail!("this build has no live cluster yet: {args:?}")
}

/// The parent of an agent's jobs, until they are over.
pub(crate) fn keeper(args: &KeeperArgs) -> anyhow::Result<()> {
    bail!("this build has no live cluster yet: {args:?}")
}
