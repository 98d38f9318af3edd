//! Numbers only. This crate knows no job, no policy, no device and no clock: samples, slopes and
//! (later) prices go in, numbers come out, and the same input gives the same answer on every machine.

pub mod completion;
pub mod gittins;

pub use completion::Completion;
pub use gittins::{Gittins, GittinsError};
