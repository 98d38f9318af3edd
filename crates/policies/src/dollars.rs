//! What devices cost: as the policy is told, else as the cluster file says, else as was once published.

use std::collections::BTreeMap;

use yard_core::policy::PolicyError;

use crate::buyers::Buyers;
use crate::{ParamError, Params};

/// The parameter.
pub(crate) const DOLLARS: (&str, &str) = (
    "dollars",
    "dollars per device and hour, written v100*0.74/p100*0.43 [from the cluster file, else known list prices]",
);

/// Google's list prices that Gavel's artifact uses (`scheduler/utils.py`, static GCP instances).
const KNOWN: [(&str, f64); 3] = [("v100", 0.74), ("p100", 0.43), ("k80", 0.135)];

/// Prices that the policy was told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dollars(BTreeMap<String, f64>);

impl Dollars {
    pub(crate) fn read(params: &Params) -> Result<Dollars, ParamError> {
        params.weights("dollars").map(Dollars)
    }

    /// By kind of the market.
    pub(crate) fn of(&self, buyers: &Buyers<'_>) -> Result<Vec<f64>, PolicyError> {
        let kinds = &buyers.view.kinds;
        let price = |name: &str| {
            let known = || KNOWN.iter().find(|(known, _)| *known == name).map(|(_, price)| *price);
            let given = self.0.get(name).copied();
            let listed =
                || kinds.find(name).and_then(|kind| kinds.dollars(kind)).filter(|price| *price > 0.0);
            given.or_else(listed).or_else(known)
        };
        let missing = |name: &str| {
            let how =
                "give price_per_hour in the cluster file, or dollars=KIND*PRICE after the policy's name";
            PolicyError(format!("nobody says what {name} costs: {how}"))
        };
        let name = |kind| kinds.name(kind);
        if buyers.kinds.iter().all(|kind| price(name(*kind)).is_none()) {
            return Ok(vec![1.0; buyers.kinds.len()]); // Nothing is known to be dearer than anything else.
        }
        buyers.kinds.iter().map(|kind| price(name(*kind)).ok_or_else(|| missing(name(*kind)))).collect()
    }
}
