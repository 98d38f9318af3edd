//! The files of this machine's cards, by number: what a part may open of them is what it holds. The files by which all
//! processes talk to the driver stay open; those that split cards are nobody's.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::{major, minor};
use yard_core::part::Held;

use super::bpf::DeviceRule;
use super::cards::CardPlace;

/// NVIDIA's number, as its makers registered it.
const NVIDIA: u32 = 195;

/// Of that number: for display modes, and for the driver as a whole.
const NVIDIA_CONTROL: [u32; 2] = [254, 255];

/// The maker of a PCI device.
const NVIDIA_VENDOR: &str = "0x10de";

/// Where a card is, to the driver and on the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CardAddress {
    /// Its minor number.
    pub(crate) minor: u32,
    /// As `0000:18:00.0`.
    pub(crate) pci: String,
}

/// A device file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceFile {
    /// Its path.
    pub(crate) path: PathBuf,
    /// Its numbers.
    pub(crate) major: u32,
    pub(crate) minor: u32,
    /// The card it belongs to; none: it is nobody's.
    pub(crate) card: Option<CardPlace>,
}

/// All of them that are to be guarded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceFiles {
    /// The files that there are.
    pub(crate) files: Vec<DeviceFile>,
    /// Numbers of which everything else is closed too, whenever it comes to be there.
    pub(crate) closed: Vec<u32>,
    /// What stays open of those.
    pub(crate) control: Vec<(u32, u32)>,
}

impl DeviceFiles {
    /// Those of this machine, whose cards are there. Fails where a card has no file: its jobs could not use it.
    pub(crate) fn find(
        dev: &Path,
        sys: &Path,
        cards: &[(CardPlace, CardAddress)],
    ) -> Result<DeviceFiles, String> {
        let by = |wanted: &dyn Fn(&CardAddress) -> bool| {
            cards.iter().find(|(_, address)| wanted(address)).map(|(place, _)| *place)
        };
        let mut all = DeviceFiles::default();
        for (path, (major, minor)) in numbered(dev, is_card) {
            let card = by(&|address| major == NVIDIA && address.minor == minor);
            all.files.push(DeviceFile { path, major, minor, card });
        }
        let known = |place: &CardPlace| all.files.iter().any(|file| file.card == Some(*place));
        if let Some((_, address)) = cards.iter().find(|(place, _)| !known(place)) {
            return Err(format!("GPU {} has no device file in {}", address.pci, dev.display()));
        }
        if !all.files.is_empty() {
            all.closed.push(NVIDIA);
            all.control = NVIDIA_CONTROL.map(|minor| (NVIDIA, minor)).to_vec();
        }
        for (path, (major, minor)) in numbered(&dev.join("nvidia-caps"), |_| true) {
            all.files.push(DeviceFile { path, major, minor, card: None });
            all.closed.push(major);
        }
        for (path, pci, (major, minor)) in rendering(dev, sys) {
            let card = by(&|address| address.pci == pci);
            all.files.push(DeviceFile { path, major, minor, card });
        }
        Ok(all)
    }

    /// Whether there is nothing to guard.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.closed.is_empty()
    }

    /// What a part with these devices may open.
    pub(crate) fn rules(&self, held: &[Held]) -> Vec<DeviceRule> {
        let rule = |major, minor, open| DeviceRule { major, minor: Some(minor), open };
        let (own, others): (Vec<_>, Vec<_>) = self.files.iter().partition(|file| file.is_held(held));
        let mut rules: Vec<_> = own.iter().map(|file| rule(file.major, file.minor, true)).collect();
        rules.extend(self.control.iter().map(|(major, minor)| rule(*major, *minor, true)));
        rules.extend(others.iter().map(|file| rule(file.major, file.minor, false)));
        rules.extend(self.closed.iter().map(|major| DeviceRule { major: *major, minor: None, open: false }));
        rules
    }

    /// The files that must not open for it.
    pub(crate) fn others(&self, held: &[Held]) -> Vec<PathBuf> {
        self.files.iter().filter(|file| !file.is_held(held)).map(|file| file.path.clone()).collect()
    }
}

impl DeviceFile {
    fn is_held(&self, held: &[Held]) -> bool {
        self.card.is_some_and(|(group, device)| {
            held.iter().any(|held| held.group == group && held.mask >> device & 1 == 1)
        })
    }
}

