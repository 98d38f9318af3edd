//! The live cluster: the loop that runs the core against real machines. One thread, the *driver*, owns the engine
//! and its journal; the API asks it through a `Handle`. A *backend* (`exec`) runs the jobs: our agents, who start
//! processes through a *keeper* that outlives them. Only this crate and the binary read clocks.

pub mod agent;
pub mod api;
pub mod auth;
mod background;
pub mod board;
pub mod ca;
pub mod changes;
pub mod clock;
pub mod driver;
pub mod enroll;
pub mod entitlements;
pub mod exec;
pub mod explain;
mod forecaster;
pub mod handle;
pub mod history;
mod likeness;
pub mod listen;
pub mod metrics;
pub mod offers;
pub mod pace;
mod past;
mod pattern;
mod planner;
pub mod quota;
pub mod replay;
pub mod request;
#[cfg(test)]
mod scratch;
pub mod secrets;
pub mod store;
pub mod tls;
pub mod topology;
pub mod translate;
pub mod views;
pub mod warnings;
pub mod what_if;
pub mod wire;

pub use background::give_way;
pub use forecaster::{Estimating, MakePlacer};
pub use planner::MakePolicy;
