//! Which jobs are like one another, where no throughput table says so: those with the same command, user and size run
//! alike, so what was measured of one holds for the next. The number is drawn from the words themselves, because it
//! is in the journal and must be the same after a restart.

use yard_core::ids::ProfileId;

use crate::request::JobRequest;

/// The numbers of a table's profiles count from 1; these have the highest bit.
const OWN: u32 = 1 << 31;

/// The number of what such jobs have in common.
pub(crate) fn likeness(user: &str, request: &JobRequest) -> ProfileId {
    let model = request.model.iter().map(String::as_str);
    let words = request.command.iter().map(String::as_str).chain(model).chain([user]);
    let numbers = [request.gpus.unwrap_or(1), request.batch_size.unwrap_or(0)];
    let bytes =
        words.flat_map(|word| word.bytes().chain([0])).chain(numbers.into_iter().flat_map(u32::to_le_bytes));
    ProfileId(OWN | bytes.fold(0x811C_9DC5, fnv))
}

/// A step of FNV-1a, which is fixed for ever: the standard library's own hash may change.
fn fnv(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(words: &[&str]) -> JobRequest {
        JobRequest { command: words.iter().map(|word| (*word).to_owned()).collect(), ..JobRequest::default() }
    }

    #[test]
    fn the_same_command_of_the_same_user_is_alike_and_nothing_else() {
        let own = likeness("ann", &request(&["train", "a"]));
        assert_eq!(own, likeness("ann", &JobRequest { name: Some("x".into()), ..request(&["train", "a"]) }));
        let others = [
            likeness("bob", &request(&["train", "a"])),
            likeness("ann", &request(&["train", "b"])),
            likeness("ann", &request(&["traina"])),
            likeness("ann", &JobRequest { gpus: Some(2), ..request(&["train", "a"]) }),
            likeness("ann", &JobRequest { batch_size: Some(2), ..request(&["train", "a"]) }),
        ];
        assert!(others.iter().all(|other| *other != own && other.0 >= OWN), "{own:?} {others:?}");
    }

    #[test]
    fn the_number_is_in_journals_and_never_changes() {
        assert_eq!(likeness("ann", &request(&["train"])), ProfileId(0xA1C7_234F));
    }
}
