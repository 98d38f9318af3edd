//! The commands, one a file.

pub(crate) mod agent;
pub(crate) mod bench;
pub(crate) mod cancel;
pub(crate) mod drain;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod fuzz;
pub(crate) mod jobs;
pub(crate) mod logs;
pub(crate) mod nodes;
pub(crate) mod plan;
pub(crate) mod policies;
pub(crate) mod repair;
pub(crate) mod secret;
pub(crate) mod server;
pub(crate) mod show;
pub(crate) mod sim;
pub(crate) mod submit;
pub(crate) mod token;
pub(crate) mod top;
pub(crate) mod trace;
pub(crate) mod up;
pub(crate) mod validate;
pub(crate) mod what_if;
