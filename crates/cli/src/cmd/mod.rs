//! The commands, one a file.

pub(crate) mod bench;
pub(crate) mod fuzz;
pub(crate) mod plan;
pub(crate) mod policies;
pub(crate) mod sim;
pub(crate) mod trace;
pub(crate) mod validate;
