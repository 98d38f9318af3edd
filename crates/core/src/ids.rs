//! Numbers that cannot be mistaken for each other.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($repr:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub $repr);

        impl $name {
            /// As a position in a column.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id!(
    /// A job's number, given at submission, growing, never used again.
    JobId(u64)
);
id!(
    /// A job's row in the columns of a `View`. Rows of ended jobs are used again.
    JobIdx(u32)
);
id!(
    /// A node's number, given when it first joins.
    NodeId(u32)
);
id!(
    /// An agent's number, given by the server that it dials; its devices may be several nodes.
    AgentId(u32)
);
id!(
    /// A domain's number, in the order in which nodes first were in domains.
    DomainId(u32)
);
id!(
    /// An accelerator kind, in the order in which kinds were first named.
    KindId(u16)
);
id!(
    /// What jobs of equal speed have in common: model, batch size and gang. 0: nothing is known of it.
    ProfileId(u32)
);
id!(
    /// A lease's number: only growing, so that an old holder is recognised and refused.
    LeaseId(u64)
);
/// A share's row in the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ShareId(pub(crate) u32);

id!(
    /// A request for a plan; only the answer to the newest one counts.
    PlanId(u64)
);
