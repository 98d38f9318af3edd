//! The scheduler core: from jobs, nodes and reports to leases. It knows no clock, no socket, no thread,
//! no file and no randomness of its own; it knows no policy and no solver either: it asks for a plan as
//! an effect and gets the answer as an input. The simulator and the live server are two loops around it.

pub mod allocation;
pub mod amounts;
pub mod beat;
pub mod belief;
mod bits;
mod book;
pub mod cluster;
pub mod domains;
pub mod engine;
pub mod explain;
pub mod forecast;
pub mod gang;
mod gate;
pub mod goodput;
pub mod guard;
pub mod holder;
pub mod ids;
mod invariants;
pub mod job;
mod leases;
pub mod lengths;
pub mod message;
pub mod part;
pub mod placement;
pub mod policy;
pub mod promise;
pub mod reach;
pub mod reclaim;
pub mod rising;
mod rounds;
pub mod settings;
pub mod state;
pub mod table;
pub mod training;
pub mod turns;
pub mod units;
pub mod view;

pub use engine::Engine;
pub use settings::Settings;
pub use state::State;
pub use turns::Turns;
pub use units::{Span, Time};
