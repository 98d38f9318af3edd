//! Parts of cards: what a job is told of its limits, and what people are told who ask for what cannot be had.

use crate::harness::{Answer, Cluster};

/// A submission that is refused: exit code 2, one sentence, and no job.
fn refused(cluster: &Cluster, options: &str) -> String {
    let answer: Answer = cluster.yard(&format!("submit {options} -- true"));
    assert_eq!((answer.code, answer.out.as_str()), (Some(2), ""), "{options}: {}", answer.err);
    assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
    answer.err.trim_end().to_owned()
}

#[test]
fn a_job_is_told_what_it_may_take_of_its_card() {
    let cluster = Cluster::up("--fake v100:2 --round 1s --policy fifo");
    let show = ["sh", "-c", "env | grep CUDA_ | sort"];
    let half = cluster.submit("--gpu-fraction 0.5 --gpu-memory 8GiB", &show);
    cluster.wait(half, "succeeded");
    let log = cluster.yard(&format!("logs {half}")).ok();
    assert!(log.contains("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50\n"), "{log}");
    assert!(log.contains("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=8192M\n"), "{log}");
    assert!(log.contains("CUDA_MPS_PIPE_DIRECTORY=/"), "{log}");
    let whole = cluster.submit("", &show);
    cluster.wait(whole, "succeeded");
    assert!(!cluster.yard(&format!("logs {whole}")).ok().contains("CUDA_MPS"));
}

#[test]
fn an_operator_can_have_all_jobs_share_through_mps() {
    let cluster = Cluster::up("--fake v100:2 --round 1s --policy fifo --sharing mps");
    let show = ["sh", "-c", "env | grep -c CUDA_MPS_PIPE || true"];
    for (options, through) in [("", "1"), ("--exclusive", "0"), ("--gpus 2", "0"), ("--pause freeze", "0")] {
        let job = cluster.submit(options, &show);
        cluster.wait(job, "succeeded");
        assert_eq!(cluster.yard(&format!("logs {job}")).ok().trim(), through, "{options}");
    }
}

#[test]
fn memory_that_no_card_has_is_refused_with_the_largest_there_is() {
    let cluster = Cluster::up("--fake v100:2 --round 1s --policy fifo");
    let said = refused(&cluster, "--gpu-memory 1T");
    assert!(said.contains("no GPU that the job may use has 1048576 MiB"), "{said}");
    assert!(said.contains("the largest is v100 with 81920 MiB"), "{said}");
    let said = refused(&cluster, "--pause freeze --gpu-memory 8GiB");
    assert!(said.contains("use pause: checkpoint or pause: auto, or leave out gpu_memory_mib"), "{said}");
}

#[test]
fn what_cannot_be_had_is_refused_with_what_could() {
    let cluster = Cluster::up("--cpu-slots 2 --name here --round 1s --policy fifo");
    assert_eq!(
        refused(&cluster, "--gpu-fraction 1.7"),
        "error: gpu_fraction: 1.7 is more than one GPU; use gpus: 2 for whole GPUs"
    );
    let said = refused(&cluster, "--gpu-fraction 0.5");
    assert!(said.contains("node here offers no GPUs"), "{said}");
    let body = r#"{"command": ["true"], "gpu_fraction": 1.7}"#;
    let (url, token) = (cluster.url() + "/v1/jobs", format!("Authorization: Bearer {}", cluster.token()));
    let (code, answer) =
        cluster.curl(&["-H", &token, "-H", "Content-Type: application/json", "-d", body, &url]);
    assert_eq!(code, 400);
    assert!(answer.contains("\"field\":\"gpu_fraction\"") && answer.contains("use gpus: 2"), "{answer}");
    assert_eq!(cluster.yard("jobs --all -o json").ok().matches("\"id\"").count(), 0, "nothing was taken");
}
