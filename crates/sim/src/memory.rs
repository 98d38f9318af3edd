//! Memory of accelerators by the names that traces and clusters give them, from the vendors' data sheets. A cluster
//! file may say otherwise (`memory_gib`).

/// GiB of each device, by kind. Where a card was sold with several sizes, the plain name is the smallest.
const KNOWN: [(&str, u32); 22] = [
    ("k80", 12),
    ("m40", 12),
    ("p4", 8),
    ("p100", 16),
    ("v100", 16),
    ("v100-32g", 32),
    ("v100m16", 16),
    ("v100m32", 32),
    ("t4", 16),
    ("a10", 24),
    ("a30", 24),
    ("a40", 48),
    ("a100", 40),
    ("a100-80g", 80),
    ("l4", 24),
    ("l40s", 48),
    ("rtx3090", 24),
    ("rtx4090", 24),
    ("h100", 80),
    ("h20", 96),
    ("h200", 141),
    ("b200", 180),
];

/// MiB of each device of a kind, where its name says it; letters large or small.
pub(crate) fn of_kind(name: &str) -> Option<u32> {
    let known = KNOWN.iter().find(|(kind, _)| name.eq_ignore_ascii_case(kind));
    known.map(|(_, gib)| gib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_however_they_are_written() {
        assert_eq!(
            (of_kind("h200"), of_kind("V100M32"), of_kind("gpu")),
            (Some(144_384), Some(32_768), None)
        );
    }
}
