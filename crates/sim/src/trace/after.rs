//! Jobs of a trace that come after others, by name: who is named must be there, be submitted no later, and not wait
//! for the job in turn.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::TraceJob;
use super::error::{BadField, TraceError, shorten};

/// Between the names in one field.
const SEPARATOR: char = '|';

/// The names in a field, each once, in their order.
pub(crate) fn names(list: &str) -> Box<[Box<str>]> {
    let mut names: Vec<Box<str>> = Vec::new();
    for name in list.split(SEPARATOR).map(str::trim).filter(|name| !name.is_empty()) {
        if names.iter().all(|known| **known != *name) {
            names.push(name.into());
        }
    }
    names.into()
}

/// The names as they are written.
pub(crate) fn field(names: &[Box<str>]) -> String {
    names.join(SEPARATOR.encode_utf8(&mut [0; 4]))
}

/// The jobs, each behind those that it comes after where they are submitted at the same time; or what is wrong with
/// one that can never start.
pub(crate) fn order(file: &str, jobs: Vec<TraceJob>) -> Result<Vec<TraceJob>, TraceError> {
    if jobs.iter().all(|job| job.after.is_empty()) {
        return Ok(jobs);
    }
    let graph = Graph::new(file, &jobs)?;
    let mut place = vec![0; jobs.len()];
    graph.sorted()?.into_iter().enumerate().for_each(|(at, job)| place[job] = at);
    let mut placed: Vec<(usize, TraceJob)> = place.into_iter().zip(jobs).collect();
    placed.sort_unstable_by_key(|(at, _)| *at);
    Ok(placed.into_iter().map(|(_, job)| job).collect())
}

/// Who comes after whom, by place in the file.
struct Graph<'a> {
    file: &'a str,
    jobs: &'a [TraceJob],
    before: Vec<Vec<usize>>,
}

impl<'a> Graph<'a> {
    fn new(file: &'a str, jobs: &'a [TraceJob]) -> Result<Graph<'a>, TraceError> {
        let places: BTreeMap<&str, usize> =
            jobs.iter().enumerate().map(|(at, job)| (&*job.name, at)).collect();
        let mut graph = Graph { file, jobs, before: Vec::with_capacity(jobs.len()) };
        for at in 0..jobs.len() {
            let place = |name: &str| {
                let other = places.get(name).copied();
                let other = other.ok_or_else(|| graph.bad(at, name, "is no job of this file", KNOWN))?;
                if jobs[other].submit > jobs[at].submit {
                    let problem = format!("is submitted later, on line {}", jobs[other].line);
                    return Err(graph.bad(at, name, &problem, KNOWN));
                }
                Ok(other)
            };
            let before = jobs[at].after.iter().map(|name| place(name)).collect::<Result<_, _>>()?;
            graph.before.push(before);
        }
        Ok(graph)
    }

    /// An order in which nobody comes before who it waits for; else as in the file.
    fn sorted(&self) -> Result<Vec<usize>, TraceError> {
        let mut after = vec![Vec::new(); self.jobs.len()];
        let mut left: Vec<usize> = self.before.iter().map(Vec::len).collect();
        for (at, before) in self.before.iter().enumerate() {
            before.iter().for_each(|other| after[*other].push(at));
        }
        let free = (0..self.jobs.len()).filter(|at| left[*at] == 0);
        let mut free: BinaryHeap<_> = free.map(|at| Reverse((self.jobs[at].submit, at))).collect();
        let mut sorted = Vec::with_capacity(self.jobs.len());
        while let Some(Reverse((_, at))) = free.pop() {
            sorted.push(at);
            for next in &after[at] {
                left[*next] -= 1;
                if left[*next] == 0 {
                    free.push(Reverse((self.jobs[*next].submit, *next)));
                }
            }
        }
        match (0..self.jobs.len()).find(|at| left[*at] > 0) {
            None => Ok(sorted),
            Some(stuck) => Err(self.circle(stuck, &left)),
        }
    }

    /// Who waits for whom in a circle: from one that is stuck, always on to one before it that is stuck as well.
    fn circle(&self, stuck: usize, left: &[usize]) -> TraceError {
        let (mut at, mut walk, mut seen) = (stuck, Vec::new(), vec![false; self.jobs.len()]);
        while !seen[at] {
            seen[at] = true;
            walk.push(at);
            at = *self.before[at].iter().find(|other| left[**other] > 0).expect("somebody keeps it stuck");
        }
        let begin = walk.iter().position(|job| *job == at).expect("the walk came back to it");
        let circle = walk[begin..].iter().chain([&at]).map(|job| &*self.jobs[*job].name);
        let circle = shorten(&circle.collect::<Vec<_>>().join(" after "));
        let (from, to) = (at, *walk.get(begin + 1).unwrap_or(&at));
        let problem = format!("makes a circle: {circle}");
        self.bad(from, &self.jobs[to].name, &problem, "a job cannot wait for itself")
    }

    fn bad(&self, at: usize, name: &str, problem: &str, allowed: &str) -> TraceError {
        TraceError::Field(Box::new(BadField {
            file: self.file.to_owned(),
            line: self.jobs[at].line,
            field: "after".to_owned(),
            value: shorten(name),
            problem: problem.to_owned(),
            allowed: allowed.to_owned(),
        }))
    }
}

const KNOWN: &str =
    "a job comes after jobs of the same file that are submitted no later, by job_id, with | between";

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::trace::read;

    /// Rows of `job_id,submit_s,after`.
    fn opened(rows: &[&str]) -> Result<Vec<String>, String> {
        let row = |row: &&str| {
            let [name, submit, after] = row.split(',').collect::<Vec<_>>()[..] else { panic!("{row}") };
            format!("{name},{submit},1,10,{after}\n")
        };
        let text =
            format!("job_id,submit_s,gpus,duration_s,after\n{}", rows.iter().map(row).collect::<String>());
        let trace = read("jobs.csv", text.as_bytes(), None).map_err(|error| error.to_string())?.trace;
        Ok(trace.jobs.iter().map(|job| format!("{}<{}", job.name, job.after.join("+"))).collect())
    }

    fn refused(rows: &[&str], expected: Expect) {
        expected.assert_eq(&opened(rows).unwrap_err());
    }

    #[test]
    fn jobs_of_one_instant_stand_behind_those_they_come_after() {
        let order = opened(&["c,5,a|b|a", "b,5,a", "a,5,", "d,0,", "e,5,"]).unwrap();
        assert_eq!(order, ["d<", "a<", "b<a", "c<a+b", "e<"]);
    }

    #[test]
    fn who_can_never_start_is_named_with_its_line() {
        refused(
            &["a,0,", "b,0,c"],
            expect![[
                r#"jobs.csv, line 3, field after: "c" is no job of this file; a job comes after jobs of the same file that are submitted no later, by job_id, with | between"#
            ]],
        );
        refused(
            &["a,0,b", "b,1,"],
            expect![[
                r#"jobs.csv, line 2, field after: "b" is submitted later, on line 3; a job comes after jobs of the same file that are submitted no later, by job_id, with | between"#
            ]],
        );
        refused(
            &["a,0,a"],
            expect![[
                r#"jobs.csv, line 2, field after: "a" makes a circle: a after a; a job cannot wait for itself"#
            ]],
        );
        refused(
            &["x,0,", "a,0,x|c", "b,0,a", "c,0,b"],
            expect![[
                r#"jobs.csv, line 3, field after: "c" makes a circle: a after c after b after a; a job cannot wait for itself"#
            ]],
        );
    }
}
