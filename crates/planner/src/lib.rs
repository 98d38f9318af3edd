//! How fast a model trains on so many devices of a kind, how much memory that takes, and which split is the fastest that
//! fits: tensor, pipeline and data parallelism, micro-batch, interleaving, recomputation, sharding, offloading. Numbers
//! only: this crate knows no job, no node, no file, no clock and no randomness.
//!
//! [`evaluate`] predicts one split of a [`Transformer`] on an [`Accelerator`]; [`search()`] finds the best one for a number of
//! devices, and [`list()`] does so for all kinds and counts. [`chain`] does the same for layers that are unlike, also on
//! stages of unlike kinds. [`serving`] says how many replicas answer in time.

pub mod accelerator;
pub mod catalogue;
pub mod chain;
pub mod fit;
pub mod flaw;
mod layer;
pub mod list;
pub mod memory;
pub mod plan;
pub mod search;
pub mod serving;
mod step;
pub mod transformer;

pub use accelerator::Accelerator;
pub use flaw::Flaw;
pub use list::list;
pub use plan::{Offload, ParallelPlan, Recompute, Sharding};
pub use search::search;
pub use step::{Prediction, evaluate};
pub use transformer::{Attention, Transformer};
