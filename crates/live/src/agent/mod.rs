//! The agent: runs on a machine with devices, dials the server, and executes what `yard_core::holder` decides.

pub(crate) mod clock;
mod keeper;
#[cfg(test)]
mod testing;

pub use self::keeper::{keeper_main, launch_main};
