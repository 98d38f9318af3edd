//! What a program answers, read and made an allocation. Whether the allocation may be applied is checked by the engine,
//! as that of any policy.

use std::collections::BTreeMap;

use yard_core::Time;
use yard_core::allocation::{Allocation, Mode, Share, Shares};
use yard_core::ids::JobIdx;

use super::words::{ExecSaid, PlanLine, ShareRow};

/// What is wrong with a line; the field first.
pub(super) type Wrong = String;

/// Reads a line. What is wrong with it is said with the field that has it.
pub(super) fn read(line: &[u8]) -> Result<ExecSaid, Wrong> {
    // Keeping the path takes as long as reading: it is looked for where it is needed.
    if let Ok(said) = serde_json::from_slice(line) {
        return Ok(said);
    }
    let mut json = serde_json::Deserializer::from_slice(line);
    let said: ExecSaid = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let (path, what) = (error.path().to_string(), error.inner());
        if path == "." || path == "?" { what.to_string() } else { format!("field {path}: {what}") }
    })?;
    json.end().map_err(|_| "there is more on the line after its JSON object".to_owned())?;
    Ok(said)
}

/// The allocation that a plan asks for. `ids` are the jobs of the view, `full` whether it told everything.
pub(super) fn allocation(
    plan: PlanLine,
    mode: Mode,
    ids: &BTreeMap<u64, JobIdx>,
    full: bool,
) -> Result<Allocation, Wrong> {
    if full && !plan.all {
        return Err("field plan.all: the view was full, so the answer must be, too: true".into());
    }
    let rows = plan.shares.into_iter().enumerate();
    let shares: Result<Vec<Share>, Wrong> = rows.map(|(at, row)| share(at, row, ids)).collect();
    let shares = if plan.all { Shares::All(shares?) } else { Shares::Changed(shares?) };
    Ok(Allocation { mode, shares, replan_at: plan.replan_at_us.map(Time), certificate: None })
}

fn share(at: usize, row: ShareRow, ids: &BTreeMap<u64, JobIdx>) -> Result<Share, Wrong> {
    let (field, named) = match row.job {
        Some(job) if row.jobs.is_empty() => ("job", vec![job]),
        None if !row.jobs.is_empty() => ("jobs", row.jobs),
        _ => return Err(format!("field plan.shares[{at}]: name its job, or several as jobs")),
    };
    let place = |job: &u64| {
        let unknown = || format!("field plan.shares[{at}].{field}: no job {job} is in the view");
        ids.get(job).copied().ok_or_else(unknown)
    };
    let jobs = named.iter().map(place).collect::<Result<_, Wrong>>()?;
    if !(row.fraction > 0.0 && row.fraction <= 1.0 + 1e-6) {
        let fraction = row.fraction;
        return Err(format!("field plan.shares[{at}].fraction: {fraction} is not above 0 and at most 1"));
    }
    Ok(Share { jobs, shape: row.shape, fraction: row.fraction, rank: row.rank })
}

#[cfg(test)]
mod tests {
    use yard_core::job::Rank;

    use super::*;

    fn made(line: &str, full: bool) -> Result<Allocation, Wrong> {
        let ExecSaid::Plan(plan) = read(line.as_bytes())? else { panic!("{line} is no plan") };
        allocation(plan, Mode::Fractions, &BTreeMap::from([(7, JobIdx(2)), (8, JobIdx(0))]), full)
    }

    fn wrong(line: &str) -> String {
        made(line, false).expect_err(line)
    }

    #[test]
    fn jobs_are_found_by_their_numbers() {
        let line = r#"{"plan":{"seq":3,"all":true,"shares":[{"job":7,"rank":[1.5,2]},{"jobs":[8,7],"shape":1,"fraction":0.5,"rank":4}]}}"#;
        let Shares::All(shares) = made(line, true).unwrap().shares else { panic!("it answers for all") };
        assert_eq!(shares[0], Share::whole(JobIdx(2), Rank(1.5, 2.0)));
        assert_eq!(shares[1].jobs[..], [JobIdx(0), JobIdx(2)]);
        assert_eq!((shares[1].shape, shares[1].fraction, shares[1].rank), (Some(1), 0.5, Rank(4.0, 0.0)));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_field() {
        let said =
            |shares: &str| wrong(&format!(r#"{{"plan":{{"seq":1,"all":false,"shares":[{shares}]}}}}"#));
        assert!(said(r#"{"job":9}"#).contains("plan.shares[0].job: no job 9"), "{}", said(r#"{"job":9}"#));
        assert!(said(r#"{"job":7},{"job":8,"fraction":1.5}"#).contains("plan.shares[1].fraction: 1.5"));
        let text = said(r#"{"job":7,"rank":"first"}"#);
        assert!(text.contains("plan.shares[0].rank") && text.contains("a number or a list"), "{text}");
        assert!(said("{}").contains("name its job"));
        assert!(said(r#"{"job":7,"rnak":1}"#).contains("rnak"), "{}", said(r#"{"job":7,"rnak":1}"#));
        assert!(wrong("{\"plan\":{\"seq\":1,\"all\":false,\"shares\":[NaN]}}").contains("plan.shares[0]"));
        assert!(wrong("{\"error\":\"no idea\"} and more").contains("more on the line"));
        assert!(wrong("hello").contains("line 1 column"), "{}", wrong("hello"));
    }

    #[test]
    fn a_full_view_wants_a_full_answer() {
        let line = r#"{"plan":{"seq":1,"all":false,"shares":[]}}"#;
        assert!(made(line, true).expect_err("it leaves jobs open").contains("plan.all"));
        assert!(made(line, false).is_ok());
    }
}
