//! What the scheduler promises, seen from outside: inputs in, orders and events out.

#[path = "../common/mod.rs"]
mod common;

mod after;
mod delays;
mod explain;
mod fixed;
mod groups;
mod health;
mod holding;
mod idling;
mod leases;
mod life;
mod nodes;
mod order;
mod plans;
mod promises;
mod properties;
mod regressions;
mod replay;
mod rounds;
mod training;
mod turns;
