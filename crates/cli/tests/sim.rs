//! `yard sim` from the outside: the keys that scripts rely on, the files it writes, and figures that can be
//! checked by hand.

mod common;

use common::{Dir, THREE_JOBS};
use serde_json::Value;

/// The one run of a command line that has one policy.
fn run(dir: &Dir, line: &str) -> Value {
    let mut answer = dir.yard(&format!("sim {line} -o json")).json();
    let runs = answer["runs"].as_array_mut().expect("runs is a list");
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

fn number(run: &Value, key: &str) -> f64 {
    run[key].as_f64().unwrap_or_else(|| panic!("{key} is {}", run[key]))
}

fn text<'a>(run: &'a Value, key: &str) -> &'a str {
    run[key].as_str().unwrap_or_else(|| panic!("{key} is {}", run[key]))
}

// The contract.

#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    Count,
    Number,
    NumberOrNull,
}

impl Kind {
    fn holds(self, value: &Value) -> bool {
        match self {
            Kind::Text => value.is_string(),
            Kind::Count => value.is_u64(),
            Kind::Number => value.is_number(),
            Kind::NumberOrNull => value.is_number() || value.is_null(),
        }
    }
}

/// Every key that scripts may rely on.
const KEYS: [(&str, Kind); 29] = [
    ("policy", Kind::Text),
    ("trace", Kind::Text),
    ("cluster", Kind::Text),
    ("seed", Kind::Count),
    ("jobs", Kind::Count),
    ("finished", Kind::Count),
    ("avg_jct_s", Kind::NumberOrNull),
    ("p50_jct_s", Kind::NumberOrNull),
    ("p90_jct_s", Kind::NumberOrNull),
    ("p99_jct_s", Kind::NumberOrNull),
    ("makespan_s", Kind::NumberOrNull),
    ("avg_queue_s", Kind::NumberOrNull),
    ("p90_queue_s", Kind::NumberOrNull),
    ("utilization", Kind::NumberOrNull),
    ("preemptions", Kind::Count),
    ("migrations", Kind::Count),
    ("rounds", Kind::Count),
    ("plans", Kind::Count),
    ("deadline_total", Kind::Count),
    ("deadline_met", Kind::Count),
    ("deadline_miss_ratio", Kind::NumberOrNull),
    ("avg_rho", Kind::NumberOrNull),
    ("max_rho", Kind::NumberOrNull),
    ("cost", Kind::NumberOrNull),
    ("gpu_hours", Kind::Number),
    ("wall_s", Kind::Number),
    ("plan_s", Kind::Number),
    ("peak_rss_mib", Kind::NumberOrNull),
    ("events_sha256", Kind::Text),
];

#[test]
fn every_key_of_the_contract_is_there() {
    let dir = Dir::with_trace(THREE_JOBS);
    let answer = dir.yard("sim --trace t.csv --cluster gpu:2x4 --policy fifo,las,srtf -o json").json();
    for run in answer["runs"].as_array().expect("runs is a list") {
        for (key, kind) in KEYS {
            let value = run.get(key).unwrap_or_else(|| panic!("{key} is absent"));
            assert!(kind.holds(value), "{key} is {value}, not {kind:?}");
        }
        assert_eq!(text(run, "events_sha256").len(), 64);
    }
}

#[test]
fn what_does_not_apply_is_null() {
    let dir = Dir::with_trace(THREE_JOBS);
    let run = run(&dir, "--trace t.csv --cluster gpu:2x4 --policy fifo");
    assert_eq!((&run["cost"], &run["deadline_miss_ratio"]), (&Value::Null, &Value::Null));
    assert_eq!(run["deadline_total"], 0);
}

#[test]
fn turns_are_compared_with_what_was_asked() {
    // Two equal jobs take turns of 10 s on one device: each is asked for half of the time and gets it.
    let dir = Dir::with_trace("job_id,submit_s,gpus,duration_s\na,0,1,1000\nb,0,1,1000\n");
    let line = "--trace t.csv --cluster gpu:1 --overheads none --round 10s --policy";
    let turns = run(&dir, &format!("{line} round-robin"));
    assert!(number(&turns, "asked_received_error") < 0.02, "{turns}");
    let queue = run(&dir, &format!("{line} fifo"));
    for key in ["asked_received_error", "prices", "plan_gap_max"] {
        assert_eq!(queue.get(key), Some(&Value::Null), "{key}: a queue asks for no shares and has no prices");
    }
}

