//! The live cluster end to end: the real binary, real processes, loopback. One file for each thing that people rely on.

#[path = "live/attack_access.rs"]
mod attack_access;
#[path = "live/attack_liveness.rs"]
mod attack_liveness;
#[path = "live/attack_node.rs"]
mod attack_node;
#[path = "live/company.rs"]
mod company;
#[path = "live/exec.rs"]
mod exec;
#[path = "live/faults.rs"]
mod faults;
#[path = "live/freezing.rs"]
mod freezing;
#[path = "live/gangs.rs"]
mod gangs;
#[path = "live/harness.rs"]
mod harness;
#[path = "live/life.rs"]
mod life;
#[path = "live/parts.rs"]
mod parts;
#[path = "live/past.rs"]
mod past;
#[path = "live/policies.rs"]
mod policies;
#[path = "live/robust.rs"]
mod robust;
#[path = "live/same.rs"]
mod same;
#[path = "live/sharing.rs"]
mod sharing;
#[path = "live/steering.rs"]
mod steering;
