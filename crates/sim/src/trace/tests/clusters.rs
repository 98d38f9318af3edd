//! What clusters recorded: Slurm's accounting, and pods of Kubernetes in the three forms in which they can be had.

use expect_test::expect;

use super::samples::{check, opened};
use crate::trace::read;

/// A job of an array, one of a typed request, one that was requeued (twice there), and what is no job of a trace.
pub(super) const SACCT: &str = "\
JobID|User|Account|State|Submit|Eligible|Elapsed|ReqTRES|AllocTRES
71_3|ann|vision|COMPLETED|2026-10-01T08:00:00|2026-10-01T08:10:00|01:00:00|billing=4,cpu=4,gres/gpu=2|billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2
71_3.batch|||COMPLETED|2026-10-01T08:20:00|2026-10-01T08:20:00|01:00:00||cpu=4
72|bob|speech|TIMEOUT|2026-10-01T07:59:00|2026-10-01T07:59:00|2-00:00:30|gres/gpu:v100=8,node=2|gres/gpu:v100=8,gres/gpu=8,node=2
73|bob|speech|NODE_FAIL|2026-10-01T09:00:00|2026-10-01T09:00:00|00:10:00|gres/gpu=1|gres/gpu=1
73|bob|speech|COMPLETED|2026-10-01T09:00:00|2026-10-01T09:15:00|00:20:00|gres/gpu=1|gres/gpu=1
74|bob|speech|CANCELLED by 1001|2026-10-01T09:00:00|Unknown|00:00:00|gres/gpu=1|
75|bob|speech|RUNNING|2026-10-01T09:00:00|2026-10-01T09:00:00|00:20:00|gres/gpu=1|gres/gpu=1
76|bob|speech|COMPLETED|2026-10-01T09:00:00|2026-10-01T09:00:00|00:20:00|cpu=4|cpu=4
77|bob|speech|FAILED|2026-10-01T09:00:00|2026-10-01T09:00:00|00:00:00|gres/gpu=1|gres/gpu=1
";

/// Numbers and states as older versions write them, and as newer ones do.
pub(super) const SACCT_JSON: &str = r#"{
  "meta": { "plugin": { "type": "openapi/dbv0.0.38" }, "Slurm": { "release": "22.05.8" } },
  "jobs": [
    { "job_id": 72, "array": { "job_id": 0, "task_id": null }, "user": "bob", "account": "speech",
      "state": { "current": "TIMEOUT", "reason": "TimeLimit" },
      "time": { "submission": 1790841540, "eligible": 1790841540, "elapsed": 172830 },
      "tres": { "requested": [ { "type": "gres", "name": "gpu:v100", "id": 1002, "count": 8 } ],
                "allocated": [ { "type": "cpu", "name": null, "id": 1, "count": 8 },
                               { "type": "gres", "name": "gpu:v100", "id": 1002, "count": 8 },
                               { "type": "gres", "name": "gpu", "id": 1001, "count": 8 } ] } },
    { "job_id": 90, "array": { "job_id": 71, "task_id": { "set": true, "infinite": false, "number": 3 } },
      "user": "ann", "account": "vision", "state": { "current": [ "COMPLETED" ] },
      "time": { "submission": 1790841600, "eligible": { "set": true, "number": 1790842200 }, "elapsed": 3600 },
      "tres": { "requested": [ { "type": "gres", "name": "gpu", "count": 2 } ], "allocated": [] } } ] }
"#;

