//! Whatever a cluster, overhead or throughput file holds, it is read or refused in a sentence; nothing panics.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use yard_sim::cluster::ClusterSpec;
use yard_sim::overheads::Overheads;
use yard_sim::throughput::Throughputs;

/// A file of its own for each test, gone with it.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        Scratch(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id())))
    }

    fn holding(&self, bytes: &[u8]) -> &Path {
        std::fs::write(&self.0, bytes).expect("the folder for test files can be written");
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// One sentence on one line.
fn is_sentence(error: &dyn std::fmt::Display) -> bool {
    let said = error.to_string();
    !said.is_empty() && !said.contains('\n')
}

/// A sound file with some of its bytes replaced.
fn damaged(sound: &'static str) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((0..sound.len(), any::<u8>()), 0..6).prop_map(move |changes| {
        let mut bytes = sound.as_bytes().to_vec();
        changes.into_iter().for_each(|(at, byte)| bytes[at] = byte);
        bytes
    })
}

const CLUSTER: &str = "[[nodes]]\nkind = 'a100'\nnodes = 2\ngpus = 8\nrack = 1\n[[nodes]]\nkind = 'h100'\ngpus = 4\nprice_per_hour = 2.5\n";
const OVERHEADS: &str =
    "save_s = 1.0\nload_s = 2.0\nstart_s = 3.0\n[models.gpt2]\nsave_s = 1.5\nload_s = 2.5\nstart_s = 3.5\n";
const TABLE: &str = "kind,model,batch_size,gpus,steps_per_s\nv100,bert,16,1,10.5\nv100,bert,16,2,20.25\n";
const TABLE_TOML: &str = "[[speed]]\nkind = 'v100'\nmodel = 'bert'\ngpus = 2\nsteps_per_s = 10.5\nspread = 'any'\n[[speed]]\nkind = 'v100*1+p100*1'\nmodel = 'bert'\ngpus = 2\nsteps_per_s = 8.0\n[[speed]]\nkind = 'v100'\nmodel = 'bert'\ngpus = 2\nsteps_per_s = 1.5\nbeside_model = 'bert'\n";
const GAVEL: &str = r#"{"v100": {"('LM (batch size 5)', 1)": {"null": 12.5, "('LM (batch size 5)', 1)": [3.0, 3.0]}, "('LM (batch size 5)', 2)": {"null": 20.5}}}"#;

proptest! {
    #[test]
    fn any_text_is_a_cluster_or_is_refused(text in "\\PC{0,40}|[a-z]{1,3}:[0-9x,:a-z]{0,12}") {
        if let Err(error) = ClusterSpec::parse(&text) {
            prop_assert!(is_sentence(&error), "{error}");
        }
    }

    #[test]
    fn any_cluster_file_is_read_or_refused(bytes in damaged(CLUSTER)) {
        let scratch = Scratch::new("cluster.toml");
        if let Err(error) = ClusterSpec::parse(&scratch.holding(&bytes).to_string_lossy()) {
            prop_assert!(is_sentence(&error), "{error}");
        }
    }

    #[test]
    fn any_overhead_file_is_read_or_refused(bytes in damaged(OVERHEADS)) {
        let scratch = Scratch::new("overheads.toml");
        if let Err(error) = Overheads::parse(&scratch.holding(&bytes).to_string_lossy()) {
            prop_assert!(is_sentence(&error), "{error}");
        }
    }

    #[test]
    fn any_throughput_file_is_read_or_refused(
        bytes in prop_oneof![damaged(TABLE), damaged(GAVEL), prop::collection::vec(any::<u8>(), 0..200)],
    ) {
        let scratch = Scratch::new("table");
        if let Err(error) = Throughputs::open(scratch.holding(&bytes)) {
            prop_assert!(is_sentence(&error), "{error}");
        }
    }

    #[test]
    fn any_throughput_toml_is_read_or_refused(bytes in damaged(TABLE_TOML)) {
        let scratch = Scratch::new("table.toml");
        if let Err(error) = Throughputs::open(scratch.holding(&bytes)) {
            prop_assert!(is_sentence(&error), "{error}");
        }
    }
}

#[test]
fn the_sound_files_are_sound() {
    let scratch = Scratch::new("sound");
    assert_eq!(
        ClusterSpec::parse(&scratch.holding(CLUSTER.as_bytes()).to_string_lossy()).unwrap().devices(),
        20
    );
    let overheads = Overheads::parse(&scratch.holding(OVERHEADS.as_bytes()).to_string_lossy()).unwrap();
    assert_eq!(overheads.of(Some("gpt2"), 8).start.secs(), 3.5);
    let table = Throughputs::open(scratch.holding(TABLE.as_bytes())).unwrap();
    assert_eq!(table.speed("v100", "bert", Some(16), 2), Some(20.25));
    let toml = Scratch::new("sound.toml");
    let table = Throughputs::open(toml.holding(TABLE_TOML.as_bytes())).unwrap();
    assert_eq!(table.speed_spread("v100", "bert", None, 2), Some(10.5));
    let table = Throughputs::open(scratch.holding(GAVEL.as_bytes())).unwrap();
    assert_eq!(table.speed("v100", "LM", Some(5), 2), Some(20.5));
}
