//! Generated traces: the same seed, the same bytes; and the distributions that were promised.

use expect_test::{Expect, expect};
use sha2::{Digest, Sha256};

use crate::trace::{Arrivals, GenSpec, PRESETS, Preset, Stats, Trace, Work, generate, read, write};

fn made(jobs: usize, preset: Preset, arrivals: Arrivals, seed: u64) -> Trace {
    generate(&GenSpec { jobs, arrivals, preset, seed })
}

fn check(preset: Preset, expected: Expect) {
    let trace = made(10_000, preset, Arrivals::Rate(20.0), 42);
    let mut bytes = Vec::new();
    write(&trace, &mut bytes).unwrap();
    let head: Vec<&str> = std::str::from_utf8(&bytes).unwrap().lines().take(4).collect();
    let sha: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    expected.assert_eq(&format!("{}\nsha256 {sha}\n", head.join("\n")));
    assert_eq!(read("t", &bytes, None).unwrap().trace.jobs.len(), 10_000);
}

#[test]
fn gavel_bytes() {
    check(
        Preset::Gavel,
        expect![[r#"
        job_id,submit_s,gpus,duration_s,model,batch_size
        0,0,2,10040.923,LM,20
        1,206.168,1,2933.466,ResNet-18,32
        2,746.394,1,3500.396,A3C,
        sha256 a4c0e3bce5cf81c3c59fa3423ca792548e12b84c6bd116bde36a108df182c0a4
    "#]],
    );
}

#[test]
fn philly_bytes() {
    check(
        Preset::Philly,
        expect![[r#"
        job_id,submit_s,gpus,duration_s,user,tenant
        0,0,1,71,user03,team03
        1,204.378,2,52,user09,team04
        2,245.239,1,49,user01,team01
        sha256 91d769b5f753bd06853cd7a28ac133e832a785bc476a7d3238fff197c8447174
    "#]],
    );
}

#[test]
fn uniform_bytes() {
    check(
        Preset::Uniform,
        expect![[r#"
        job_id,submit_s,gpus,duration_s
        0,0,6,2903
        1,206.168,4,12278
        2,746.394,1,11278
        sha256 2c13f33d7f16798d239f016ece5a94a632b35367201b14a148a3ff91169cb8c0
    "#]],
    );
}

#[test]
fn sharing_bytes() {
    check(
        Preset::Sharing,
        expect![[r#"
        job_id,submit_s,gpus,duration_s,model,tenant,class,gpu_fraction,gpu_memory_mib,gpu_busy
        0,0,2,1188,transformer-b64,team01,,,10434,0.27
        1,206.168,1,5662,resnet50-b64,team03,,,10697,0.65
        2,746.394,2,9435,gpt2s-b8,team03,opportunistic,,22683,0.61
        sha256 0736f38d70b651fcd253013e4ccc4a729f7efbfc33e250c79e200b194e84a7cb
    "#]],
    );
}

#[test]
fn every_preset_begins_at_zero_and_keeps_its_rate() {
    for info in PRESETS {
        let trace = made(50_000, info.preset, Arrivals::Rate(100.0), 1);
        let stats = Stats::of(&trace);
        assert_eq!(stats.first_submit_s, 0.0);
        assert!((stats.span_s / 3600.0 - 500.0).abs() < 15.0, "{} {}", info.name, stats.span_s);
        let still = made(100, info.preset, Arrivals::Static, 1);
        assert!(still.jobs.iter().all(|job| job.submit.0 == 0));
        assert!(
            still.jobs.iter().zip(&trace.jobs).all(|(a, b)| a.work == b.work),
            "a rate changes arrivals only"
        );
    }
}

/// The mean is 16.77 h and the median 4.58 h (by integration of the mixture).
#[test]
fn gavel_durations_and_gangs() {
    let stats = Stats::of(&made(200_000, Preset::Gavel, Arrivals::Static, 3));
    let duration = stats.duration_s.unwrap();
    assert!((duration.mean / 3600.0 - 16.77).abs() < 0.4, "{duration:?}");
    assert!((duration.p50 / 3600.0 - 4.58).abs() < 0.1, "{duration:?}");
    let shares: Vec<_> = stats.sizes.iter().map(|size| (size.gpus, size.jobs as f64 / 200_000.0)).collect();
    for ((gpus, share), (expected_gpus, expected)) in
        shares.iter().zip([(1, 0.7), (2, 0.1), (4, 0.15), (8, 0.05)])
    {
        assert!(*gpus == expected_gpus && (share - expected).abs() < 0.005, "{shares:?}");
    }
    assert_eq!(stats.models.len(), 7);
}

#[test]
fn gavel_gangs_train_what_can_be_distributed() {
    let trace = made(20_000, Preset::Gavel, Arrivals::Static, 3);
    let single = |model: &str| ["A3C", "CycleGAN", "Recommendation"].contains(&model);
    assert!(trace.jobs.iter().all(|job| job.gpus == 1 || !single(job.model.as_deref().unwrap())));
    assert!(trace.jobs.iter().any(|job| single(job.model.as_deref().unwrap())));
    assert!(
        trace
            .jobs
            .iter()
            .all(|job| matches!(job.work, Work::Seconds(s) if (1897.0..=600_000.0).contains(&s)))
    );
}

#[test]
#[should_panic(expected = "a rate of arrivals is a number above 0")]
fn no_rate() {
    made(2, Preset::Uniform, Arrivals::Rate(0.0), 0);
}
