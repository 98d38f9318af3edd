//! The live cluster: the loop that runs the core against real machines. One thread, the *driver*, owns the engine
//! and its journal; the API and the agents' connections ask it through a `Handle`. Agents run processes through a
//! *keeper* that outlives them. Only this crate and the binary read clocks.

pub mod agent;
pub mod board;
pub mod handle;
pub mod request;
pub mod views;
pub mod wire;
