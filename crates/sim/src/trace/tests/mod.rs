//! Tests that cross the files of this module; each on its own idea.

mod clusters;
mod fuzz;
mod generated;
mod messages;
mod round_trip;
mod samples;
