//! The kinds that need no file. Data sheets give the peaks; the efficiencies were fitted on published step times (a100,
//! h100) and on one card (h200). Those of v100 are a guess that nothing was measured against.

use crate::accelerator::Accelerator;

const US: f64 = 1e-6;
const GB: f64 = 1e9;

/// What devices of one generation have in common.
struct Generation {
    tflops: f64,
    link_in: f64,
    link_out: f64,
    host_link: f64,
    host_memory: f64,
    efficiency: f64,
    overhead_us: f64,
    flash: f64,
}

const V100: Generation = Generation {
    tflops: 125.0,
    link_in: 150.0,
    link_out: 12.5,
    host_link: 16.0,
    host_memory: 200.0,
    efficiency: 0.80,
    overhead_us: 100.0,
    flash: 0.77,
};

const A100: Generation =
    Generation { tflops: 312.0, link_in: 300.0, link_out: 25.0, host_link: 32.0, host_memory: 300.0, ..V100 };

const H100: Generation = Generation {
    tflops: 989.0,
    link_in: 450.0,
    link_out: 50.0,
    host_link: 64.0,
    host_memory: 500.0,
    efficiency: 0.70,
    overhead_us: 120.0,
    flash: 0.50,
};

const H200: Generation = Generation { efficiency: 0.80, overhead_us: 60.0, flash: 1.00, ..H100 };

/// Name, generation, memory in GB, and what the memory moves in GB a second. The two a100 have the same rate, because
/// their efficiencies were fitted with it.
const KNOWN: [(&str, &Generation, f64, f64); 10] = [
    ("v100", &V100, 16.0, 900.0),
    ("v100-16", &V100, 16.0, 900.0),
    ("v100-32", &V100, 32.0, 900.0),
    ("a100", &A100, 40.0, 2000.0),
    ("a100-40", &A100, 40.0, 2000.0),
    ("a100-80", &A100, 80.0, 2000.0),
    ("h100", &H100, 80.0, 3350.0),
    ("h100-80", &H100, 80.0, 3350.0),
    ("h200", &H200, 141.0, 4800.0),
    ("h200-141", &H200, 141.0, 4800.0),
];

/// The names of all known kinds.
pub fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|known| known.0)
}

/// The kind of this name. Where a name leaves the memory open, it is the smaller one.
pub fn known(name: &str) -> Option<Accelerator> {
    let (name, generation, memory_gb, hbm_gb) = KNOWN.iter().find(|known| known.0 == name)?;
    Some(Accelerator {
        name: (*name).to_owned(),
        flops: generation.tflops * 1e12,
        memory: memory_gb * GB,
        hbm: hbm_gb * GB,
        per_node: 8,
        link_in: generation.link_in * GB,
        link_out: generation.link_out * GB,
        latency_in: 10.0 * US,
        latency_out: 20.0 * US,
        host_link: generation.host_link * GB,
        host_memory: generation.host_memory * GB,
        efficiency: generation.efficiency,
        overhead_s: generation.overhead_us * US,
        flash: generation.flash,
        hbm_efficiency: 0.75,
        link_in_efficiency: 0.77,
        link_out_efficiency: 0.90,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_kind_makes_sense() {
        for name in names() {
            let kind = known(name).unwrap();
            assert_eq!((kind.name.as_str(), kind.check()), (name, Ok(())));
        }
        assert_eq!(known("abacus"), None);
    }
}
