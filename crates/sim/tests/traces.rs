//! Every public trace that lies beside the repository, read whole and checked against sums that were
//! computed from the files by other means.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::PathBuf;

use yard_sim::throughput::Throughputs;
use yard_sim::trace::{Opened, Stats, Trace, open, open_nodes, read, write};

/// The folder of the data, if it is there.
fn data() -> Option<PathBuf> {
    yard_needs::shared("")
}

fn opened(path: &str) -> Option<Opened> {
    let path = data()?.join(path);
    Some(open(&path, None).unwrap_or_else(|error| panic!("{error}")))
}

/// Opens by header and checks format, jobs and device-hours; what is written is read back equal.
fn check(path: &str, format: &str, jobs: usize, gpu_hours: f64) {
    let Some(opened) = opened(path) else { return };
    let stats = Stats::of(&opened.trace);
    assert_eq!((stats.format, stats.jobs), (format, jobs), "{path}");
    assert!((stats.gpu_hours.unwrap_or_default() - gpu_hours).abs() < 0.01, "{path}: {:?}", stats.gpu_hours);
    assert!(opened.trace.jobs.is_sorted_by_key(|job| job.submit), "{path}");
    check_round_trip(&opened.trace);
}

fn check_round_trip(trace: &Trace) {
    let mut text = Vec::new();
    write(trace, &mut text).unwrap();
    let back = read("written", &text, None).unwrap().trace;
    assert_eq!(back.jobs.len(), trace.jobs.len());
    for (back, job) in back.jobs.iter().zip(&trace.jobs) {
        assert_eq!(
            (&back.name, back.submit, back.gpus, back.work),
            (&job.name, job.submit, job.gpus, job.work)
        );
        assert_eq!((&back.model, back.deadline, &back.tenant), (&job.model, job.deadline, &job.tenant));
    }
}

#[test]
fn itp() {
    check("traces/elasticflow/raw-traces.tar.gz", "itp", 69_351, 1_632_719.740);
    check("traces/elasticflow/raw-traces.tar.gz#cluster01", "itp", 1_595, 22_740.125);
    let Some(opened) = opened("traces/elasticflow/raw-traces.tar.gz") else { return };
    let stats = Stats::of(&opened.trace);
    assert_eq!(stats.tenants.len(), 10);
    let first = (stats.tenants[0].name.as_str(), stats.tenants[0].jobs);
    assert_eq!(first, ("cluster04", 15_802));
    assert_eq!(stats.sizes.iter().map(|size| size.gpus).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32, 64]);
}

#[test]
fn philly() {
    check("traces/philly/philly.csv.gz", "philly", 82_247, 978_078.472);
    let Some(opened) = opened("traces/philly/philly.csv.gz") else { return };
    let stats = Stats::of(&opened.trace);
    assert_eq!(stats.first_submit_s, 0.0);
    // From 2017-09-04 10:30:41 to 2017-12-22 08:02:11.
    assert_eq!(stats.span_s, 109.0 * 86_400.0 - (2.0 * 3600.0 + 28.0 * 60.0 + 30.0));
}

#[test]
fn gavel() {
    check("gavel/max_min_fairness.trace", "gavel", 96, 0.0);
    check("gavel/minimize_makespan.trace", "gavel", 100, 0.0);
    let Some(opened) = opened("gavel/max_min_fairness.trace") else { return };
    let first = &opened.trace.jobs[0];
    assert_eq!((first.model.as_deref(), first.batch_size, first.gpus), (Some("ResNet-18"), Some(128), 4));
}

#[test]
fn native() {
    let Some(opened) = opened("gavel/continuous_single_seed0_lam1928.5714.csv") else { return };
    assert_eq!(opened.trace.format, "yard");
    check_round_trip(&opened.trace);
}

#[test]
fn muri_and_tiresias() {
    check("traces/muri/cluster_trace.csv", "muri", 400, 66_975.921);
    for (path, jobs) in [("trace1", 1494), ("trace2", 5755), ("trace1_pr", 1494), ("job_type_1", 992)] {
        let Some(opened) = opened(&format!("traces/muri/{path}.csv")) else { return };
        assert_eq!((opened.trace.format, opened.trace.jobs.len()), ("muri", jobs));
    }
    check("traces/tiresias/60_job.csv", "tiresias", 60, 7.3956);
}

