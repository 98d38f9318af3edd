//! The simulator: a loop around the scheduler core, with a simulated cluster that owns the truth. It knows
//! no policy (one is handed in) and no wall clock; the same seed gives the same event log, byte for byte.

pub mod asked;
pub mod chaos;
pub mod cluster;
mod company;
mod course;
pub mod estimates;
mod events;
mod fairness;
pub mod faults;
pub mod follow;
pub mod fuzz;
pub mod happened;
pub mod held;
pub mod learned;
pub mod lending;
pub mod lengths;
mod memory;
pub mod naive;
pub mod overheads;
pub mod prices;
mod queue;
pub mod random;
pub mod record;
pub mod run;
pub mod summary;
pub mod thin;
pub mod throughput;
pub mod trace;
pub mod workload;
mod world;

pub use course::Course;
pub use run::{RunLearned, RunOutcome, Simulation, Speeds, run, view_at};
pub use world::Quirks;