#[test]
fn a_round_can_be_chosen_to_suit_the_jobs() {
    let dir = Dir::with_trace(THREE_JOBS);
    let line = "--trace t.csv --cluster gpu:2x4 --policy las --round auto";
    // √(2 · 4.74 · (100 + 50 + 500) / 3) is 45.3; without costs it is as short as may be.
    assert_eq!(number(&run(&dir, line), "round_s"), 45.0);
    assert_eq!(number(&run(&dir, &format!("{line} --overheads none")), "round_s"), 30.0);
}

#[test]
fn deadlines_are_counted() {
    // With no costs, `a` ends at 100 and `b` at 300: one is in time.
    let dir = Dir::with_trace("job_id,submit_s,gpus,duration_s,deadline_s\na,0,1,100,100\nb,0,1,300,299\n");
    let run = run(&dir, "--trace t.csv --cluster gpu:2 --policy edf --overheads none");
    assert_eq!((&run["deadline_total"], &run["deadline_met"]), (&2.into(), &1.into()));
    assert_eq!(number(&run, "deadline_miss_ratio"), 0.5);
}

#[test]
fn the_table_has_a_row_for_each_policy() {
    let dir = Dir::with_trace(THREE_JOBS);
    let table = dir.yard("sim --trace t.csv --cluster gpu:2x4 --policy srtf,fifo").quietly();
    let first = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    assert_eq!(table.lines().map(first).take(3).collect::<Vec<_>>(), ["policy", "srtf", "fifo"]);
    assert!(table.contains("3/3") && table.contains("3 jobs of t.csv"), "{table}");
}

#[test]
fn policies_come_in_the_order_asked_for() {
    let dir = Dir::with_trace(THREE_JOBS);
    let answer = dir.yard("sim --trace t.csv --cluster gpu:1x4 --policy srtf,fifo,las,edf -o json").json();
    let runs = answer["runs"].as_array().expect("runs is a list");
    let names: Vec<_> = runs.iter().map(|run| text(run, "policy")).collect();
    assert_eq!(names, ["srtf", "fifo", "las", "edf"]);
}

// The same inputs, the same bytes.

#[test]
fn the_same_seed_gives_the_same_events() {
    let dir = Dir::new();
    dir.write("t.csv", dir.yard("trace gen --jobs 60 --rate 60 --seed 3").quietly());
    let line = "--trace t.csv --cluster gpu:4x4 --policy tiresias --node-mtbf 10h --seed 5";
    let first = run(&dir, &format!("{line} --events one.jsonl"));
    let second = run(&dir, &format!("{line} --events two.jsonl"));
    assert_eq!(first["events_sha256"], second["events_sha256"]);
    assert!(dir.read("one.jsonl").lines().count() > 180, "each job is submitted, granted and ended");
    assert_eq!(dir.read("one.jsonl"), dir.read("two.jsonl"));
}

#[test]
fn another_seed_gives_other_failures() {
    let dir = Dir::new();
    dir.write("t.csv", dir.yard("trace gen --jobs 60 --rate 60 --seed 3").quietly());
    let hash = |seed: u32| {
        let line = format!("--trace t.csv --cluster gpu:4x4 --policy fifo --node-mtbf 10h --seed {seed}");
        text(&run(&dir, &line), "events_sha256").to_owned()
    };
    assert_ne!(hash(1), hash(2));
}

// Files.

#[test]
fn events_are_one_json_object_a_line() {
    let dir = Dir::with_trace(THREE_JOBS);
    run(&dir, "--trace t.csv --cluster gpu:1x4 --policy fifo --events e.jsonl");
    let events: Vec<Value> =
        dir.read("e.jsonl").lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert!(events.iter().all(|event| event["t"].is_number() && event["event"].is_string()));
    assert!(events.is_sorted_by_key(|event| event["t"].as_f64().map(f64::to_bits)));
    assert_eq!(events.iter().filter(|event| event["event"] == "ended").count(), 3);
}

