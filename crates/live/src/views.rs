//! What the API answers: one type for each thing that people look at. The keys are part of the contract.

mod access;
mod cluster;
mod estimates;
mod jobs;
mod what_if;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use access::{
    AuditList, AuditView, JoinReply, JoinRequest, MeView, NewToken, SecretList, SecretRequest, SecretView,
    TokenList, TokenRequest, TokenView,
};
pub use cluster::{ChangeView, DeviceView, NodeList, NodeView, ResourceView, StatusView};
pub use estimates::{EstimateView, IntervalView, UnknownView};
pub use jobs::{
    EventList, EventView, Explanation, JobList, JobView, LengthView, QueueView, QueuedView, WayView,
};
pub use what_if::{DelayView, WhatIfRow, WhatIfView};

/// An error, as the API says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorView {
    /// In a sentence, with the remedy.
    pub error: String,
    /// The field it is about, where it is about one.
    pub field: Option<String>,
}