/// A pod is created, bound, ends and is deleted; another is deleted while it runs; what else happens is passed over.
pub(super) const AUDIT_LOG: &str = concat!(
    r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"create","stageTimestamp":"2026-10-01T08:00:00.100000Z","objectRef":{"resource":"pods","namespace":"vision","name":"a-0"},"responseObject":{"kind":"Pod","metadata":{"name":"a-0","namespace":"vision","uid":"u1","creationTimestamp":"2026-10-01T08:00:00Z","ownerReferences":[{"kind":"PyTorchJob","name":"a","uid":"o1","controller":true}]},"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"4"}}}]},"status":{"phase":"Pending"}}}"#,
    "\n",
    r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"patch","objectRef":{"resource":"pods","subresource":"status","namespace":"vision","name":"a-0"},"responseObject":{"kind":"Pod","metadata":{"name":"a-0","namespace":"vision","uid":"u1","creationTimestamp":"2026-10-01T08:00:00Z","ownerReferences":[{"kind":"PyTorchJob","name":"a","uid":"o1","controller":true}]},"spec":{"containers":[{"resources":{"limits":{"nvidia.com/gpu":"4"}}}]},"status":{"phase":"Succeeded","conditions":[{"type":"PodScheduled","status":"True","lastTransitionTime":"2026-10-01T08:01:00Z"}],"containerStatuses":[{"state":{"terminated":{"finishedAt":"2026-10-01T09:01:00Z"}}}]}}}"#,
    "\n",
    r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"update","objectRef":{"resource":"leases","namespace":"kube-node-lease","name":"n1"}}"#,
    "\n",
    r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"patch","objectRef":{"resource":"pods","subresource":"status","namespace":"vision","name":"b"},"responseObject":{"kind":"Pod","metadata":{"name":"b","namespace":"vision","uid":"u2","creationTimestamp":"2026-10-01T08:30:00Z"},"spec":{"nodeSelector":{"nvidia.com/gpu.product":"A100"},"containers":[{"resources":{"limits":{"nvidia.com/gpu":"1"}}}]},"status":{"phase":"Running","startTime":"2026-10-01T08:30:10Z"}}}"#,
    "\n",
    r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"delete","stageTimestamp":"2026-10-01T08:40:10.000000Z","objectRef":{"resource":"pods","namespace":"vision","name":"b"},"responseObject":{"kind":"Status","status":"Success"}}"#,
    "\n",
);

/// Two pods of a gang that overlap, then the same name again; a service's pod, one that runs and one without GPUs.
pub(super) const POD_LIST: &str = r#"{
  "apiVersion": "v1", "kind": "List", "items": [
  { "kind": "Pod", "metadata": { "name": "w-0", "namespace": "nlp", "uid": "1", "creationTimestamp": "2026-10-01T08:00:00Z",
      "labels": { "scheduling.x-k8s.io/pod-group": "w" } },
    "spec": { "containers": [ { "resources": { "limits": { "nvidia.com/gpu": 8 } } } ] },
    "status": { "phase": "Succeeded", "startTime": "2026-10-01T08:05:00Z",
      "containerStatuses": [ { "state": { "terminated": { "finishedAt": "2026-10-01T09:05:00Z" } } } ] } },
  { "kind": "Pod", "metadata": { "name": "w-1", "namespace": "nlp", "uid": "2", "creationTimestamp": "2026-10-01T08:00:00Z",
      "labels": { "scheduling.x-k8s.io/pod-group": "w" } },
    "spec": { "containers": [ { "resources": { "limits": { "nvidia.com/gpu": 8 } } } ] },
    "status": { "phase": "Succeeded", "startTime": "2026-10-01T08:05:00Z",
      "containerStatuses": [ { "state": { "terminated": { "finishedAt": "2026-10-01T09:05:00Z" } } } ] } },
  { "kind": "Pod", "metadata": { "name": "w-0", "namespace": "nlp", "uid": "3", "creationTimestamp": "2026-10-01T12:00:00Z",
      "labels": { "scheduling.x-k8s.io/pod-group": "w" } },
    "spec": { "containers": [ { "resources": { "requests": { "nvidia.com/gpu": "8" } } } ] },
    "status": { "phase": "Failed", "startTime": "2026-10-01T12:00:00Z",
      "containerStatuses": [ { "state": { "terminated": { "finishedAt": "2026-10-01T12:10:00Z" } } } ] } },
  { "kind": "Pod", "metadata": { "name": "s", "namespace": "web", "uid": "4", "creationTimestamp": "2026-10-01T08:00:00Z",
      "ownerReferences": [ { "kind": "ReplicaSet", "name": "r", "uid": "r", "controller": true } ] },
    "spec": { "containers": [ { "resources": { "limits": { "nvidia.com/gpu": "1" } } } ] },
    "status": { "phase": "Running", "startTime": "2026-10-01T08:00:00Z" } },
  { "kind": "Pod", "metadata": { "name": "c", "namespace": "web", "uid": "5" },
    "spec": { "containers": [ {} ] }, "status": { "phase": "Running" } },
  { "kind": "Node", "metadata": { "name": "n1" } } ] }
