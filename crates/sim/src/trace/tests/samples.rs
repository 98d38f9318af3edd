//! A small valid file of each format, and what is read from it.

use std::fmt::Write as _;
use std::io::Write as _;

use expect_test::{Expect, expect};
use flate2::Compression;
use flate2::write::GzEncoder;
use yard_core::job::Late;

use crate::trace::{FORMATS, Opened, TraceError, TraceJob, read};

/// Format, file.
pub(super) const SAMPLES: [(&str, &str); 20] = [
    (
        "yard",
        "# by hand\njob_id,submit_s,gpus,duration_s,steps,model,batch_size,user,tenant,weight,priority,deadline_s,\
         min_gpus,max_gpus,kinds\n\
         late,7.5,4,60,,,,ann,red,2.5,-3,1000,2,8,v100|p100|v100\n\
         early,0,1,,500,ResNet-18,64,,,,,,,,\n",
    ),
    (
        "gavel",
        "ResNet-18 (batch size 128)\tpython3 main.py --data_dir=%s/cifar10\timage\t--num_steps\t1\t925982\t4\t1\t-1.000000\t0\n\
         A3C\tpython3 \"main.py\trl\t--max-steps\t0\t44334\t1\t5\t1.2\t90.25\n",
    ),
    (
        "philly",
        "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,11cb48\n\
         2017-10-09 06:13:03,2951.0,2,5902.0,6214e9\n2017-10-09 08:00:00,0.0,1,0.0,6214e9\n\
         2017-10-09 09:00:00,5.0,0,0.0,6214e9\n",
    ),
    (
        "itp",
        "job_id,submission_time,duration,num_gpu\n965d744f-0445,1932025,2429,64\nfb10987f-20ac,1800000,1532,1\n",
    ),
    (
        "muri",
        "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,\
         resource_time_0,resource_time_1,resource_time_2,priority\n\
         0,8,1500,10956,gpt2,4,5095000,91000,437,0.6,419,49,0\n",
    ),
    (
        "tiresias",
        "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,1,0,606,vgg19,164,30\n1,8,30,133,vgg11,147,23\n",
    ),
    (
        "chronus",
        "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list,expect_value_list,best_effort,job_type\n\
         0,vc_ed69ec,1,5601,5530,mobilenet_v2,96,5,159-189-229-289,10-8-5-2,0,soft\n\
         2,vc_ee9e8c,1,14341,3621,alexnet,30,17,14341,10,1,best\n\
         3,vc_ee9e8c,0,14341,3621,alexnet,30,17,100,10,0,strict\n",
    ),
    (
        "elasticflow",
        "job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration\n0,3715485,2011,cifar10,3719996,4096,1,5644\n",
    ),
    (
        "elasticflow",
        "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration\n965d,1932025,45775,resnet50,1933904,256,64,2429\n",
    ),
    (
        "sia",
        "name,time,application,num_replicas,batch_size\ncifar10-0,401.0,cifar10,12,4096\nbert-1,30,bert,6,384\n",
    ),
    (
        "sia",
        "name,time,application,num_replicas,batch_size,category\na,0,bert,6,384,rigid\nb,1,bert,6,384,scale-gpus\nc,2,bert,6,384,\n",
    ),
    (
        "shockwave",
        r#"[{"job_id": 3, "submit_s": 55.0, "gpus": 2, "model": "LM", "mode": "gns", "epochs": 3, "regimes":
            [{"batch_size": 10, "epochs": 2, "epoch_s": 60.5}, {"batch_size": 20, "epochs": 1, "epoch_s": 40}]}]"#,
    ),
    (
        "yard",
        "job_id,submit_s,gpus,duration_s,model,batch_size,mode,batch_max,regimes,rewards,late\n\
         a,0,4,,bert,48,adaptive,384,,,\nb,1,2,90,,,strong,,,200:10|300.5:4,refuse\n\
         c,2,1,,LM,,,,10:2:60.5|20:1:40,,try\n",
    ),
    (
        "openb",
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
         pod-0,12000,16384,2,1000,V100M16|V100M32,LS,Running,10,500,20\n\
         pod-1,6000,12288,1,460,,BE,Pending,30,400,\n\
         pod-2,6000,12288,0,0,,BE,Running,30,400,30\n\
         pod-3,6000,12288,1,460,,BE,Running,30,,30\n",
    ),
    (
        "helios",
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
         12,u2,vcB,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:27,2020-06-09 18:45:36,249,0\n\
         11,u1,vcA,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0\n\
         13,u2,vcB,0,16,1,COMPLETED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-09 18:45:36,248,0\n\
         14,u2,vcB,1,16,1,CANCELLED,2020-06-09 18:41:29,2020-06-09 18:41:29,2020-06-09 18:41:29,0,0\n",
    ),
    (
        "pai",
        "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type\n\
         a,ps,1.0,Terminated,100.0,400.0,600.0,29.3,,\na,worker,2.0,Terminated,110.0,390.0,400.0,29.3,50.0,T4\n\
         b,worker,1.0,Failed,50.0,90.0,400.0,29.3,200.0,V100\nc,ps,1.0,Terminated,10.0,90.0,400.0,29.3,,\n\
         d,worker,1.0,Running,10.0,,400.0,29.3,100.0,MISC\n",
    ),
    ("slurm", super::clusters::SACCT),
    ("slurm", super::clusters::SACCT_JSON),
    ("kubernetes", super::clusters::AUDIT_LOG),
    ("kubernetes", super::clusters::POD_LIST),
];

