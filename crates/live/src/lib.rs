//! The live cluster: the loop that runs the core against real machines. One thread, the *driver*, owns the engine
//! and its journal; the API and the agents' connections ask it through a `Handle`. Agents run processes through a
//! *keeper* that outlives them. Only this crate and the binary read clocks.

pub mod board;
pub mod driver;
pub mod handle;
pub mod history;
mod planner;
pub mod request;
#[cfg(test)]
mod scratch;
pub mod store;
pub mod translate;
pub mod views;
pub mod wire;

pub use planner::MakePolicy;
