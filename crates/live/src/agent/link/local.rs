//! A server in the same process: no sockets, the same words.

use tokio::sync::mpsc;

use super::Ends;
use crate::exec::agents::AgentCall;
use crate::handle::Handle;
use crate::wire::{FromAgent, ORDERS_MAX};

/// Connects, and passes on what either side says until the server closes.
pub(super) async fn converse(handle: &Handle, ends: &mut Ends) -> anyhow::Result<()> {
    let FromAgent::Hello(hello) = ends.hello().await? else { anyhow::bail!("an agent begins with hello") };
    let (link, mut said) = mpsc::channel(ORDERS_MAX);
    let connection =
        handle.ask(|reply| AgentCall::Connect { hello: Box::new(hello), link, reply }.into()).await?;
    loop {
        tokio::select! {
            said = said.recv() => match said {
                Some(said) => ends.hear(said),
                None => break,
            },
            message = ends.next() => {
                let Some(message) = message else { break };
                if handle.asks.send(AgentCall::From { connection, message, room: None }.into()).await.is_err() {
                    break;
                }
            }
        }
    }
    let _gone = handle.asks.send(AgentCall::Disconnect { connection }.into()).await;
    Ok(())
}
