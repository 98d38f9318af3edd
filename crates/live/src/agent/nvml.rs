//! NVIDIA cards, through the driver's own library, which is loaded at run time: where there is no driver, there are
//! no cards.

use nvml_wrapper::Nvml;

use crate::wire::Device;

/// The library.
#[derive(Debug)]
pub(crate) struct Cards(Nvml);

/// A card.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Card {
    /// Its maker's name for it.
    pub(crate) name: String,
    /// Its unique number, which CUDA knows too.
    pub(crate) uuid: String,
    /// Its memory.
    pub(crate) memory_mib: Option<u64>,
}

impl Cards {
    /// The library, where it is there and has cards.
    pub(crate) fn open() -> Option<Cards> {
        let nvml = Nvml::init().inspect_err(|error| tracing::debug!(%error, "no NVIDIA driver")).ok()?;
        let cards = Cards(nvml);
        (!cards.list().is_empty()).then_some(cards)
    }

    /// All cards that answer, in the driver's order.
    pub(crate) fn list(&self) -> Vec<Card> {
        let count = self.0.device_count().unwrap_or(0);
        (0..count).filter_map(|index| self.card(index)).collect()
    }

    fn card(&self, index: u32) -> Option<Card> {
        let device = self.0.device_by_index(index).ok()?;
        let memory_mib = device.memory_info().ok().map(|memory| memory.total >> 20);
        Some(Card { name: device.name().ok()?, uuid: device.uuid().ok()?, memory_mib })
    }
}

impl Card {
    /// As the server is told of it.
    pub(crate) fn device(self) -> Device {
        Device {
            name: self.name,
            uuid: Some(self.uuid),
            memory_mib: self.memory_mib,
            problem: None,
            split: false,
            links: Vec::new(),
        }
    }
}
