//! The formats: one file and one line of the table each.

mod chronus;
mod civil;
mod elasticflow;
mod gavel;
mod helios;
mod itp;
mod kubernetes;
mod muri;
mod openb;
mod pai;
mod philly;
mod shockwave;
mod sia;
mod slurm;
mod tiresias;
mod yard;

use super::TraceError;
use super::bytes::Text;
use super::error::shorten;
use super::jobs::TraceJobs;

pub(crate) use gavel::split_model;
pub use openb::open_nodes;
pub(crate) use yard::COLUMNS as YARD_COLUMNS;

/// A format of traces.
pub struct Format {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Whether the first line of a file is this format's.
    pub(crate) detect: fn(&Head<'_>) -> bool,
    /// Reads the jobs of one text.
    pub(crate) parse: fn(Text<'_>, &mut TraceJobs) -> Result<(), TraceError>,
}

/// Every format. The headers are told apart by their columns, so the order does not matter.
pub const FORMATS: &[Format] = &[
    Format {
        name: "yard",
        about: "the native CSV: job_id, submit_s, gpus, duration_s or steps, and optional columns",
        detect: yard::detect,
        parse: yard::parse,
    },
    Format {
        name: "gavel",
        about: "Gavel (OSDI'20): tab-separated lines of templates, steps and arrivals; needs a throughput table",
        detect: gavel::detect,
        parse: gavel::parse,
    },
    Format {
        name: "philly",
        about: "Microsoft Philly, as timestamp,duration,num_gpus,gpu_time,cluster",
        detect: philly::detect,
        parse: philly::parse,
    },
    Format {
        name: "itp",
        about: "Microsoft ITP 2021: a tar of clusters, or one; ARCHIVE#cluster01 picks one",
        detect: itp::detect,
        parse: itp::parse,
    },
    Format {
        name: "muri",
        about: "Muri (SIGCOMM'22): milliseconds, iterations and their measured time",
        detect: muri::detect,
        parse: muri::parse,
    },
    Format {
        name: "tiresias",
        about: "Tiresias (NSDI'19): seconds, durations and gangs",
        detect: tiresias::detect,
        parse: tiresias::parse,
    },
    Format {
        name: "chronus",
        about: "Chronus (SoCC'21): minutes, virtual clusters, deadlines relative to the submission",
        detect: chronus::detect,
        parse: chronus::parse,
    },
    Format {
        name: "elasticflow",
        about: "ElasticFlow (ASPLOS'23): seconds, models, absolute deadlines",
        detect: elasticflow::detect,
        parse: elasticflow::parse,
    },
    Format {
        name: "sia",
        about: "Sia (SOSP'23) and Pollux (OSDI'21): applications, replicas and batch sizes; needs their profiles as --throughputs",
        detect: sia::detect,
        parse: sia::parse,
    },
    Format {
        name: "shockwave",
        about: "Shockwave (NSDI'23): JSON of jobs whose batch sizes change as they train",
        detect: shockwave::detect,
        parse: shockwave::parse,
    },
    Format {
        name: "openb",
        about: "Alibaba GPU 2023: pods with their allowed kinds; part of a device counts as one",
        detect: openb::detect,
        parse: openb::parse,
    },
    Format {
        name: "helios",
        about: "SenseTime Helios (SC'21), cluster_log.csv: virtual clusters, users, seconds from start to end",
        detect: helios::detect,
        parse: helios::parse,
    },
    Format {
        name: "pai",
        about: "Alibaba PAI 2020, pai_task_table.csv with or without its header: tasks of a job run together",
        detect: pai::detect,
        parse: pai::parse,
    },
    Format {
        name: "slurm",
        about: "Slurm's accounting: sacct --parsable2 or --json; see yard trace import slurm --help",
        detect: slurm::detect,
        parse: slurm::parse,
    },
    Format {
        name: "kubernetes",
        about: "pods of a Kubernetes cluster, its audit log, or its Prometheus; see yard trace import kubernetes --help",
        detect: kubernetes::detect,
        parse: kubernetes::parse,
    },
];

/// The first line of a file that is neither empty nor a comment, and its columns. JSON over several lines has its
/// beginning as one line.
pub(crate) struct Head<'a> {
    line: &'a str,
    columns: Vec<&'a str>,
}

impl Head<'_> {
    /// Whether all these columns are there.
    fn has(&self, columns: &[&str]) -> bool {
        columns.iter().all(|column| self.columns.contains(column))
    }

