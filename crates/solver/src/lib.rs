//! Numbers only. This crate knows no job, no policy, no device and no clock: samples, speeds and
//! capacities go in, shares and prices come out, and the same input gives the same answer on every machine.

pub mod gittins;
pub mod market;

pub use gittins::{Gittins, GittinsError};