/// Opens one of the samples' texts by its header.
pub(super) fn opened(text: &str) -> Result<Opened, TraceError> {
    read("t", text.as_bytes(), None)
}

pub(super) fn check(format: &str, form: usize, expected: Expect) {
    let (name, text) = SAMPLES.iter().filter(|(name, _)| *name == format).nth(form).unwrap();
    let opened = read("t", text.as_bytes(), Some(name)).unwrap();
    assert_eq!(opened.trace.format, *name);
    let mut shown: String = opened.trace.jobs.iter().map(line).collect();
    opened.notes.iter().for_each(|note| writeln!(shown, "note: {note}").unwrap());
    expected.assert_eq(&shown);
}

/// A job on one line, without what it does not have.
fn line(job: &TraceJob) -> String {
    let mut line =
        format!("{}: line {} at {} gpus {} {:?}", job.name, job.line, job.submit, job.gpus, job.work);
    let words = [("model", &job.model), ("user", &job.user), ("tenant", &job.tenant)];
    words.iter().for_each(|(what, word)| word.iter().for_each(|w| write!(line, " {what} {w}").unwrap()));
    let counts = [("batch", job.batch_size), ("min", job.min_gpus), ("max", job.max_gpus)];
    counts.iter().for_each(|(what, count)| count.iter().for_each(|n| write!(line, " {what} {n}").unwrap()));
    job.deadline.iter().for_each(|deadline| write!(line, " by {deadline}").unwrap());
    job.mode.iter().for_each(|mode| write!(line, " {}", mode.name()).unwrap());
    job.batch_max.iter().for_each(|size| write!(line, " up to {size}").unwrap());
    job.regimes.iter().flat_map(|phases| phases.iter()).for_each(|phase| {
        write!(line, " {}x{}x{}s", phase.batch_size, phase.epochs, phase.epoch_s).unwrap();
    });
    job.rewards.iter().flat_map(|rewards| rewards.iter()).for_each(|reward| {
        write!(line, " {} by {}", reward.worth, reward.by).unwrap();
    });
    if job.late != Late::Try {
        write!(line, " or not at all").unwrap();
    }
    if (job.weight, job.priority, job.kinds.len()) != (1.0, 0, 0) {
        write!(line, " weight {} priority {} kinds {:?}", job.weight, job.priority, job.kinds).unwrap();
    }
    line + "\n"
}

