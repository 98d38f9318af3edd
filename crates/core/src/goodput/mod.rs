//! What is believed of jobs that train: how long their steps take on any number of devices of a kind, how much a
//! larger step teaches, and so which batch size is best where, and how fast the job then is.
//!
//! Goodput is examples a second times the part of them that counts: `goodput = throughput × efficiency` (Qiao et al.,
//! "Pollux", OSDI 2021; Jayaram Subramanya et al., "Sia", SOSP 2023). `model` has the throughput, `noise` the
//! efficiency, `choice` the best batch size, `fit` the model that suits what was seen (`points`), and `learned`
//! what one job is known by. Pure functions of reports: nothing here knows a clock or another job.

pub(crate) mod checks;
pub mod choice;
pub mod fit;
pub mod learned;
pub mod model;
pub mod noise;
mod points;

pub use choice::{Choice, Limits};
pub use fit::fit;
pub use learned::Goodput;
pub use model::{Line, Model};
