//! What the screen shows, asked for each second.

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use yard_live::views::{JobList, JobView, NodeList, NodeView, StatusView};

use crate::client::{Answer, Client, WhichJobs};

/// From one look to the next.
const EVERY: Duration = Duration::from_secs(1);

/// The cluster at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Look {
    pub(super) status: StatusView,
    pub(super) nodes: Vec<NodeView>,
    pub(super) jobs: Vec<JobView>,
    /// Jobs of others that are not over and that may not be seen.
    pub(super) hidden: u64,
}

/// Looks as they come, or why there is none.
pub(super) type FeedNews = Receiver<Result<Look, String>>;

/// Looks once.
pub(super) fn look(client: &Client) -> Answer<Look> {
    let status = client.get("/v1/status", &[])?;
    let NodeList { nodes } = client.get("/v1/nodes", &[])?;
    let JobList { jobs, hidden, .. } = client.jobs(&WhichJobs::default())?;
    Ok(Look { status, nodes, jobs, hidden })
}

/// Looks for as long as somebody wants the news.
pub(super) fn start(client: Client) -> FeedNews {
    let (send, news) = channel();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(EVERY);
            if send.send(look(&client).map_err(|failure| failure.to_string())).is_err() {
                return;
            }
        }
    });
    news
}
