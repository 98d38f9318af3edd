//! No input makes the reader panic: random bytes, and valid files with bytes changed, added, cut.

use proptest::prelude::*;

use super::samples::{SAMPLES, archive, gzip};
use crate::trace::{FORMATS, Opened, TraceError, read};

/// What is read is sorted and sane, whatever was given.
fn check(result: Result<Opened, TraceError>) {
    match result {
        Ok(opened) => {
            let jobs = &opened.trace.jobs;
            assert!(!jobs.is_empty() && jobs.is_sorted_by_key(|job| job.submit));
            assert!(jobs.iter().all(|job| job.gpus > 0 && job.weight > 0.0 && !job.name.is_empty()));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn read_as_all(bytes: &[u8]) {
    check(read("t", bytes, None));
    FORMATS.iter().for_each(|format| check(read("t", bytes, Some(format.name))));
}

/// Changes to make: where (as a part of the length), how, and a byte.
fn edits() -> impl Strategy<Value = Vec<(f64, u8, u8)>> {
    prop::collection::vec((0.0..1.0f64, 0..5u8, any::<u8>()), 1..12)
}

fn mutate(mut bytes: Vec<u8>, edits: &[(f64, u8, u8)]) -> Vec<u8> {
    const TELLING: &[u8] = b"0-+.eEnN,\t\n\r\"#|' \x00\xff9";
    for &(part, how, byte) in edits {
        let at = (part * bytes.len() as f64) as usize;
        let telling = TELLING[usize::from(byte) % TELLING.len()];
        match how {
            0 => bytes.insert(at, telling),
            1 if at < bytes.len() => bytes[at] = telling,
            2 if at < bytes.len() => bytes[at] = byte,
            3 if at < bytes.len() => drop(bytes.remove(at)),
            4 if byte < 40 => bytes.truncate(at),
            _ => bytes.extend_from_within(at..),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_as_all(&bytes);
        let mut zipped = vec![0x1f, 0x8b, 8, 0];
        zipped.extend(&bytes);
        read_as_all(&zipped);
    }

    #[test]
    fn mutated_files(sample in 0..SAMPLES.len(), edits in edits()) {
        read_as_all(&mutate(SAMPLES[sample].1.as_bytes().to_vec(), &edits));
    }

    #[test]
    fn mutated_containers(sample in 0..SAMPLES.len(), edits in edits()) {
        let text = SAMPLES[sample].1;
        check(read("t", &mutate(gzip(text.as_bytes()), &edits), None));
        let tar = archive(&[("a.csv", text), ("b.csv", text)]);
        check(read("t", &mutate(tar.clone(), &edits), None));
        // Edits where the headers are, which are a small part of the archive.
        let (head, rest) = tar.split_at(512);
        check(read("t", &[mutate(head.to_vec(), &edits), rest.to_vec()].concat(), None));
    }

    #[test]
    fn random_rows(cells in prop::collection::vec("[-+0-9.eE#|a\"]{0,6}", 15 * 4)) {
        for (_, text) in SAMPLES {
            let header = text.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
            let width = header.split(',').count();
            let rows: Vec<String> = cells.chunks(width).map(|row| row.join(",")).collect();
            check(read("t", format!("{header}\n{}\n", rows.join("\n")).as_bytes(), None));
        }
    }
}
