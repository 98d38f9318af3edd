//! The order of shares. Priorities come before whatever a policy ranks by, so that every policy that ranks jobs honours
//! them without doing anything for it.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::allocation::Share;
use crate::ids::{JobId, ShareId};
use crate::turns::ordered;

/// A share's place in the order: priority, then rank, then the older job, then the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Key {
    /// The largest priority of its jobs, where priorities count; wider than theirs, so that what was promised can go before them all.
    #[serde(default)]
    priority: Reverse<i64>,
    rank: (u64, u64),
    #[serde(rename = "job")]
    pub(super) lead: JobId,
    pub(crate) share: ShareId,
}

impl Key {
    /// The place of a share whose first job has this number.
    pub(super) fn new(share: &Share, lead: JobId, row: ShareId, priority: i32) -> Key {
        let rank = (ordered(share.rank.0), ordered(share.rank.1));
        Key { priority: Reverse(priority.into()), rank, lead, share: row }
    }

    /// The same, before whatever priority a job may have.
    pub(super) fn before_all(self) -> Key {
        Key { priority: Reverse(i64::MAX), ..self }
    }
}
