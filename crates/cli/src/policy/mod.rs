//! The policy that a command names: one of the table, or a program of one's own (`exec:./mine.py`).

mod exec;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use yard_core::policy::{Knowledge, Policy, Priorities};

use exec::{ExecPolicy, PolicyProgram};
pub(crate) use exec::{PREFIX, ProgramUses, become_program};

/// A policy by its name and parameters, which may be made as often as wanted.
#[derive(Clone)]
pub(crate) struct Chosen {
    /// What it is called.
    pub(crate) name: String,
    /// Whether it is run in rounds unless told otherwise.
    pub(crate) rounds: bool,
    /// What it makes of priorities.
    pub(crate) priority: Priorities,
    /// What it must be told of jobs.
    pub(crate) needs: Vec<Knowledge>,
    source: Source,
}

#[derive(Clone)]
enum Source {
    Table { spec: String, service: Arc<[f64]> },
    Program(Arc<PolicyProgram>),
}

impl Chosen {
    /// Finds a policy and checks its parameters. A program is started once, for what it declares.
    pub(crate) fn find(spec: &str, service: &Arc<[f64]>, uses: ProgramUses) -> anyhow::Result<Chosen> {
        if let Some(rest) = spec.strip_prefix(PREFIX) {
            let program = PolicyProgram::open(rest, uses)?;
            return Ok(Chosen {
                name: spec.to_owned(),
                rounds: program.declared.rounds(),
                priority: program.declared.priorities(),
                needs: program.declared.needs(),
                source: Source::Program(Arc::new(program)),
            });
        }
        let (entry, _) = yard_policies::make(spec, service.clone())?;
        Ok(Chosen {
            name: entry.name.to_owned(),
            rounds: entry.rounds,
            priority: entry.priority,
            needs: entry.needs.to_vec(),
            source: Source::Table { spec: spec.to_owned(), service: service.clone() },
        })
    }

    /// Makes it. A program is started when it is first asked.
    pub(crate) fn make(&self) -> Box<dyn Policy> {
        self.made(None)
    }

    /// Makes it for a simulation, which ends when the program fails.
    pub(crate) fn make_for(&self, halt: &Arc<Halt>) -> Box<dyn Policy> {
        self.made(Some(halt.clone()))
    }

    fn made(&self, halt: Option<Arc<Halt>>) -> Box<dyn Policy> {
        match &self.source {
            Source::Table { spec, service } => {
                yard_policies::make(spec, service.clone()).expect("it was made once already").1
            }
            Source::Program(program) => Box::new(ExecPolicy::new(program.clone(), halt)),
        }
    }

    /// The program's file, where it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.source {
            Source::Table { .. } => None,
            Source::Program(program) => Some(&program.path),
        }
    }
}

/// How a program that fails ends the simulation that asks it.
#[derive(Debug, Default)]
pub(crate) struct Halt {
    /// Set when the simulation should stop.
    pub(crate) stop: Arc<AtomicBool>,
    why: std::sync::Mutex<Option<String>>,
}

impl Halt {
    fn end(&self, why: String) {
        let mut first = self.why.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        first.get_or_insert(why);
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    /// Why the simulation was stopped, if it was.
    pub(crate) fn why(&self) -> Option<String> {
        self.why.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}
