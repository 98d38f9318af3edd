//! What tells apart machines that claim the same name.

use std::path::Path;

use sha2::{Digest, Sha256};

/// How many digits of the digest are enough to tell machines apart.
const DIGITS: usize = 16;

/// The same for each start of an agent on one boot of one machine with one folder, and different otherwise.
pub(super) fn host_id(data: &Path) -> String {
    let kernel = |name: &str| std::fs::read(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    digest(&[&kernel("random/boot_id"), &kernel("hostname"), data.as_os_str().as_encoded_bytes()])
}

fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // With its length, so that no two lists look the same.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut text = crate::auth::hex(&hash.finalize());
    text.truncate(DIGITS);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_the_same_each_time_and_another_folder_is_another() {
        let (one, two) = (host_id(Path::new("/var/lib/a")), host_id(Path::new("/var/lib/b")));
        assert_eq!(one, host_id(Path::new("/var/lib/a")));
        assert_ne!(one, two);
        assert!(one.len() == DIGITS && one.chars().all(|c| c.is_ascii_hexdigit()), "{one}");
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
    }
}