#[test]
fn several_policies_have_a_file_of_events_each() {
    let dir = Dir::with_trace(THREE_JOBS);
    let line = "sim --trace t.csv --cluster gpu:1x4 --policy fifo,srtf,tiresias:promote=8 --events e.jsonl";
    dir.yard(line).quietly();
    assert_eq!(dir.files("."), ["e.jsonl.fifo", "e.jsonl.srtf", "e.jsonl.tiresias_promote=8", "t.csv"]);
}

#[test]
fn there_is_a_row_for_each_job_and_policy() {
    let dir = Dir::with_trace(THREE_JOBS);
    let line = "sim --trace t.csv --cluster gpu:1x4 --policy fifo,srtf --overheads none --per-job j.csv";
    dir.yard(line).quietly();
    let rows = dir.read("j.csv");
    let cells: Vec<Vec<&str>> = rows.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| cells[0].iter().position(|cell| *cell == name).expect("the column is there");
    assert!(cells.iter().all(|row| row.len() == cells[0].len()), "{rows}");
    let keys: Vec<_> = cells[1..].iter().map(|row| (row[column("policy")], row[column("job_id")])).collect();
    let jobs = |policy| ["first", "second", "third"].map(|job| (policy, job));
    assert_eq!(keys, [jobs("fifo"), jobs("srtf")].concat());
    // First in, first out: `first` has all four devices until 100, then the two others run side by side.
    let fifo = |name: &str| [1, 2, 3].map(|row| cells[row][column(name)].parse::<f64>().unwrap_or(f64::NAN));
    assert_eq!(fifo("start_s"), [0.0, 100.0, 100.0]);
    assert_eq!(fifo("end_s"), [100.0, 150.0, 600.0]);
    assert_eq!(fifo("jct_s"), [100.0, 140.0, 580.0]);
    assert_eq!(fifo("queue_s"), [0.0, 90.0, 80.0]);
}

#[test]
fn odd_job_names_are_quoted() {
    let dir = Dir::with_trace("job_id,submit_s,gpus,duration_s\n\"a,\"\"b\"\"\",0,1,100\n");
    dir.yard("sim --trace t.csv --cluster gpu:1 --policy fifo --per-job j.csv").quietly();
    let rows = dir.read("j.csv");
    assert!(rows.lines().nth(1).is_some_and(|row| row.starts_with("fifo,\"a,\"\"b\"\"\",0,1,")), "{rows}");
}

#[test]
fn the_report_is_one_page_that_needs_nothing_else() {
    let dir = Dir::with_trace(THREE_JOBS);
    let answer = dir.yard("sim --trace t.csv --cluster gpu:1x4 --policy fifo,srtf --html r.html");
    assert_eq!((answer.code, answer.err.as_str()), (Some(0), "report: r.html\n"));
    let page = dir.read("r.html");
    assert!(page.contains("yard sim --trace t.csv --cluster gpu:1x4 --policy fifo,srtf --html r.html"));
    assert!(page.starts_with("<!doctype html>") && page.trim_end().ends_with("</html>"));
    // Names of namespaces look like addresses and are never fetched.
    let page = page.replace("http://www.w3.org/", "");
    assert!(!page.contains("http://") && !page.contains("https://"), "it refers to something outside");
    assert_eq!(dir.files("."), ["r.html", "t.csv"], "no half-written file is left");
}

