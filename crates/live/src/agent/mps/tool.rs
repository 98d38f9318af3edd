//! What limits jobs on a node: the driver's control program, or what stands in for it where devices are pretend.

use std::path::PathBuf;

use nix::unistd::{AccessFlags, access};

use super::CONTROL;
use crate::agent::devices::DeviceOffer;
use crate::wire::GroupOnWire;

/// Where the program is looked for besides `PATH`.
const PLACES: [&str; 2] = ["/usr/local/nvidia/bin", "/usr/bin"];

/// What limits jobs on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// The control program.
    Program(PathBuf),
    /// Devices are pretend, and so is what limits jobs there: they are told of it as if it were real.
    Pretend,
    /// Nothing: why, and what to do about it.
    Missing(String),
}

impl Tool {
    /// What there is on this node.
    pub(crate) fn find(offer: &DeviceOffer, groups: &[GroupOnWire], node: &str) -> Tool {
        let cards = || groups.iter().flat_map(|group| &group.devices).any(|device| device.uuid.is_some());
        match offer {
            DeviceOffer::Fake(_) => Tool::Pretend,
            _ if !cards() => Tool::Missing(format!("node {node} offers no GPUs")),
            _ => {
                let path = std::env::var_os("PATH").unwrap_or_default();
                Tool::search(std::env::split_paths(&path).chain(PLACES.map(PathBuf::from)), node)
            }
        }
    }

    pub(super) fn search(folders: impl IntoIterator<Item = PathBuf>, node: &str) -> Tool {
        let runs = |program: &PathBuf| program.is_file() && access(program, AccessFlags::X_OK).is_ok();
        let missing = || format!("{CONTROL} is not installed on node {node}; install the driver's MPS tools");
        let found = folders.into_iter().map(|folder| folder.join(CONTROL)).find(runs);
        found.map_or_else(|| Tool::Missing(missing()), Tool::Program)
    }
}