#[test]
fn chronus() {
    check("traces/chronus/trace_job_Philly_SLO.csv.gz", "chronus", 30_940 - 205, 368_510.916);
    check("traces/chronus/trace_job_Philly_MIX1.csv.gz", "chronus", 30_940 - 184, 371_328.133);
    check("traces/chronus/trace_job_Philly_MIX2.csv.gz", "chronus", 30_940 - 194, 378_975.366);
    check("traces/chronus/sub_SLO.csv", "chronus", 300, 974.3667);
    let Some(mixed) = opened("traces/chronus/sub_MIX1.csv") else { return };
    assert_eq!(Stats::of(&mixed.trace).deadlines, 197);
    let Some(slo) = opened("traces/chronus/trace_job_Philly_SLO.csv.gz") else { return };
    assert_eq!(slo.notes, ["205 of 30940 rows left out: num_gpu is 0"]);
    assert!(slo.trace.jobs.iter().all(|job| job.deadline > Some(job.submit)));
}

#[test]
fn elasticflow() {
    check("traces/elasticflow/elasticVpollux_e.csv", "elasticflow", 195, 9_293.849);
    check("traces/elasticflow/philly_103959.csv", "elasticflow", 876, 42_816.077);
    check("traces/elasticflow/resnet_cifar_trace.csv", "elasticflow", 5, 6.0228);
    check("traces/elasticflow/elasticflow-traces.tar.gz#cluster04", "elasticflow", 15_802, 705_682.885);
    check("traces/elasticflow/elasticflow-traces.tar.gz#195job", "elasticflow", 195, 5_489.807);
}

#[test]
fn openb() {
    check("traces/alibaba/openb_pod_list_default.csv.gz", "openb", 7_063, 59_658.126);
    check("traces/alibaba/openb_pod_list_gpuspec33.csv.gz", "openb", 7_063, 59_658.126);
    let Some(folder) = data() else { return };
    let pods = open(&folder.join("traces/alibaba/openb_pod_list_multigpu50.csv.gz"), None);
    assert!(pods.unwrap_err().to_string().contains("no column gpu_spec"));
    for list in ["openb_node_list_gpu_node.csv.gz", "openb_node_list_all_node.csv.gz"] {
        let nodes = open_nodes(&folder.join("traces/alibaba").join(list)).unwrap();
        assert_eq!((nodes.len(), nodes.iter().map(|(_, _, gpus)| gpus).sum::<u32>()), (1_213, 6_212));
        assert!(nodes.iter().any(|(_, kind, _)| kind == "p100"));
    }
}

#[test]
fn results_are_not_taken_for_traces() {
    let Some(folder) = data() else { return };
    for path in
        ["muri/testbed_SRSF_job.csv", "elasticflow/fig10_shipped_edf_job.csv", "tiresias/yarn-gput1000.csv"]
    {
        let error = open(&folder.join("traces").join(path), None).unwrap_err().to_string();
        assert!(error.contains("no format has the header"), "{error}");
    }
}

#[test]
fn throughput_tables() {
    let Some(folder) = data() else { return };
    let gavel = Throughputs::open(&folder.join("gavel/simulation_throughputs.json")).unwrap();
    assert_eq!(gavel.kinds().collect::<Vec<_>>(), ["k80", "p100", "v100"]);
    assert_eq!(gavel.models().count(), 7);
    assert_eq!(gavel.speed("k80", "ResNet-18", Some(16), 1), Some(4.795294551566172));
    assert_eq!(gavel.speed("k80", "ResNet-50", Some(128), 2), None);
    assert!(gavel.speed("v100", "A3C", None, 1).is_some());
    let t4 = Throughputs::open(&folder.join("traces/elasticflow/throughputs_T4")).unwrap();
    assert_eq!(t4.kinds().collect::<Vec<_>>(), ["t4"]);
    assert_eq!(t4.speed("t4", "yolov3", Some(64), 2), Some(0.828799432511257));
    assert_eq!(t4.speed("t4", "yolov3", Some(64), 64), None);
    let a100 = Throughputs::open(&folder.join("traces/elasticflow/throughputs_A100")).unwrap();
    assert_eq!((a100.models().count(), a100.speed("a100", "deepspeech2", Some(32), 64)), (7, None));
    assert_eq!(a100.speed("a100", "resnet50_cifar10", Some(64), 16), None);
}