#[test]
fn yard() {
    check(
        "yard",
        0,
        expect![[r#"
        early: line 4 at 0s gpus 1 Steps(500.0) model ResNet-18 batch 64
        late: line 3 at 7.5s gpus 4 Seconds(60.0) user ann tenant red min 2 max 8 by 1000s weight 2.5 priority -3 kinds ["v100", "p100"]
    "#]],
    );
}

#[test]
fn gavel() {
    check(
        "gavel",
        0,
        expect![[r#"
        0: line 1 at 0s gpus 4 Steps(925982.0) model ResNet-18 batch 128
        1: line 2 at 90.25s gpus 1 Steps(44334.0) model A3C weight 5 priority 0 kinds []
        note: in 1 of 2 rows the SLO is not used: it is a multiple of a duration that the file does not give
    "#]],
    );
}

#[test]
fn philly() {
    check(
        "philly",
        0,
        expect![[r#"
        1: line 3 at 0s gpus 2 Seconds(2951.0) tenant 6214e9
        0: line 2 at 2932s gpus 1 Seconds(66.0) tenant 11cb48
        note: 1 of 4 rows left out: duration is 0
        note: 1 of 4 rows left out: num_gpus is 0
    "#]],
    );
}

#[test]
fn helios() {
    check(
        "helios",
        0,
        expect![[r#"
            11: line 3 at 0s gpus 1 Seconds(36848.0) user u1 tenant vcA
            12: line 2 at 26s gpus 4 Seconds(249.0) user u2 tenant vcB
            note: 1 of 4 rows left out: duration is 0
            note: 1 of 4 rows left out: gpu_num is 0
        "#]],
    );
}

#[test]
fn pai() {
    check(
        "pai",
        0,
        expect![[r#"
            b: line 4 at 50s gpus 2 Seconds(40.0)
            a: line 2 at 100s gpus 2 Seconds(300.0)
            note: 1 of 4 rows left out: a task has no start_time or no end_time
            note: 1 of 4 rows left out: it asks for no GPU
        "#]],
    );
}

#[test]
fn workers_of_pai_may_ask_for_parts_of_devices() {
    let (_, text) = SAMPLES.iter().find(|(name, _)| *name == "pai").unwrap();
    let jobs = opened(text).unwrap().trace.jobs;
    let part = |job: &TraceJob| job.sharing.as_ref().map(|sharing| sharing.request);
    assert_eq!(jobs.iter().map(part).collect::<Vec<_>>(), [None, Some(0.5)]);
}

/// The published files have their headers in files of their own.
#[test]
fn pai_is_read_without_its_header_too() {
    let (_, text) = SAMPLES.iter().find(|(name, _)| *name == "pai").unwrap();
    let (_, rows) = text.split_once('\n').unwrap();
    let bare = read("t", rows.as_bytes(), Some("pai")).unwrap();
    let strip =
        |jobs: &[TraceJob]| jobs.iter().map(|job| TraceJob { line: 0, ..job.clone() }).collect::<Vec<_>>();
    assert_eq!(strip(&bare.trace.jobs), strip(&opened(text).unwrap().trace.jobs));
}

#[test]
fn itp() {
    check(
        "itp",
        0,
        expect![[r#"
        fb10987f-20ac: line 3 at 1800000s gpus 1 Seconds(1532.0)
        965d744f-0445: line 2 at 1932025s gpus 64 Seconds(2429.0)
    "#]],
    );
}

#[test]
fn muri() {
    check(
        "muri",
        0,
        expect![[r#"
        0: line 2 at 1.5s gpus 8 Seconds(4859.588579999999) model gpt2 batch 4
    "#]],
    );
}

#[test]
fn tiresias() {
    check(
        "tiresias",
        0,
        expect![[r#"
        0: line 2 at 0s gpus 1 Seconds(164.0) model vgg19
        1: line 3 at 30s gpus 8 Seconds(147.0) model vgg11
    "#]],
    );
}

#[test]
fn growing() {
    check(
        "yard",
        1,
        expect![[r#"
        a: line 2 at 0s gpus 4 Profile model bert batch 48 adaptive up to 384
        b: line 3 at 1s gpus 2 Seconds(90.0) by 200s strong 10 by 200s 4 by 300.5s or not at all
        c: line 4 at 2s gpus 1 Seconds(161.0) model LM 10x2x60.5s 20x1x40s
    "#]],
    );
}

#[test]
fn sia() {
    check(
        "sia",
        0,
        expect![[r#"
        bert-1: line 3 at 30s gpus 6 Profile model bert batch 384 adaptive
        cifar10-0: line 2 at 401s gpus 12 Profile model cifar10 batch 4096 adaptive
    "#]],
    );
    check(
        "sia",
        1,
        expect![[r#"
        a: line 2 at 0s gpus 6 Profile model bert batch 384 rigid
        b: line 3 at 1s gpus 6 Profile model bert batch 384 strong
        c: line 4 at 2s gpus 6 Profile model bert batch 384 adaptive
    "#]],
    );
}

#[test]
fn shockwave() {
    check(
        "shockwave",
        0,
        expect![[r#"
        3: line 1 at 55s gpus 2 Seconds(161.0) model LM batch 10 10x2x60.5s 20x1x40s
    "#]],
    );
}

#[test]
fn chronus() {
    check(
        "chronus",
        0,
        expect![[r#"
            0: line 2 at 336060s gpus 1 Seconds(5760.0) model mobilenet_v2 user vc_ed69ec tenant vc_ed69ec by 345600s 10 by 345600s 8 by 347400s 5 by 349800s 2 by 353400s
            2: line 3 at 860460s gpus 1 Seconds(1800.0) model alexnet user vc_ee9e8c tenant vc_ee9e8c
            note: 1 of 3 rows left out: num_gpu is 0
        "#]],
    );
}

#[test]
fn elasticflow() {
    check(
        "elasticflow",
        0,
        expect![[r#"
            0: line 2 at 3715485s gpus 1 Seconds(5644.0) model cifar10 batch 4096 by 3719996s or not at all
        "#]],
    );
    check(
        "elasticflow",
        1,
        expect![[r#"
            965d: line 2 at 1932025s gpus 64 Seconds(2429.0) model resnet50 batch 256 by 1933904s or not at all
        "#]],
    );
}

#[test]
fn openb() {
    check(
        "openb",
        0,
        expect![[r#"
        pod-0: line 2 at 10s gpus 2 Seconds(480.0) tenant LS weight 1 priority 0 kinds ["v100m16", "v100m32"]
        pod-1: line 3 at 30s gpus 1 Seconds(370.0) tenant BE
        note: 1 of 4 rows left out: it has no creation_time or no deletion_time
        note: 1 of 4 rows left out: num_gpu is 0
    "#]],
    );
}

#[test]
fn every_format_has_a_sample() {
    assert!(FORMATS.iter().all(|format| SAMPLES.iter().any(|(name, _)| *name == format.name)));
}

/// The same content, gzipped.
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A tar archive of files.
pub(super) fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        builder.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn gzip_is_known_by_content_and_clusters_by_member() {
    let itp = SAMPLES[3].1;
    let files = [("b/cluster02.csv", itp), ("LICENSE", "no jobs"), ("cluster01.csv", itp)];
    let opened = read("t.dat", &gzip(&archive(&files)), Some("auto")).unwrap();
    let tenants: Vec<_> = opened.trace.jobs.iter().map(|job| job.tenant.as_deref().unwrap()).collect();
    assert_eq!(tenants, ["cluster01", "cluster02", "cluster01", "cluster02"]);
    assert_eq!(opened.trace.format, "itp");
}

#[test]
fn one_member_is_picked_by_name() {
    let path = std::env::temp_dir().join(format!("yard-trace-{}.tar", std::process::id()));
    std::fs::write(&path, archive(&[("cluster01.csv", SAMPLES[3].1), ("cluster02.csv", SAMPLES[3].1)]))
        .unwrap();
    let of = |member: &str| crate::trace::open(format!("{}#{member}", path.display()).as_ref(), None);
    let (one, same, none) = (of("cluster02"), of("cluster02.csv"), of("cluster03"));
    std::fs::remove_file(&path).unwrap();
    assert!(one.unwrap().trace.jobs.iter().all(|job| job.tenant.as_deref() == Some("cluster02")));
    assert_eq!(same.unwrap().trace.jobs.len(), 2);
    let message = none.unwrap_err().to_string();
    assert!(
        message.ends_with("has no member \"cluster03\"; its CSV members are: cluster01, cluster02"),
        "{message}"
    );
}