"#;

/// What `/api/v1/query_range` answers: one pod that completed, one whose series end before the newest.
const PROMETHEUS: &str = r#"{"status":"success","data":{"resultType":"matrix","result":[
  {"metric":{"__name__":"kube_pod_created","namespace":"nlp","pod":"p","uid":"1"},"values":[[1790841600,"1790841500"],[1790848800,"1790841500"]]},
  {"metric":{"__name__":"kube_pod_start_time","namespace":"nlp","pod":"p","uid":"1"},"values":[[1790841600,"1790841560"]]},
  {"metric":{"__name__":"kube_pod_completion_time","namespace":"nlp","pod":"p","uid":"1"},"values":[[1790848800,"1790848760"]]},
  {"metric":{"__name__":"kube_pod_owner","namespace":"nlp","pod":"p","uid":"1","owner_kind":"Job","owner_name":"train"},"values":[[1790841600,"1"]]},
  {"metric":{"__name__":"kube_pod_container_resource_requests","namespace":"nlp","pod":"p","uid":"1","resource":"nvidia_com_gpu"},"values":[[1790841600,"2"]]},
  {"metric":{"__name__":"kube_pod_created","namespace":"nlp","pod":"q","uid":"2"},"values":[[1790841600,"1790841600"],[1790845200,"1790841600"]]},
  {"metric":{"__name__":"kube_pod_start_time","namespace":"nlp","pod":"q","uid":"2"},"values":[[1790841600,"1790841600"]]},
  {"metric":{"__name__":"kube_pod_container_resource_requests","namespace":"nlp","pod":"q","uid":"2","resource":"nvidia_com_gpu"},"values":[[1790841600,"1"]]}
]}}"#;

