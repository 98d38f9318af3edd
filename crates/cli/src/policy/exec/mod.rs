//! A policy without Rust: a program that is told the view, one JSON line a decision, and answers with one. It runs beside
//! yard and cannot hurt it: what it says is checked, how long it takes and how much it says is limited, and one that
//! fails is ended. A simulation then ends with the reason; a server keeps the last allocation and starts it again.

mod answer;
mod process;
mod program;
mod told;
mod words;

use std::sync::Arc;

use yard_core::allocation::Allocation;
use yard_core::policy::{Cadence, Policy, PolicyError};
use yard_core::view::View;

use self::answer::allocation;
pub(crate) use self::process::become_program;
use self::process::{LINE_MAX, PolicyProcess, Trouble};
use self::program::excerpt;
pub(crate) use self::program::{PREFIX, PolicyProgram, ProgramUses};
use self::told::Memory;
use self::words::{ExecAsked, ExecSaid, ExecTold};
use super::Halt;
use crate::clock::CommandStopwatch;

/// How long a program that failed is left alone, at first and at most; twice as long each time.
const REST_S: f64 = 1.0;
const REST_MAX_S: f64 = 60.0;

/// A program that decides, and what it was told.
pub(super) struct ExecPolicy {
    program: Arc<PolicyProgram>,
    halt: Option<Arc<Halt>>,
    running: Option<RunningProgram>,
    /// Failures since the last answer, and since when it is left alone.
    failures: u32,
    resting: Option<CommandStopwatch>,
}

struct RunningProgram {
    process: PolicyProcess,
    memory: Memory,
    seq: u64,
}

/// An answer; or the program's own word that it has none.
type Answer = Result<Allocation, String>;

impl ExecPolicy {
    pub(super) fn new(program: Arc<PolicyProgram>, halt: Option<Arc<Halt>>) -> ExecPolicy {
        ExecPolicy { program, halt, running: None, failures: 0, resting: None }
    }

    fn ask(&mut self, view: &View) -> Result<Answer, Trouble> {
        if self.running.is_none() {
            let process = self.program.start()?;
            self.running = Some(RunningProgram { process, memory: Memory::default(), seq: 0 });
        }
        let running = self.running.as_mut().expect("it was started");
        running.ask(view, &self.program)
    }

    /// Seconds that it is still left alone.
    fn rest(&self) -> Option<f64> {
        let so_far = self.resting.as_ref()?.seconds();
        let whole = rest(self.failures);
        (so_far < whole).then_some(whole - so_far)
    }

    /// What is said of a failure, and to whom: a simulation ends with all of it; users of a server see what was wrong,
    /// and its log has what the program wrote.
    fn fail(&mut self, trouble: Trouble) -> String {
        (self.running, self.resting) = (None, Some(CommandStopwatch::start()));
        self.failures += 1;
        let name = &self.program.name;
        let last = trouble.stderr.last().map(|line| format!("; its last line on stderr: {line}"));
        let all = format!("policy {name}: {}{}", trouble.what, last.unwrap_or_default());
        if let Some(halt) = &self.halt {
            halt.end(all.clone());
        }
        if self.program.uses == ProgramUses::Simulation {
            return all;
        }
        let stderr = trouble.stderr.join("\n");
        tracing::error!(policy = %name, what = %trouble.what, stderr, "the program that decides failed");
        let what = trouble.what.split("; the line is: ").next().unwrap_or_default();
        format!("policy {name}: {what}; it is started again in {} s", rest(self.failures))
    }
}

fn rest(failures: u32) -> f64 {
    (REST_S * f64::from(1 << failures.saturating_sub(1).min(10))).min(REST_MAX_S)
}

impl Policy for ExecPolicy {
    fn allocate(&mut self, view: &View) -> Result<Allocation, PolicyError> {
        if let Some(why) = self.halt.as_ref().and_then(|halt| halt.why()) {
            return Err(PolicyError(why));
        }
        if let Some(left) = self.rest() {
            let name = &self.program.name;
            return Err(PolicyError(format!("policy {name} failed and is started again in {left:.0} s")));
        }
        match self.ask(view) {
            Ok(answer) => {
                (self.failures, self.resting) = (0, None);
                answer.map_err(PolicyError)
            }
            Err(trouble) => Err(PolicyError(self.fail(trouble))),
        }
    }

    fn cadence(&self) -> Cadence {
        match self.program.declared.cadence {
            ExecAsked::OnChange => Cadence::OnChange,
            ExecAsked::EveryRound => Cadence::EveryRound,
        }
    }
}

impl RunningProgram {
    fn ask(&mut self, view: &View, program: &PolicyProgram) -> Result<Answer, Trouble> {
        self.seq += 1;
        let told = self.memory.line(view, self.seq);
        let (full, jobs) = (told.full, told.jobs.len());
        let mut line = serde_json::to_vec(&ExecTold::View(told)).expect("a view is plain data");
        line.push(b'\n');
        if line.len() > LINE_MAX {
            return Err(self.process.trouble(format!("a view with {jobs} jobs is longer than 64 MiB")));
        }
        let answer = self.process.ask(line, program.limit)?;
        let read = self.read(&answer, program, full);
        // The engine would refuse it, too, and ask again; a program that says such things is better ended.
        let sound = read.and_then(|said| match said {
            Ok(plan) => plan.check(view).map(|()| Ok(plan)),
            none => Ok(none),
        });
        sound.map_err(|wrong| {
            let line = self.process.lines;
            self.process.trouble(format!("line {line} of its output: {wrong}{}", excerpt(&answer)))
        })
    }

    fn read(&self, line: &[u8], program: &PolicyProgram, full: bool) -> Result<Answer, String> {
        match answer::read(line)? {
            ExecSaid::Hello(_) => Err("a second hello; it must answer with a plan or an error".into()),
            ExecSaid::Error(why) => {
                Ok(Err(format!("policy {}: {}", program.name, crate::output::plain(&why))))
            }
            ExecSaid::Plan(plan) if plan.seq != self.seq => {
                Err(format!("field plan.seq: {} answers another view; this one is {}", plan.seq, self.seq))
            }
            ExecSaid::Plan(plan) => allocation(plan, program.declared.mode(), &self.memory.ids, full).map(Ok),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_keeps_failing_is_started_less_often() {
        assert_eq!((1..=3).map(rest).collect::<Vec<_>>(), [1.0, 2.0, 4.0]);
        assert_eq!(rest(7), REST_MAX_S);
        assert_eq!(rest(u32::MAX), REST_MAX_S);
    }
}
