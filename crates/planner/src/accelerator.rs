//! A kind of device as the cost model sees it: what its maker promises, and how much of that programs get.

use serde::{Deserialize, Serialize};

use crate::flaw::{Flaw, positive};

/// A kind of device. Rates are per second and device; links are counted one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Accelerator {
    /// The kind's name in the cluster.
    pub name: String,
    /// Peak operations of a dense 16-bit matrix product.
    pub flops: f64,
    /// Memory in bytes.
    pub memory: f64,
    /// Bytes that its memory moves.
    pub hbm: f64,
    /// Devices of one node.
    pub per_node: u32,
    /// Bytes to devices of the same node.
    pub link_in: f64,
    /// Bytes to other nodes.
    pub link_out: f64,
    /// Latency within a node, in seconds.
    pub latency_in: f64,
    /// Latency across nodes, in seconds.
    pub latency_out: f64,
    /// Bytes to and from the host.
    pub host_link: f64,
    /// Bytes that the memory of the whole host moves.
    pub host_memory: f64,
    /// The part of the peak that large matrix products reach.
    pub efficiency: f64,
    /// Seconds that starting a matrix product takes.
    pub overhead_s: f64,
    /// The speed of fused attention relative to matrix products.
    pub flash: f64,
    /// The part of the memory's rate that programs reach.
    pub hbm_efficiency: f64,
    /// The part of the inner link's rate that collectives reach.
    pub link_in_efficiency: f64,
    /// The part of the outer link's rate that collectives reach.
    pub link_out_efficiency: f64,
}

/// How fast a group of devices exchanges data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Channel {
    pub(crate) rate: f64,
    pub(crate) latency: f64,
}

/// Most devices of a node.
const PER_NODE_MAX: u32 = 4096;

impl Accelerator {
    /// Fails where a rate, the memory or the number of devices is nothing.
    pub fn check(&self) -> Result<(), Flaw> {
        let rates = [
            ("tflops", self.flops),
            ("memory_gb", self.memory),
            ("hbm_gb_s", self.hbm),
            ("per_node", f64::from(self.per_node)),
            ("link_in_gb_s", self.link_in),
            ("link_out_gb_s", self.link_out),
            ("host_link_gb_s", self.host_link),
            ("host_memory_gb_s", self.host_memory),
            ("efficiency", self.efficiency),
            ("flash", self.flash),
            ("hbm_efficiency", self.hbm_efficiency),
            ("link_in_efficiency", self.link_in_efficiency),
            ("link_out_efficiency", self.link_out_efficiency),
        ];
        rates.into_iter().try_for_each(|(field, value)| {
            positive(field, value, "give what the maker's data sheet or `yard bench kind` says")
        })?;
        if self.per_node > PER_NODE_MAX {
            let problem = format!("{} devices are more than a node has", self.per_node);
            return Err(Flaw::new("per_node", problem, format!("give a number from 1 to {PER_NODE_MAX}")));
        }
        let delays = [
            ("overhead_us", self.overhead_s),
            ("latency_in_us", self.latency_in),
            ("latency_out_us", self.latency_out),
        ];
        match delays.into_iter().find(|(_, value)| !(*value >= 0.0 && value.is_finite())) {
            Some((field, value)) => {
                Err(Flaw::new(field, format!("{value} is no time"), "give a number from 0 up"))
            }
            None => Ok(()),
        }
    }

    /// The same kind where only so many devices of a gang lie on each node.
    pub fn in_nodes_of(&self, devices: u32) -> Accelerator {
        Accelerator { per_node: devices.max(1), ..self.clone() }
    }

    /// Bytes a second of collectives within a node.
    pub fn inward(&self) -> f64 {
        self.channel(true).rate
    }

    /// Bytes a second of collectives from one device to other nodes.
    pub fn outward(&self) -> f64 {
        self.channel(false).rate
    }

    /// Operations a second that large matrix products reach.
    pub fn rate(&self) -> f64 {
        self.flops * self.efficiency
    }

    /// Bytes a second that the memory moves for programs.
    pub(crate) fn memory_rate(&self) -> f64 {
        self.hbm * self.hbm_efficiency
    }

    /// A matrix product: the longer of computing and moving, and starting it.
    pub fn gemm(&self, flops: f64, bytes: f64) -> f64 {
        self.overhead_s + (flops / self.rate()).max(bytes / self.memory_rate())
    }

    /// Between devices of one node, or of two.
    pub(crate) fn channel(&self, within: bool) -> Channel {
        match within {
            true => Channel { rate: self.link_in * self.link_in_efficiency, latency: self.latency_in },
            false => Channel { rate: self.link_out * self.link_out_efficiency, latency: self.latency_out },
        }
    }

    /// Among so many ranks, each `stride` after the one before: those on one node share its links to the others.
    pub(crate) fn group(&self, ranks: u32, stride: u32) -> Channel {
        let together = ranks.min((self.per_node / stride).max(1));
        let (inner, outer) = (self.channel(true), self.channel(false));
        if together == ranks {
            return inner;
        }
        Channel { rate: inner.rate.min(f64::from(together) * outer.rate), latency: outer.latency }
    }

    /// Seconds of an all-reduce of so many bytes on a ring of such ranks.
    pub(crate) fn all_reduce(&self, bytes: f64, ranks: u32, stride: u32) -> f64 {
        if ranks <= 1 {
            return 0.0;
        }
        let (channel, n) = (self.group(ranks, stride), f64::from(ranks));
        2.0 * (n - 1.0) / n * bytes / channel.rate + 2.0 * channel.latency
    }
}

#[cfg(test)]
mod tests {
    use crate::catalogue::known;

    #[test]
    fn ranks_of_a_node_share_its_links_outwards() {
        let kind = known("a100-80").unwrap();
        let (inner, outer) = (kind.channel(true), kind.channel(false));
        assert_eq!(kind.group(8, 1), inner);
        assert_eq!(kind.group(16, 1).rate, 8.0 * outer.rate);
        assert_eq!(kind.group(4, 8).rate, outer.rate);
        assert_eq!(kind.group(4, 2), inner, "four ranks, two apart, fill a node");
    }

    #[test]
    fn memory_of_nothing_is_refused() {
        let kind = crate::Accelerator { memory: 0.0, ..known("a100-80").unwrap() };
        assert_eq!(
            kind.check().unwrap_err().to_string(),
            "memory_gb: 0 is not above 0; give what the maker's data sheet or `yard bench kind` says"
        );
    }

    #[test]
    fn one_device_talks_to_nobody() {
        assert_eq!(known("h100-80").unwrap().all_reduce(1e9, 1, 1), 0.0);
    }
}
