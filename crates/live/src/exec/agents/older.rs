//! Agents one version older than the server, so that a cluster can be brought up to date one machine after the other. What
//! they say is understood as it is, because fields that they do not know have defaults; what they are sent is put into
//! words that they know.

use yard_core::message::Why;
use yard_core::part::Order;

use crate::wire::ToAgent;

/// The first version that knows that jobs are held and started again.
const KNOWS_HOLDING: u32 = 5;

/// A message as an agent of this version understands it.
pub(super) fn for_version(version: u32, message: ToAgent) -> ToAgent {
    match message {
        ToAgent::Order { order: Order::Stop { part, why }, task } if version < KNOWS_HOLDING => {
            // What becomes of the job afterwards is the server's matter; these save and stop alike.
            let why = match why {
                Why::Held => Why::Preempted,
                Why::Requeued => Why::Moved,
                known => known,
            };
            ToAgent::Order { order: Order::Stop { part, why }, task }
        }
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use yard_core::ids::{JobId, LeaseId};
    use yard_core::part::PartId;

    use super::*;
    use crate::wire::{FromAgent, WIRE_VERSION, WIRE_VERSIONS};

    fn stop(why: Why) -> ToAgent {
        let part = PartId { lease: LeaseId(1), job: JobId(2), instance: 1 };
        ToAgent::Order { order: Order::Stop { part, why }, task: None }
    }

    #[test]
    fn an_older_agent_is_sent_what_it_knows() {
        for (why, sent) in
            [(Why::Held, Why::Preempted), (Why::Requeued, Why::Moved), (Why::Killed, Why::Killed)]
        {
            assert_eq!(for_version(4, stop(why)), stop(sent));
            assert_eq!(for_version(WIRE_VERSION, stop(why)), stop(why));
        }
    }

    /// What an agent of version 4 said when it came: it names no resources and no domains.
    const HELLO: &str = r#"{"hello":{"version":4,"name":"n1","address":"10.0.0.1","groups":[{"kind":"h100","devices":[
        {"name":"NVIDIA H100","uuid":"GPU-1","memory_mib":81559,"problem":null,"split":false,"links":[]}]}],
        "parts":[[{"lease":3,"job":7,"instance":1},"started"]],"paused":[],
        "abilities":{"no_freeze":null,"no_limits":"no MPS","freeze_room_mib":1024,"only_user":null},"host":"boot-1"}}"#;

    #[test]
    fn what_the_version_before_said_is_understood() {
        let FromAgent::Hello(hello) = serde_json::from_str(HELLO).expect("it is read") else {
            panic!("a hello")
        };
        assert!(WIRE_VERSIONS.contains(&hello.version) && !WIRE_VERSIONS.contains(&3), "one version back");
        assert_eq!((hello.parts.len(), hello.resources.len()), (1, 0));
    }
}