#[test]
fn the_report_holds_the_same_figures_and_jobs_as_the_other_outputs() {
    let evil = "</script><img src=x onerror=alert(1)>";
    let dir =
        Dir::with_trace(&format!("job_id,submit_s,gpus,duration_s,tenant\n{evil},0,4,100,a\nb,10,2,50,b\n"));
    let line =
        "sim --trace t.csv --cluster gpu:1x4 --policy fifo,srtf --overheads none --html r.html -o json";
    let json = dir.yard(line).json();
    let page = dir.read("r.html");
    let (_, after) = page.split_once(r#"<script type="application/json" id="data">"#).expect("it has data");
    let (data, rest) = after.split_once("</script>").expect("the data ends");
    let data: Value = serde_json::from_str(data).expect("the data is JSON");
    for (shown, printed) in
        data["runs"].as_array().expect("runs").iter().zip(json["runs"].as_array().expect("runs"))
    {
        assert_eq!(shown["summary"]["events_sha256"], printed["events_sha256"]);
        assert_eq!(shown["summary"]["avg_jct_s"], printed["avg_jct_s"]);
        assert_eq!(shown["ended"]["jct"], serde_json::json!([100, 140]));
    }
    assert_eq!(data["jobs"]["name"], serde_json::json!([evil, "b"]));
    assert_eq!(data["teams"], serde_json::json!(["a", "b"]));
    assert!(!page.contains("<img") && rest.matches("</script>").count() == 1, "the name is text");
    assert!(page.contains("script-src 'sha256-") && !page.contains("unsafe-inline"));
}

#[test]
fn an_output_that_is_no_plain_file_is_written_to() {
    let dir = Dir::with_trace(THREE_JOBS);
    std::os::unix::fs::symlink("/dev/null", dir.path("null")).expect("a link can be made");
    for option in ["--html", "--per-job", "--events"] {
        let line = format!("sim --trace t.csv --cluster gpu:1x4 --policy fifo {option} null");
        dir.yard(&line).printed();
        assert!(dir.path("null").is_symlink(), "{option}");
    }
}

// Figures that can be checked by hand.

#[test]
fn statistics_can_be_over_some_jobs_only() {
    let dir = Dir::with_trace(THREE_JOBS);
    let run = run(&dir, "--trace t.csv --cluster gpu:1x4 --policy fifo --overheads none --jobs 1..3");
    assert_eq!((&run["jobs"], &run["finished"]), (&2.into(), &2.into()));
    assert_eq!(number(&run, "avg_jct_s"), (140.0 + 580.0) / 2.0);
}

#[test]
fn starting_a_process_takes_its_time() {
    let dir = Dir::with_trace("job_id,submit_s,gpus,duration_s\nalone,0,1,100\n");
    let jct = |overheads: &str| {
        let line = format!("--trace t.csv --cluster gpu:1 --policy fifo --overheads {overheads}");
        number(&run(&dir, &line), "avg_jct_s")
    };
    assert_eq!((jct("none"), jct("h200")), (100.0, 104.1));
}

#[test]
fn overheads_can_come_from_a_file() {
    let dir = Dir::with_trace("job_id,submit_s,gpus,duration_s\nalone,0,1,100\n");
    dir.write("o.toml", "save_s = 1\nload_s = 2\nstart_s = 30\n");
    let run = run(&dir, "--trace t.csv --cluster gpu:1 --policy fifo --overheads o.toml");
    assert_eq!(number(&run, "avg_jct_s"), 130.0);
}

#[test]
fn durations_pass_on_every_kind() {
    // Two jobs of two devices: one on each kind, side by side.
    let dir = Dir::with_trace("job_id,submit_s,gpus,duration_s\na,0,2,100\nb,0,2,100\n");
    let run = run(&dir, "--trace t.csv --cluster v100:1x2,p100:2 --policy fifo --overheads none");
    assert_eq!((number(&run, "makespan_s"), number(&run, "utilization")), (100.0, 1.0));
}

#[test]
fn jobs_stay_on_the_kinds_they_name() {
    let dir = Dir::with_trace("job_id,submit_s,gpus,duration_s,kinds\na,0,2,100,p100\nb,0,2,100,p100\n");
    let run = run(&dir, "--trace t.csv --cluster v100:1x2,p100:1x2 --policy fifo --overheads none");
    assert_eq!(number(&run, "makespan_s"), 200.0);
}

#[test]
fn steps_go_at_the_speed_of_the_table() {
    let dir =
        Dir::with_trace("job_id,submit_s,gpus,steps,model,batch_size\na,0,2,1000,LM,5\nb,0,2,1000,LM,5\n");
    dir.write(
        "speeds.csv",
        "kind,model,batch_size,gpus,steps_per_s\nslow,LM,5,2,2\nfast,LM,5,2,10\nfast,LM,5,1,6\n",
    );
    let table = "--throughputs speeds.csv --policy fifo --overheads none";
    // Alone in its kind each takes 1000 steps / 10 a second; the slow kind is listed first and not chosen.
    let both_fast = run(&dir, &format!("--trace t.csv --cluster slow:1x4,fast:1x4 {table}"));
    assert_eq!(number(&both_fast, "avg_jct_s"), 100.0);
    // With room for one only, the second takes 1000 steps / 2 a second.
    let one_slow = run(&dir, &format!("--trace t.csv --cluster slow:1x2,fast:1x2 {table}"));
    assert_eq!((number(&one_slow, "avg_jct_s"), number(&one_slow, "makespan_s")), (300.0, 500.0));
}

#[test]
fn gavels_own_table_gives_the_same() {
    let dir = Dir::with_trace("job_id,submit_s,gpus,steps,model,batch_size\na,0,2,1000,LM,5\n");
    dir.write("speeds.json", r#"{"fast": {"('LM (batch size 5)', 2)": {"null": 10.0}}}"#);
    let line = "--trace t.csv --cluster fast:1x2 --policy fifo --overheads none --throughputs speeds.json";
    assert_eq!(number(&run(&dir, line), "avg_jct_s"), 100.0);
}

#[test]
fn a_cluster_file_has_racks_and_prices() {
    let dir = Dir::with_trace("job_id,submit_s,gpus,duration_s\na,0,4,7200\n");
    dir.write(
        "c.toml",
        "[[nodes]]\nkind = 'a100'\nnodes = 4\ngpus = 2\nnodes_per_rack = 2\nprice_per_hour = 2.5\n",
    );
    let run = run(&dir, "--trace t.csv --cluster c.toml --policy fifo --overheads none");
    // Four devices for two hours at 2.50.
    assert_eq!((number(&run, "gpu_hours"), number(&run, "cost")), (8.0, 20.0));
    assert_eq!(number(&run, "utilization"), 0.5);
}

#[test]
fn a_trace_may_come_through_a_pipe() {
    let line = "sim --trace /dev/stdin --cluster gpu:1x4 --policy fifo -o json";
    let answer = Dir::new().yard_reading(line, THREE_JOBS).json();
    assert_eq!(answer["runs"][0]["finished"], 3);
}

/// Three models on two kinds, with pairs; a gang of two may lie on one node or be spread.
const SPEEDS: &str = "kind,model,gpus,steps_per_s,spread,beside_model
fast,A,1,10,,\nfast,B,1,4,,\nfast,C,1,20,,\nslow,A,1,5,,\nslow,B,1,3,,\nslow,C,1,2,,
fast,A,1,9,,B\nfast,B,1,3.6,,A\nslow,A,1,4,,B\nslow,B,1,2.7,,A\nfast,A,2,18,,\nfast,A,2,6,any,\n";

#[test]
fn a_learned_belief_is_named_with_its_error_and_the_oracle_has_none() {
    let rows: String = (0..24)
        .map(|at| format!("{at},{},1,{},{}\n", at * 50, 900 + at * 40, ["A", "B", "C"][at % 3]))
        .collect();
    let dir = Dir::with_trace(&format!("job_id,submit_s,gpus,steps,model\n{rows}"));
    dir.write("speeds.csv", SPEEDS);
    let line =
        "--trace t.csv --cluster fast:2,slow:2 --throughputs speeds.csv --overheads none --policy srtf";
    let oracle = run(&dir, line);
    assert_eq!((&oracle["belief"], &oracle["belief_error"]), (&"oracle".into(), &serde_json::Value::Null));
    let learned = run(&dir, &format!("{line} --belief learned --profiled 0.5"));
    assert_eq!((&learned["belief"], &learned["finished"]), (&"learned".into(), &24.into()));
    // All three are references, so nothing is guessed; see `a_stranger…` in the simulator for what is.
    assert!(number(&learned, "belief_error") < 1e-9);
    let table = dir.yard(&format!("sim {line} --belief learned")).out;
    assert!(table.contains("belief learned; mean error of believed speeds at starts: srtf 0.0 %"), "{table}");
}

#[test]
fn what_is_told_of_lengths_is_named_and_the_truth_stays_the_truth() {
    let dir = Dir::new();
    let jobs: String = (0..60).map(|at| format!("{at},{},1,{}\n", at * 90, 30 + at * 977 % 2_000)).collect();
    dir.write("lengths.csv", format!("job_id,submit_s,gpus,duration_s\n{jobs}"));
    let policies = "market,srtf,srsf,gittins,las,tiresias,backfill,sia,lucid,chronus,elasticflow";
    let runs = |lengths: &str| {
        let line =
            format!("sim --trace lengths.csv --cluster gpu:4 --overheads none --policy {policies}{lengths}");
        dir.yard(&format!("{line} -o json")).json()["runs"].as_array().expect("runs is a list").clone()
    };
    let known = runs("");
    assert!(known.iter().all(|run| run["lengths"].is_null()), "the truth needs no name");
    for lengths in ["noisy:3", "predicted", "unknown"] {
        for run in runs(&format!(" --lengths {lengths}")) {
            assert_eq!((text(&run, "lengths"), number(&run, "finished")), (lengths, 60.0), "{run}");
        }
    }
    let jct = |runs: &[Value]| number(&runs[1], "avg_jct_s");
    assert!(jct(&runs(" --lengths unknown")) > jct(&known), "srtf does better where it knows");
}

#[test]
fn a_gang_goes_at_the_speed_of_where_it_lies_unless_that_is_ignored() {
    let dir = Dir::with_trace("job_id,submit_s,gpus,steps,model\na,0,2,180,A\n");
    dir.write("speeds.csv", SPEEDS);
    let end = |cluster: &str, more: &str| {
        let line = format!(
            "--trace t.csv --cluster {cluster} --throughputs speeds.csv --overheads none --policy fifo"
        );
        number(&run(&dir, &format!("{line} {more}")), "avg_jct_s")
    };
    assert_eq!(
        (end("fast:1x2", ""), end("fast:2", ""), end("fast:2", "--placement ignored")),
        (10.0, 30.0, 10.0)
    );
}

/// Gavel's 96 jobs, where the data are at hand.
fn gavel(policy: &str, more: &str) -> Option<Vec<serde_json::Value>> {
    let data = yard_needs::shared("gavel")?.canonicalize().expect("it is there");
    let (trace, table) = (data.join("max_min_fairness.trace"), data.join("simulation_throughputs.json"));
    let line = format!(
        "sim --trace {} --throughputs {} --cluster v100:12,p100:12,k80:12 --overheads none --policy {policy} {more} -o json",
        trace.display(),
        table.display()
    );
    Some(Dir::new().yard(&line).json()["runs"].as_array().expect("a list of runs").clone())
}

#[test]
fn gandivas_pairs_do_no_harm() {
    // In rounds as the paper's simulator has them, pairs help; in ours they change the mean by 0.3 % for the worse.
    for (rounds, most) in [("--compat gavel", 1.0), ("", 1.01)] {
        let Some(runs) = gavel("gandiva,gandiva:gain=2", rounds) else { return };
        let [packed, alone] = [&runs[0], &runs[1]].map(|run| number(run, "avg_jct_s"));
        assert!(packed <= most * alone, "{packed} with pairs, {alone} without {rounds}");
    }
}

#[test]
fn jobs_that_share_devices_are_done_no_later() {
    for compat in ["", "--compat gavel"] {
        for policy in ["max-min", "water-filling", "finish-time", "makespan"] {
            let Some(runs) = gavel(&format!("{policy},{policy}:packed=true"), compat) else { return };
            let [alone, packed] = [&runs[0], &runs[1]].map(|run| number(run, "avg_jct_s"));
            assert!(runs[1]["finished"] == 96 && packed <= alone, "{policy}: {packed} for {alone}");
        }
    }
}

#[test]
fn what_is_learned_comes_near_the_truth() {
    let Some(runs) = gavel("round-robin,gandiva", "--belief learned") else { return };
    for run in &runs {
        assert!(run["finished"] == 96 && number(run, "belief_error") < 0.15, "{run}");
    }
}

#[test]
fn jobs_that_were_refused_are_counted_and_the_reason_is_said() {
    let head = "job_id,submit_s,gpus,duration_s,deadline_s,late\na,0,1,10,,\n";
    let trace = format!("{head}b,0,8,100,130,refuse\nc,0,8,100,130,refuse\nd,0,8,100,131,refuse\n");
    let dir = Dir::with_trace(&trace);
    let out = dir.yard("sim --trace t.csv --cluster gpu:2x4 --policy fifo,srtf --promises").printed();
    assert!(out.contains("2/4"), "{out}");
    let said = "2 jobs were refused: its deadline cannot be kept (2)";
    assert_eq!(out.matches(said).count(), 1, "once for both policies, whatever else could be kept: {out}");
    let fine = dir.yard("sim --trace t.csv --cluster gpu:8x4 --policy fifo --promises").printed();
    assert!(!fine.contains("refused"), "{fine}");
}
