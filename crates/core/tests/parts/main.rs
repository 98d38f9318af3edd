//! Agents and server together, without either: one `Gangs`, several `Holder`s, model processes, and channels that
//! delay, repeat and break. Whatever crashes when, a device has one lease, a job one copy, and everything ends.

mod agent;
mod freezing;
mod fuzz;
mod rules;
mod server;
mod world;
