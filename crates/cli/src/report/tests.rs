//! The page as a whole: safe with hostile text, small with a million jobs, whole with nothing to show.

use super::*;

/// The embedded data, as the page's script reads it.
fn data(html: &str) -> Value {
    let (_, after) = html.split_once(r#"<script type="application/json" id="data">"#).unwrap();
    serde_json::from_str(after.split_once("</script>").unwrap().0).unwrap()
}

fn nodes(n: usize, gpus: u32) -> Vec<ReportNode> {
    (0..n).map(|i| ReportNode { name: format!("node-{i}"), kind: "v100".into(), gpus }).collect()
}

#[test]
fn hostile_names_stay_text() {
    let evil = "</script><script>alert(1)</script>\u{2028}{{data}}<!--";
    let job = ReportJob { name: evil.into(), gpus: 1, team: Some(evil.into()), ..ReportJob::default() };
    let node = ReportNode { name: evil.into(), kind: evil.into(), gpus: 1 };
    let run = ReportRun {
        policy: evil.into(),
        jobs: vec![ReportRow::default()],
        nodes: vec![node],
        ..ReportRun::default()
    };
    let settings = vec![(evil.to_string(), evil.to_string())];
    let (title, command, version) = (evil.into(), evil.into(), "1".into());
    let jobs = vec![job, ReportJob::default()];
    let report = ReportPage { title, command, version, settings, jobs, runs: vec![run] };
    let html = render(&report);
    assert_eq!(
        html.matches("</script>").count(),
        render(&ReportPage::default()).matches("</script>").count()
    );
    assert!(!html.contains("alert(1)</script"));
    assert!(!html.split_once("</title>").unwrap().1.contains('\u{2028}'), "harmless in the title only");
    let data = data(&html);
    for text in [&data["title"], &data["runs"][0]["policy"], &data["jobs"]["name"][0], &data["teams"][0]] {
        assert_eq!(text, evil);
    }
}

#[test]
fn empty_cases_render() {
    let empty = ReportRun { policy: "fifo".into(), ..ReportRun::default() };
    let still = ReportRun { series: vec![ReportSample::default()], nodes: nodes(1, 0), ..empty.clone() };
    for runs in [vec![], vec![empty.clone()], vec![empty, still]] {
        let n = runs.len();
        let html = render(&ReportPage { runs, ..ReportPage::default() });
        assert!(html.starts_with("<!doctype html>") && html.trim_end().ends_with("</html>"));
        assert_eq!(data(&html)["runs"].as_array().unwrap().len(), n);
    }
}

#[test]
fn a_million_jobs_make_a_small_file() {
    let n = 1_000_000_u32;
    let job = |i: u32| {
        let team = Some(if i.is_multiple_of(3) { "vision" } else { "speech" }.into());
        ReportJob { name: format!("job-{i}"), gpus: 1 << (i % 8), submit_s: f64::from(i) * 1.37, team }
    };
    let row = |i: u32| {
        let wait_s = f64::from(i % 7919) * 0.731;
        ReportRow { job: i, gpus: 1 << (i % 8), wait_s, jct_s: wait_s + f64::from(i), ..ReportRow::default() }
    };
    let sample = |i: u32| ReportSample {
        t: f64::from(i) * 1.37,
        used_gpus: u64::from(i % 511),
        ..ReportSample::default()
    };
    let bar = |i: u32| {
        let start_s = f64::from(i) * 1.37;
        Bar {
            node: i % 64,
            first_device: i % 8,
            devices: 1,
            job: i,
            start_s,
            end_s: start_s + 701.3,
            lane: (0, 1),
        }
    };
    let run = ReportRun {
        policy: "a".into(),
        jobs: (0..n).map(row).collect(),
        series: (0..n).map(sample).collect(),
        bars: (0..n).map(bar).collect(),
        nodes: nodes(64, 8),
        ..ReportRun::default()
    };
    let small = ReportRun { nodes: nodes(64, 8), ..ReportRun::default() };
    let jobs = (0..n).map(job).collect();
    let html = render(&ReportPage { jobs, runs: vec![run, small.clone(), small], ..ReportPage::default() });
    assert!(html.len() < 4_000_000, "{} bytes", html.len());
    let data = data(&html);
    assert_eq!(data["runs"][0]["gantt"]["job"].as_array().unwrap().len(), 50_000);
    assert!(data["runs"][0]["gantt"]["until_s"].as_f64().unwrap() > 60_000.0);
    assert_eq!(data["clusters"].as_array().unwrap().len(), 1);
    let listed = data["jobs"]["id"].as_array().unwrap().len();
    assert!((15_000..=20_000).contains(&listed), "{listed}");
    assert_eq!((&data["jobs"]["total"], data["teams"].as_array().unwrap().len()), (&n.into(), 2));
}