    /// Whether any of these columns is there.
    fn any(&self, columns: &[&str]) -> bool {
        columns.iter().any(|column| self.columns.contains(column))
    }
}

/// The format of this name; for none or `auto` the one whose header `text` has.
pub(crate) fn choose(name: Option<&str>, text: Text<'_>) -> Result<&'static Format, TraceError> {
    match name {
        None | Some("auto") => detect(text),
        Some(name) => FORMATS
            .iter()
            .find(|format| format.name == name)
            .ok_or_else(|| TraceError::UnknownFormat { name: shorten(name), known: names() }),
    }
}

fn detect(text: Text<'_>) -> Result<&'static Format, TraceError> {
    let line = first_line(text.bytes);
    let columns = line.split(',').map(|column| column.trim().trim_matches('"')).collect();
    let head = Head { line: &line, columns };
    FORMATS.iter().find(|format| (format.detect)(&head)).ok_or_else(|| {
        if line.is_empty() {
            return TraceError::Empty { file: text.file.to_owned(), why: String::new() };
        }
        TraceError::Undetectable { file: text.file.to_owned(), header: shorten(&line), known: names() }
    })
}

/// A header longer than this is no header.
const HEADER_BYTES_MAX: usize = 1 << 16;

/// What JSON is shows within so many bytes.
const JSON_HEAD_BYTES: usize = 1024;

fn first_line(bytes: &[u8]) -> String {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let blank = |line: &&[u8]| !line.trim_ascii().is_empty() && !line.starts_with(b"#");
    let line = bytes.split(|&byte| byte == b'\n' || byte == b'\r').find(blank).unwrap_or_default();
    if line.trim_ascii() == b"{" {
        let start = &bytes[..bytes.len().min(JSON_HEAD_BYTES)];
        return String::from_utf8_lossy(start).replace(['\n', '\r'], " ");
    }
    String::from_utf8_lossy(&line[..line.len().min(HEADER_BYTES_MAX)]).into_owned()
}

fn names() -> String {
    FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_header_is_of_one_format() {
        for (header, name) in [
            ("job_id,submit_s,gpus,duration_s", "yard"),
            ("# made by hand\n\njob_id, submit_s, gpus, steps, model", "yard"),
            ("ResNet-18 (batch size 128)\tpython3\tdir\t--n\t1\t9\t4\t1\t-1.000000\t0", "gavel"),
            ("timestamp,duration,num_gpus,gpu_time,cluster", "philly"),
            ("\u{feff}job_id,submission_time,duration,num_gpu", "itp"),
            (
                "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time",
                "muri",
            ),
            ("job_id,num_gpu,submit_time,iterations,model_name,duration,interval\r", "tiresias"),
            (
                "job_id,user,num_gpu,submit_time,iterations,model_name,duration,interval,expect_time_list",
                "chronus",
            ),
            ("job_id,submit_time,iteration,model_name,ddl,batch_size,num_gpu,duration", "elasticflow"),
            (
                "job_id,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration",
                "elasticflow",
            ),
            ("name,time,application,num_replicas,batch_size", "sia"),
            ("[{\"job_id\": 0, \"submit_s\": 0.0, \"gpus\": 1, \"regimes\": [", "shockwave"),
            ("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos", "openb"),
            (
                "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
                "helios",
            ),
            (
                "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type",
                "pai",
            ),
            ("JobID|User|Account|State|Submit|Eligible|Elapsed|ReqTRES|AllocTRES", "slurm"),
            (
                "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"stage\":\"ResponseComplete\"}",
                "kubernetes",
            ),
        ] {
            let columns = first_line(header.as_bytes());
            let columns = columns.split(',').map(str::trim).collect();
            let line = first_line(header.as_bytes());
            let head = Head { line: &line, columns };
            let found: Vec<_> = FORMATS.iter().filter(|f| (f.detect)(&head)).map(|f| f.name).collect();
            assert_eq!(found, [name], "{header}");
        }
    }
}
