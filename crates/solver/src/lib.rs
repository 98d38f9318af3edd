//! Numbers only. This crate knows no job, no policy, no device and no clock: samples, speeds and
//! capacities go in, shares and prices come out, and the same input gives the same answer on every machine.

pub mod assignment;
pub mod choice;
pub mod completion;
pub mod conic;
pub mod downsets;
pub mod error;
pub mod gittins;
pub mod lp;
pub mod market;
pub mod milp;
pub mod packed;
pub mod reference;
pub mod simplex;

pub use completion::Completion;
pub use error::SolveError;
pub use gittins::{Gittins, GittinsError};
