//! Numbers only. This crate knows no job, no policy, no device and no clock: samples, slopes and
//! prices go in, numbers come out, and the same input gives the same answer on every machine (but for the
//! cones with logarithms: see [`conic`]). Limits are arguments, counted in work.
//!
//! `lp`, `milp` and `conic` are the general path; `reference` writes the fair-share problems for it;
//! `simplex` is for few rows and goals in order, and `packed` uses it where jobs share devices.

pub mod conic;
pub mod error;
pub mod gittins;
pub mod lp;
pub mod milp;
pub mod packed;
pub mod reference;
pub mod simplex;

pub use error::SolveError;
pub use gittins::{Gittins, GittinsError};
