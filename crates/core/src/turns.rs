//! How shares of time become turns (`Mode::Fractions` and `Mode::Capped`).

use serde::{Deserialize, Serialize};

/// How shares of time become turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Turns {
    /// Who is due first by its share goes first, whatever its kind (earliest pseudo-deadline: Srinivasan and
    /// Anderson, "Fair Scheduling of Dynamic Task Systems on Multiprocessors", 2005); what one plan promised and
    /// did not deliver, the next one still owes.
    #[default]
    Owed,
    /// As Gavel's simulator does it: kind after kind, by share over time received since the last plan.
    Gavel(GavelTurns),
}

/// What differs between policies in Gavel's simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GavelTurns {
    /// Serves the kinds in an order drawn anew each round from this seed, not in the order of their names.
    pub shuffle: Option<u64>,
    /// Whether jobs without a share may have what is left. Newcomers then take their places among those, but
    /// nothing runs there: a job starts only once a plan has named it.
    pub leftovers: bool,
}

impl Turns {
    /// Whether accounts begin anew with each plan, and count whole steps only.
    pub(crate) fn is_gavel(self) -> bool {
        matches!(self, Turns::Gavel(_))
    }
}

/// Maps floats to integers of the same order.
pub(crate) fn ordered(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_keep_their_order_as_integers() {
        let values = [f64::NEG_INFINITY, -1e15, -1.0, -0.0, 0.0, 1e-300, 2.0, f64::INFINITY];
        assert!(values.windows(2).all(|pair| ordered(pair[0]) <= ordered(pair[1])));
    }
}
