//! Bad input: one sentence each, with file, line, field, value and what is allowed.

use expect_test::{Expect, expect};

use super::samples::{SAMPLES, archive, gzip};
use crate::trace::{open, read};

fn check(text: impl AsRef<[u8]>, expected: Expect) {
    check_as(None, text, expected);
}

fn check_as(format: Option<&str>, text: impl AsRef<[u8]>, expected: Expect) {
    let message = read("jobs.csv", text.as_ref(), format).unwrap_err().to_string();
    assert!(!message.contains('\n'), "{message}");
    expected.assert_eq(&message);
}

/// One native row after the four columns that must be there.
fn row(extra_columns: &str, row: &str) -> String {
    format!("job_id,submit_s,gpus,duration_s{extra_columns}\n{row}\n")
}

#[test]
fn durations() {
    check(
        row("", "a,0,1,-5"),
        expect![[
            r#"jobs.csv, line 2, field duration_s: "-5" is negative; a duration is a number of seconds above 0"#
        ]],
    );
    check(
        row("", "a,0,1,0"),
        expect![[
            r#"jobs.csv, line 2, field duration_s: "0" is zero; a duration is a number of seconds above 0"#
        ]],
    );
    check(
        row("", "a,0,1,NaN"),
        expect![[
            r#"jobs.csv, line 2, field duration_s: "NaN" is not a finite number; a duration is a number of seconds above 0"#
        ]],
    );
    check(
        row("", "a,0,1,inf"),
        expect![[
            r#"jobs.csv, line 2, field duration_s: "inf" is not a finite number; a duration is a number of seconds above 0"#
        ]],
    );
    check(
        row("", "a,0,1,2e12"),
        expect![[
            r#"jobs.csv, line 2, field duration_s: "2e12" is above 1e12, more than can be meant; a duration is a number of seconds above 0"#
        ]],
    );
    check(
        row("", "a,0,1,ten"),
        expect![[
            r#"jobs.csv, line 2, field duration_s: "ten" is not a number; a duration is a number of seconds above 0"#
        ]],
    );
    check(
        row("", "a,0,1,"),
        expect![[
            r#"jobs.csv, line 2, field duration_s: "" is empty; each row gives one of duration_s and steps"#
        ]],
    );
    check(
        row(",steps", "a,0,1,5,7"),
        expect![[
            r#"jobs.csv, line 2, field steps: "7" stands beside duration_s "5"; each row gives one of duration_s and steps"#
        ]],
    );
    check(
        "job_id,submit_s,gpus,steps\na,0,1,-7",
        expect![[r#"jobs.csv, line 2, field steps: "-7" is negative; steps are a number above 0"#]],
    );
}

#[test]
fn sharing() {
    let wrong = |columns: &str, values: &str| {
        let text = row(columns, &format!("a,0,1,5{values}"));
        read("jobs.csv", text.as_bytes(), None).unwrap_err().to_string()
    };
    let messages = [
        wrong(",class", ",best"),
        wrong(",gpu_fraction", ",1.7"),
        wrong(",gpu_fraction,gpu_limit", ",0.5,0.4"),
        wrong(",gpu_memory_mib", ",0"),
        wrong(",gpu_busy", ",nan"),
    ];
    expect![[r#"
        jobs.csv, line 2, field class: "best" is not one; a class is ordinary, guaranteed or opportunistic
        jobs.csv, line 2, field gpu_fraction: "1.7" is out of range or not a number; it is the part of a device that a job asks for, above 0 up to 1
        jobs.csv, line 2, field gpu_limit: "0.4" is below gpu_fraction, 0.5; a job may have what it asks for
        jobs.csv, line 2, field gpu_memory_mib: "0" is zero; gpu_memory_mib is a whole number from 1 to 100000000
        jobs.csv, line 2, field gpu_busy: "nan" is out of range or not a number; it is the part of the time in which a job computes, from 0 up to 1"#]].assert_eq(&messages.join("\n"));
}

#[test]
fn counts() {
    check(
        row("", "a,0,0,5"),
        expect![[r#"jobs.csv, line 2, field gpus: "0" is zero; gpus are a whole number from 1 to 1000000"#]],
    );
    check(
        row("", "a,0,1000001,5"),
        expect![[
            r#"jobs.csv, line 2, field gpus: "1000001" is too large; gpus are a whole number from 1 to 1000000"#
        ]],
    );
    check(
        row("", "a,0,1.5,5"),
        expect![[
            r#"jobs.csv, line 2, field gpus: "1.5" is not whole; gpus are a whole number from 1 to 1000000"#
        ]],
    );
    check(
        row("", "a,0,99999999999999999999,5"),
        expect![[
            r#"jobs.csv, line 2, field gpus: "99999999999999999999" is too large; gpus are a whole number from 1 to 1000000"#
        ]],
    );
    check(
        row(",min_gpus", "a,0,4,5,8"),
        expect![[
            r#"jobs.csv, line 2, field min_gpus: "8" is too large; min_gpus, at most the job's gpus, is a whole number from 1 to 4"#
        ]],
    );
    check(
        row(",max_gpus", "a,0,4,5,2"),
        expect![[
            r#"jobs.csv, line 2, field max_gpus: "2" is too small; max_gpus, at least the job's gpus, is a whole number from 4 to 1000000"#
        ]],
    );
    check(
        row(",batch_size", "a,0,4,5,0"),
        expect![[
            r#"jobs.csv, line 2, field batch_size: "0" is zero; a batch size is a whole number from 1 to 4294967295"#
        ]],
    );
}

#[test]
fn other_fields() {
    check(
        row("", "a,-1,1,5"),
        expect![[
            r#"jobs.csv, line 2, field submit_s: "-1" is negative; a time is a number of seconds from 0 up"#
        ]],
    );
    check(
        row("", ",0,1,5"),
        expect![[r#"jobs.csv, line 2, field job_id: "" is empty; each job has a name"#]],
    );
    check(
        row(",weight", "a,0,1,5,0"),
        expect![[r#"jobs.csv, line 2, field weight: "0" is zero; a weight is a number above 0"#]],
    );
    check(
        row(",weight", "a,0,1,5,-2"),
        expect![[r#"jobs.csv, line 2, field weight: "-2" is negative; a weight is a number above 0"#]],
    );
    check(
        row(",priority", "a,0,1,5,high"),
        expect![[
            r#"jobs.csv, line 2, field priority: "high" is not one; a priority is a whole number from -2147483648 to 2147483647"#
        ]],
    );
    check(
        row(",deadline_s", "a,100,1,5,60"),
        expect![[
            r#"jobs.csv, line 2, field deadline_s: "60" is before the job's submission at 100s; a deadline is an instant on the clock of the submissions"#
        ]],
    );
    check(
        b"job_id,submit_s,gpus,duration_s\na\xff,0,1,5\n",
        expect![[r#"jobs.csv, line 2, field job_id: "a�" is not UTF-8; a field is UTF-8 text"#]],
    );
    check(
        row("", &format!("a,0,1,{}", "x".repeat(5000))),
        expect![[
            r#"jobs.csv, line 2, field duration_s: "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…" is not a number; a duration is a number of seconds above 0"#
        ]],
    );
}

#[test]
fn rows_and_columns() {
    check(row("", "a,0,1"), expect!["jobs.csv, line 2: the row has 3 fields, and 4 are expected"]);
    check(
        row("", "# a comment\n\na,0,1,5\nb,0,1,5,6"),
        expect!["jobs.csv, line 5: the row has 5 fields, and 4 are expected"],
    );
    check(
        row(",colour,size", "a,0,1,5,red,2"),
        expect![[
            r#"jobs.csv: the header has unknown columns: "colour", "size"; allowed are: job_id, submit_s, gpus, duration_s, steps, model, batch_size, user, tenant, weight, priority, deadline_s, min_gpus, max_gpus, kinds, after, mode, batch_max, regimes, rewards, late, class, max_slowdown, gpu_fraction, gpu_limit, gpu_memory_mib, gpu_busy, affinity, anti_affinity, exclusion, cpus, memory_mib, resources, nodes, segment, close, prefer"#
        ]],
    );
    check(
        "job_id,submit_s,gpus\na,0,1\n",
        expect!["jobs.csv: the header has no column duration_s or steps; it has: job_id, submit_s, gpus"],
    );
    check(
        "job_id,gpus,duration_s\na,0,1\n",
        expect!["jobs.csv: the header has no column submit_s; it has: job_id, gpus, duration_s"],
    );
    check(
        "job_id,submit_s,gpus,gpus,steps\na,0,1\n",
        expect![[r#"jobs.csv: the header has the column "gpus" twice"#]],
    );
    check(
        row("", "a,0,1,5\nb,0,1,5\na,9,1,5"),
        expect![[r#"jobs.csv, line 4, field job_id: "a" is also on line 2; each job has a name of its own"#]],
    );
}

#[test]
fn whole_files() {
    check("", expect!["jobs.csv: there are no jobs in it"]);
    check("job_id,submit_s,gpus,duration_s\n", expect!["jobs.csv: there are no jobs in it"]);
    check(
        "when,what\n1,2\n",
        expect![[
            r#"jobs.csv: no format has the header "when,what"; name one of: yard, gavel, philly, itp, muri, tiresias, chronus, elasticflow, sia, shockwave, openb, helios, pai, slurm, kubernetes"#
        ]],
    );
    check_as(
        Some("nomad"),
        "when,what\n1,2\n",
        expect![[
            r#"format "nomad" is unknown; the formats are: auto, yard, gavel, philly, itp, muri, tiresias, chronus, elasticflow, sia, shockwave, openb, helios, pai, slurm, kubernetes"#
        ]],
    );
    check_as(
        Some("itp"),
        "when,what\n1,2\n",
        expect!["jobs.csv: the header has no column job_id; it has: when, what"],
    );
    check(
        &gzip(SAMPLES[0].1.as_bytes())[..60],
        expect!["jobs.csv: the gzip data are damaged or cut short: incomplete deflate stream"],
    );
    check(
        &archive(&[("a.csv", SAMPLES[3].1)])[..600],
        expect!["jobs.csv: the tar data are damaged or cut short: a member is longer than the archive"],
    );
    check(
        archive(&[("a.txt", "x")]),
        expect!["jobs.csv: there are no jobs in it (an archive without CSV members)"],
    );
}

#[test]
fn other_formats() {
    check(
        "ResNet\tx\ty\tz\t1\t10\t0\t1\t-1\t0\n",
        expect![[
            r#"jobs.csv, line 1, field scale_factor: "0" is zero; gpus are a whole number from 1 to 1000000"#
        ]],
    );
    check(
        "ResNet\tx\ty\tz\t1\t10\t1\t1\tsoon\t0\n",
        expect![[r#"jobs.csv, line 1, field SLO: "soon" is not a number; an SLO is a number, -1 for none"#]],
    );
    check(
        "timestamp,duration,num_gpus,gpu_time,cluster\nyesterday,5,1,5,a\n",
        expect![[
            r#"jobs.csv, line 2, field timestamp: "yesterday" is not a date and time; a timestamp is like 2017-10-09 07:01:55"#
        ]],
    );
    check(
        "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,5,0,5,a\n",
        expect!["jobs.csv: there are no jobs in it (1 of 1 rows left out: num_gpus is 0)"],
    );
    check(
        SAMPLES[4].1.replace("10956", "1e15"),
        expect![[
            r#"jobs.csv, line 2, field iterations: "1e15" makes 443554999999999.94 s of work; a job has at most 1e12 s of work"#
        ]],
    );
    check(
        SAMPLES[6].1.replace("159-", "-159-"),
        expect![[
            r#"jobs.csv, line 2, field expect_time_list: "-159-189-229-289" is no list of them; deadlines are minutes above 0, with - between"#
        ]],
    );
    check(
        SAMPLES[6].1.replace(",96,", ",-96,"),
        expect![[
            r#"jobs.csv, line 2, field duration: "-96" is negative; a duration is a number of minutes above 0"#
        ]],
    );
    check(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,1,1\n",
        expect![
            "jobs.csv: the header has no column gpu_spec; it has: name, cpu_milli, memory_mib, num_gpu, gpu_milli"
        ],
    );
}

#[test]
fn absent_files() {
    let message = open("no/such/file.csv".as_ref(), None).unwrap_err().to_string();
    expect!["no/such/file.csv: cannot be read: No such file or directory (os error 2)"].assert_eq(&message);
}