fn is_card(name: &str) -> bool {
    name.strip_prefix("nvidia").is_some_and(|number| number.parse::<u8>().is_ok())
}

/// The character devices of a folder whose names are wanted, in order.
fn numbered(folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<(PathBuf, (u32, u32))> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_str().is_some_and(&wanted));
    let mut found: Vec<_> = named
        .filter_map(|entry| {
            let file = entry.metadata().ok().filter(|file| file.file_type().is_char_device())?;
            Some((entry.path(), (major(file.rdev()) as u32, minor(file.rdev()) as u32)))
        })
        .collect();
    found.sort();
    found
}

/// The files by which NVIDIA's cards draw, with where they are on the bus.
fn rendering(dev: &Path, sys: &Path) -> Vec<(PathBuf, String, (u32, u32))> {
    let entries = fs::read_dir(sys.join("class/drm")).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let device = fs::canonicalize(entry.path().join("device")).ok()?;
            let vendor = fs::read_to_string(device.join("vendor")).ok()?;
            let number = fs::read_to_string(entry.path().join("dev")).ok()?;
            let (major, minor) = number.trim().split_once(':')?;
            let number = (major.parse().ok()?, minor.parse().ok()?);
            let pci = device.file_name()?.to_str()?.to_owned();
            (vendor.trim() == NVIDIA_VENDOR).then(|| (dev.join("dri").join(entry.file_name()), pci, number))
        })
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::testing::Folder;

    fn file(name: &str, major: u32, minor: u32, card: Option<CardPlace>) -> DeviceFile {
        DeviceFile { path: PathBuf::from(name), major, minor, card }
    }

    #[test]
    fn a_part_may_open_what_it_holds_and_the_driver_and_nothing_else_of_cards() {
        let files = vec![
            file("/dev/nvidia0", 195, 0, Some((0, 0))),
            file("/dev/nvidia1", 195, 1, Some((0, 1))),
            file("/dev/nvidia-caps/nvidia-cap1", 240, 1, None),
        ];
        let all = DeviceFiles { files, closed: vec![195, 240], control: vec![(195, 255)] };
        let held = [Held { group: 0, mask: 0b10 }];
        let rules = all.rules(&held);
        let first = |major, minor| {
            let fits =
                |rule: &&DeviceRule| rule.major == major && rule.minor.is_none_or(|known| known == minor);
            rules.iter().find(fits).is_none_or(|rule| rule.open)
        };
        assert!(first(195, 1) && first(195, 255) && first(1, 3));
        assert!(!first(195, 0) && !first(195, 9) && !first(240, 1));
        let others: Vec<_> = ["/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap1"].map(PathBuf::from).into();
        assert_eq!(all.others(&held), others);
        assert_eq!(all.others(&[Held { group: 1, mask: 0b11 }]).len(), 3);
    }

    #[test]
    fn rendering_files_are_found_by_their_place_on_the_bus() {
        let (dev, sys) = (Folder::new(), Folder::new());
        for (pci, vendor, name, number) in [
            ("0000:18:00.0", "0x10de", "renderD128", "226:128"),
            ("0000:03:00.0", "0x1a03", "card0", "226:0"),
        ] {
            let device = sys.path().join("devices").join(pci);
            let drm = sys.path().join("class/drm").join(name);
            fs::create_dir_all(&device).unwrap();
            fs::create_dir_all(&drm).unwrap();
            fs::write(device.join("vendor"), format!("{vendor}\n")).unwrap();
            std::os::unix::fs::symlink(&device, drm.join("device")).unwrap();
            fs::write(drm.join("dev"), format!("{number}\n")).unwrap();
        }
        let found = DeviceFiles::find(dev.path(), sys.path(), &[]).unwrap();
        assert_eq!(found.files.len(), 1);
        assert_eq!((found.files[0].major, found.files[0].minor, found.files[0].card), (226, 128, None));
        let unknown = ((0, 0), CardAddress { minor: 0, pci: "0000:18:00.0".into() });
        assert!(DeviceFiles::find(dev.path(), sys.path(), &[unknown]).unwrap_err().contains("18:00.0"));
    }
}
