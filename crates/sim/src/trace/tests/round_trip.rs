//! What is written is read back equal.

use std::sync::Arc;

use expect_test::expect;
use proptest::option;
use proptest::prelude::*;
use yard_core::cluster::Level;
use yard_core::job::{Claim, Late, Reward, Sharing, Usage};
use yard_core::{Span, Time};

use super::samples::{SAMPLES, opened};
use crate::trace::{CloseAsk, HostAsk, Scaling, Trace, TraceJob, Work, read, write};

fn written(trace: &Trace) -> String {
    let mut out = Vec::new();
    write(trace, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The jobs without their lines, which differ between files.
fn jobs(trace: &Trace) -> Vec<TraceJob> {
    trace.jobs.iter().map(|job| TraceJob { line: 0, ..job.clone() }).collect()
}

fn check(trace: &Trace) {
    let text = written(trace);
    let back = read("back", text.as_bytes(), None).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(jobs(&back.trace), jobs(trace), "{text}");
}

#[test]
fn every_format_can_be_converted() {
    SAMPLES.iter().for_each(|(_, text)| check(&opened(text).unwrap().trace));
}

#[test]
fn only_used_columns_are_written() {
    expect![[r#"
        job_id,submit_s,gpus,duration_s,model
        0,0,1,164,vgg19
        1,30,8,147,vgg11
    "#]]
    .assert_eq(&written(&opened(SAMPLES[5].1).unwrap().trace));
    expect![[r#"
        job_id,submit_s,gpus,duration_s,steps,model,batch_size,user,tenant,weight,priority,deadline_s,min_gpus,max_gpus,kinds
        early,0,1,,500,ResNet-18,64,,,1,0,,,,
        late,7.5,4,60,,,,ann,red,2.5,-3,1000,2,8,v100|p100
    "#]].assert_eq(&written(&opened(SAMPLES[0].1).unwrap().trace));
}

/// A word without blanks at its ends, which reading trims; commas, quotes and # are fair.
fn word() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9#\",é|'-]([ a-z0-9#\",\n]{0,6}[a-z0-9\"])?"
}

fn shared() -> impl Strategy<Value = Option<Arc<str>>> {
    option::of(word().prop_map(Arc::from))
}

fn work() -> impl Strategy<Value = Work> {
    prop_oneof![(1e-6..1e12f64).prop_map(Work::Seconds), (1e-6..1e15f64).prop_map(Work::Steps)]
}

fn sharing() -> impl Strategy<Value = Option<Arc<Sharing>>> {
    let claim = prop_oneof![Just(Claim::Ordinary), Just(Claim::Guaranteed), Just(Claim::Opportunistic)];
    let part = || prop_oneof![Just(1.0), 0.001..1.0f64];
    let words = (shared(), shared(), shared());
    (claim, part(), part(), part(), option::of(1u32..1_000_000), option::of(part()), words).prop_map(
        |(claim, loss_max, request, above, memory_mib, busy, (affinity, anti_affinity, exclusion))| {
            let limit = request + (1.0 - request) * above;
            let usage = busy.map(|busy| Usage { busy, memory_mib: memory_mib.unwrap_or(0) });
            let said = Sharing {
                claim,
                loss_max,
                request,
                limit,
                memory_mib,
                usage,
                alone: false,
                affinity,
                anti_affinity,
                exclusion,
            };
            (said != Sharing::PLAIN).then(|| Arc::new(said))
        },
    )
}

/// What some jobs ask of their hosts.
fn host(number: i32) -> Option<Arc<HostAsk>> {
    let amount = number.unsigned_abs() % 1000;
    let asked = HostAsk {
        cpus: (number % 2 == 0).then(|| f64::from(amount + 1) / 8.0),
        memory_mib: (number % 3 == 0).then_some(amount + 1),
        counts: if number % 5 == 0 {
            vec![("scratch".into(), amount), ("licence".into(), 1)]
        } else {
            vec![]
        },
    };
    (asked != HostAsk::default()).then(|| Arc::new(asked))
}

/// On how many nodes some jobs run, and how close together.
fn close(number: i32, gpus: u32) -> Option<CloseAsk> {
    let nodes = [4, 2].into_iter().find(|nodes| gpus.is_multiple_of(*nodes)).filter(|_| number % 2 == 0);
    let close = (number % 3 == 0).then_some(Level::Block);
    let prefer = (number % 5 == 0).then_some(Level::Rack);
    let segment = nodes.filter(|_| close.or(prefer).is_some() && number % 4 == 0).map(|nodes| nodes / 2);
    let asked = CloseAsk { nodes, segment, close, prefer };
    (asked != CloseAsk::default()).then_some(asked)
}

fn job() -> impl Strategy<Value = TraceJob> {
    // Instants below 2^51 µs, and a deadline not before the submission.
    let times = (0..1u64 << 50, option::of(0..1u64 << 50));
    let gangs = (1..1000u32, option::of(0.0..1.0f64), option::of(0..1000u32), option::of(1u32..));
    let words = (shared(), shared(), shared(), prop::collection::vec("[a-z0-9]{1,4}", 0..3));
    (times, gangs, words, work(), prop_oneof![Just(1.0), 1e-9..1e9f64], (any::<i32>(), sharing())).prop_map(
        |(
            (submit, slack),
            (gpus, min, more, batch_size),
            (model, user, tenant, mut kinds),
            work,
            weight,
            (priority, sharing),
        )| {
            kinds.sort();
            kinds.dedup();
            let scaling = [None, Some(Scaling::Rigid), Some(Scaling::Strong), Some(Scaling::Adaptive)];
            let deadline = slack.map(|slack| Time(submit + slack));
            let reward = |by, worth| Reward { by, worth };
            let soft = |by: Time| [reward(by, 9.5), reward(by + Span(1_000_001), 0.25)].into();
            TraceJob {
                name: "".into(),
                submit: Time(submit),
                gpus,
                work,
                model,
                batch_size,
                user,
                tenant,
                weight,
                priority,
                deadline,
                min_gpus: min.map(|part| 1 + (part * f64::from(gpus - 1)) as u32),
                max_gpus: more.map(|more| gpus + more),
                mode: scaling[priority.rem_euclid(4) as usize],
                batch_max: batch_size.filter(|_| priority % 3 == 0).map(|size| size.saturating_add(7)),
                regimes: None,
                kinds: kinds.into_iter().map(Arc::from).collect(),
                sharing,
                host: host(priority),
                close: close(priority, gpus),
                rewards: deadline.filter(|_| priority % 2 == 0).map(soft),
                late: if priority % 5 == 0 { Late::Refuse } else { Late::Try },
                after: Box::default(),
                line: 0,
            }
        },
    )
}

proptest! {
    #[test]
    fn any_trace(mut list in prop::collection::vec((job(), word()), 1..20)) {
        list.sort_by_key(|(job, _)| job.submit);
        let named = |(number, (job, word))| TraceJob { name: format!("{word}_{number}").into(), ..job };
        let mut jobs: Vec<TraceJob> = list.into_iter().enumerate().map(named).collect();
        // Some come after the one before; a name with | in it cannot be named.
        for at in (1..jobs.len()).filter(|at| at % 3 > 0) {
            let name = jobs[at - 1].name.clone();
            jobs[at].after = Some(name).filter(|name| !name.contains('|')).into_iter().collect();
        }
        check(&Trace { source: "t".into(), format: "yard", jobs });
    }
}