#[test]
fn slurm() {
    check(
        "slurm",
        0,
        expect![[r#"
        72: line 4 at 0s gpus 8 Seconds(172830.0) user bob tenant speech weight 1 priority 0 kinds ["v100"]
        71_3: line 2 at 660s gpus 2 Seconds(3600.0) user ann tenant vision
        73: line 5 at 3660s gpus 1 Seconds(1800.0) user bob tenant speech
        note: 1 of 8 rows left out: it is a step of a job
        note: 1 of 8 rows left out: the job has no GPU
        note: 1 of 8 rows left out: the job never ran
        note: 1 of 8 rows left out: the job still runs, so its length is not known
        note: 1 of 8 rows left out: the job was never eligible
        note: in 1 of 8 rows a job ran again: its runs are added up
    "#]],
    );
    check(
        "slurm",
        1,
        expect![[r#"
        72: line 1 at 0s gpus 8 Seconds(172830.0) user bob tenant speech weight 1 priority 0 kinds ["v100"]
        71_3: line 2 at 660s gpus 2 Seconds(3600.0) user ann tenant vision
    "#]],
    );
}

#[test]
fn kubernetes() {
    check(
        "kubernetes",
        0,
        expect![[r#"
        vision/a: line 1 at 0s gpus 4 Seconds(3600.0) tenant vision
        vision/b: line 2 at 1800s gpus 1 Seconds(600.0) tenant vision weight 1 priority 0 kinds ["A100"]
    "#]],
    );
    check(
        "kubernetes",
        1,
        expect![[r#"
        nlp/w: line 1 at 0s gpus 16 Seconds(3600.0) tenant nlp
        nlp/w-2: line 2 at 14400s gpus 8 Seconds(600.0) tenant nlp
        note: 1 of 5 rows left out: it is no pod
        note: 1 of 5 rows left out: the pod has no GPU
        note: 1 of 5 rows left out: the pod still runs, so its length is not known
    "#]],
    );
}

#[test]
fn prometheus() {
    let trace = opened(PROMETHEUS).unwrap().trace;
    let show =
        |job: &crate::trace::TraceJob| format!("{} {} {} {:?}", job.name, job.submit, job.gpus, job.work);
    let shown: Vec<_> = trace.jobs.iter().map(show).collect();
    assert_eq!(shown, ["nlp/train 0s 2 Seconds(7200.0)", "nlp/q 100s 1 Seconds(3600.0)"]);
}

/// A pod that is given time to end is deleted twice; the later time counts, and what its containers say counts more.
#[test]
fn the_last_deletion_ends_a_pod() {
    let later = AUDIT_LOG.lines().last().unwrap().replace("08:40:10", "08:45:10");
    let trace = opened(&format!("{AUDIT_LOG}{later}\n")).unwrap().trace;
    assert_eq!(format!("{:?}", trace.jobs[1].work), "Seconds(900.0)");
}

#[test]
fn what_is_wrong_is_said() {
    let error = |text: &str, format| read("t", text.as_bytes(), Some(format)).unwrap_err().to_string();
    let without = SACCT.replace("|ReqTRES|AllocTRES", "|A|B");
    for (message, expected) in [
        (
            error(&without, "slurm"),
            expect![
                "t: the header has no column AllocTRES or ReqTRES; it has: JobID, User, Account, State, Submit, Eligible, Elapsed, A, B"
            ],
        ),
        (
            error(&SACCT.replace("01:00:00|billing", "an hour|billing"), "slurm"),
            expect![[
                r#"t, line 2, field Elapsed: "an hour" is not a duration; Slurm writes [days-]hours:minutes:seconds"#
            ]],
        ),
        (
            error(&SACCT.replace("gres/gpu=2|billing", "gres/gpu=two|billing"), "slurm"),
            expect![[
                r#"t, line 2, field ReqTRES: "billing=4,cpu=4,gres/gpu=two" is no list of resources: "gres/gpu=two" has no number after "="; GPUs are written gres/gpu=4"#
            ]],
        ),
        (
            error(&SACCT.replace("gres/gpu", "gres/tpu"), "slurm"),
            expect![
                "t: there are no jobs in it (1 of 9 rows left out: it is a step of a job; 8 of 9 rows left out: the job has no GPU)"
            ],
        ),
        (
            error(&SACCT_JSON.replace("\"elapsed\": 172830", "\"elapsed\": -5"), "slurm"),
            expect!["t, job 0, counted from 0: time.elapsed -5 is not a number of seconds from 0 up"],
        ),
        (
            error(&POD_LIST.replace("\"nvidia.com/gpu\": 8", "\"nvidia.com/gpu\": \"8k\""), "kubernetes"),
            expect![
                "t, job 0, counted from 0: pod nlp/w-0: nvidia.com/gpu: 8k is not a whole number up to 1024"
            ],
        ),
        (
            error(&POD_LIST.replace("2026-10-01T08:05:00Z", "five past"), "kubernetes"),
            expect![[
                r#"t, job 0, counted from 0: pod nlp/w-0: "five past" is no timestamp like 2026-10-01T08:00:00Z"#
            ]],
        ),
        (
            error(&PROMETHEUS.replace("matrix", "vector"), "kubernetes"),
            expect![[
                r#"t, job 0, counted from 0: resultType is "vector"; ask /api/v1/query_range, which answers "matrix""#
            ]],
        ),
        (
            error("{\"apiVersion\": \"v1\"}", "kubernetes"),
            expect![
                "t, job 0, counted from 0: it is neither a pod, a list of pods, an audit event nor a Prometheus answer"
            ],
        ),
        (
            error("{\"kind\": \"Pod\"", "kubernetes"),
            expect!["t: not the JSON of a trace: EOF while parsing an object at line 1 column 14"],
        ),
    ] {
        expected.assert_eq(&message);
    }
}
