//! Which devices exactly. A placer takes a shape and answers with free devices for all of it, or `None`.

mod count;
mod evenly;
mod greedy;
mod pack;
mod pool;
#[cfg(test)]
mod properties;
mod spread;
mod yarn;

use yard_core::policy::Placer;

use crate::ParamError;

/// A placer in the table.
#[derive(Clone, Copy, Debug)]
pub struct PlacerEntry {
    /// The name it is called by.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// Makes it.
    pub make: fn() -> Box<dyn Placer>,
}

/// Every placer.
pub const PLACERS: &[PlacerEntry] = &[count::ENTRY, pack::ENTRY, spread::ENTRY, yarn::ENTRY];

/// The placer of this name.
pub fn placer(name: &str) -> Result<Box<dyn Placer>, ParamError> {
    let unknown = || ParamError::unknown("placer", name, PLACERS.iter().map(|entry| entry.name));
    PLACERS.iter().find(|entry| entry.name == name).map(|entry| (entry.make)()).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placers_are_found_by_name() {
        assert!(PLACERS.iter().all(|entry| placer(entry.name).is_ok()));
        let said = placer("pakc").err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains("did you mean `pack`? There are: count, pack, spread, yarn"), "{said}");
    }
}
