//! The policy on a thread of its own. The driver never waits for it: an answer that takes too long is given up, a
//! policy that panics or hangs is replaced by a new one, and meanwhile the last allocation stays in force.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc as threads;
use std::time::Duration;

use tokio::sync::mpsc;
use yard_core::allocation::Allocation;
use yard_core::ids::PlanId;
use yard_core::message::Input;
use yard_core::policy::Policy;
use yard_core::units::Span;
use yard_core::view::View;

use crate::driver::clock;

/// Makes a policy: at the start, and again after one broke down.
pub type MakePolicy = Arc<dyn Fn() -> Box<dyn Policy> + Send + Sync>;

/// Plans in a row that may be late before the policy is taken to hang.
const LATE_MAX: u32 = 2;

/// The answer to a plan, as it is journaled.
#[derive(Debug)]
pub(crate) struct PlannerAnswer {
    /// Which thread made it.
    generation: u64,
    plan: PlanId,
    /// The input, and the same as JSON; or what the policy said when it broke down.
    answer: Result<(Input, String), String>,
    /// How long it took.
    pub(crate) took: Duration,
}

/// What the driver should do about a plan.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Step this; the same as JSON.
    Step(Input, String),
    /// The policy broke down: tell the engine so, and that there is a new one after `Planner::rest`.
    Broken(PlanId, String),
    /// Nothing: it is not the answer that is waited for.
    Ignore,
}

/// The driver's end.
pub(crate) struct Planner {
    make: MakePolicy,
    answers: mpsc::UnboundedSender<PlannerAnswer>,
    worker: Option<threads::Sender<(PlanId, View)>>,
    generation: u64,
    /// The plan that is being made, and when it was asked for.
    asked: Option<(PlanId, Span)>,
    late: u32,
    cap: Span,
    rest: Span,
    /// Until when no new policy is tried, after one broke down.
    resting: Option<(Span, String)>,
}

impl Planner {
    /// `cap` is how long a plan may take, `rest` how long after a breakdown the next policy is tried.
    pub(crate) fn new(
        make: MakePolicy,
        cap: Span,
        rest: Span,
    ) -> (Planner, mpsc::UnboundedReceiver<PlannerAnswer>) {
        let (answers, receiver) = mpsc::unbounded_channel();
        let planner = Planner {
            make,
            answers,
            worker: None,
            generation: 0,
            asked: None,
            late: 0,
            cap,
            rest,
            resting: None,
        };
        (planner, receiver)
    }

    /// Asks for a plan; one that is still being made is superseded. Fails at once while no policy is there.
    pub(crate) fn ask(&mut self, now: Span, plan: PlanId, view: View) -> Option<Verdict> {
        if let Some((_, reason)) = &self.resting {
            let reason = format!("the policy failed and will be restarted shortly: {reason}");
            return Some(failed(plan, reason));
        }
        let begun = self.worker.get_or_insert_with(|| start(&self.make, &self.answers, self.generation));
        if begun.send((plan, view)).is_err() {
            return Some(self.break_down(now, plan, "its thread ended".into()));
        }
        // A question that supersedes another does not give a policy that hangs more time.
        let since = self.asked.map_or(now, |(_, since)| since);
        self.asked = Some((plan, since));
        None
    }

    /// What to do about an answer.
    pub(crate) fn hear(&mut self, now: Span, answer: PlannerAnswer) -> Verdict {
        if answer.generation != self.generation {
            return Verdict::Ignore;
        }
        self.late = 0;
        let awaited = self.asked.take_if(|(plan, _)| *plan == answer.plan).is_some();
        match answer.answer {
            Err(reason) => self.break_down(now, answer.plan, reason),
            Ok((input, text)) if awaited => Verdict::Step(input, text),
            Ok(_) => Verdict::Ignore,
        }
    }

    /// When it should be looked after, if nothing is heard before.
    pub(crate) fn deadline(&self) -> Option<Span> {
        let cap = self.asked.map(|(_, since)| since + self.cap);
        cap.into_iter().chain(self.resting.as_ref().map(|(until, _)| *until)).min()
    }

    /// Gives up a plan that takes too long.
    pub(crate) fn overdue(&mut self, now: Span) -> Option<Verdict> {
        let (plan, _) = self.asked.take_if(|(_, since)| now >= *since + self.cap)?;
        self.late += 1;
        let reason = format!("the policy took longer than {}", self.cap);
        if self.late < LATE_MAX {
            return Some(failed(plan, reason));
        }
        Some(self.break_down(now, plan, reason))
    }

    /// Whether a new policy may be tried now, after one broke down: the engine must tell it everything.
    pub(crate) fn rested(&mut self, now: Span) -> bool {
        self.resting.take_if(|(until, _)| now >= *until).is_some()
    }

    /// Leaves the old thread to itself: nobody listens to it, and it ends with what it is doing.
    fn break_down(&mut self, now: Span, plan: PlanId, reason: String) -> Verdict {
        tracing::error!(%plan, reason, "the policy broke down; a new one is tried");
        self.generation += 1;
        (self.worker, self.asked, self.late) = (None, None, 0);
        self.resting = Some((now + self.rest, reason.clone()));
        Verdict::Broken(plan, reason)
    }
}

/// The input that says that there is no plan.
pub(crate) fn failed(plan: PlanId, reason: String) -> Verdict {
    let (input, text) = to_input(plan, Err(reason));
    Verdict::Step(input, text)
}

fn to_input(plan: PlanId, answer: Result<Allocation, String>) -> (Input, String) {
    let input = Input::Planned { plan, answer };
    let text = serde_json::to_string(&input).expect("an allocation is plain data");
    (input, text)
}

fn start(
    make: &MakePolicy,
    answers: &mpsc::UnboundedSender<PlannerAnswer>,
    generation: u64,
) -> threads::Sender<(PlanId, View)> {
    let (sender, questions) = threads::channel::<(PlanId, View)>();
    let (make, answers) = (make.clone(), answers.clone());
    let thread = std::thread::Builder::new().name("yard-planner".into());
    let started = thread.spawn(move || work(&make, &questions, &answers, generation));
    if let Err(error) = started {
        tracing::error!(%error, "the planner's thread cannot be started");
    }
    sender
}

fn work(
    make: &MakePolicy,
    questions: &threads::Receiver<(PlanId, View)>,
    answers: &mpsc::UnboundedSender<PlannerAnswer>,
    generation: u64,
) {
    let mut policy = None;
    while let Ok(first) = questions.recv() {
        // Only the newest question counts.
        let (plan, view) = questions.try_iter().last().unwrap_or(first);
        let watch = clock::Stopwatch::start();
        let answer = catch_unwind(AssertUnwindSafe(|| {
            let policy = policy.get_or_insert_with(|| make());
            sound(plan, policy.allocate(&view).map_err(|error| error.0))
        }));
        drop(view);
        let answer = answer.map_err(|panic| format!("the policy panicked: {}", words(&*panic)));
        let broken = answer.is_err();
        if answers.send(PlannerAnswer { generation, plan, answer, took: watch.took() }).is_err() || broken {
            return;
        }
    }
}

/// An answer that reads the same from the journal. JSON knows neither infinity nor NaN.
fn sound(plan: PlanId, answer: Result<Allocation, String>) -> (Input, String) {
    let (input, text) = to_input(plan, answer);
    if serde_json::from_str::<Input>(&text).is_ok_and(|read| read == input) {
        return (input, text);
    }
    to_input(plan, Err("the policy's answer has numbers that are not finite".into()))
}

fn words(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given")
}

#[cfg(test)]
mod tests {
    use yard_core::allocation::Shares;
    use yard_core::cluster::Kinds;
    use yard_core::policy::{Placer, PolicyError};
    use yard_core::{Engine, Settings};

    use super::*;

    struct Nowhere;
    impl Placer for Nowhere {
        fn place(
            &self,
            _: &yard_core::cluster::Nodes,
            _: &yard_core::job::Shape,
        ) -> Option<yard_core::cluster::Placement> {
            None
        }
    }

    struct Scripted(fn() -> Result<Allocation, PolicyError>);
    impl Policy for Scripted {
        fn allocate(&mut self, _: &View) -> Result<Allocation, PolicyError> {
            (self.0)()
        }
    }

    fn view() -> View {
        Engine::new(Settings::default(), Kinds::default(), Box::new(Nowhere)).view()
    }

    fn planner(
        answer: fn() -> Result<Allocation, PolicyError>,
    ) -> (Planner, mpsc::UnboundedReceiver<PlannerAnswer>) {
        let make: MakePolicy = Arc::new(move || Box::new(Scripted(answer)));
        Planner::new(make, Span::from_whole_secs(10), Span::from_whole_secs(5))
    }

    fn at(seconds: u64) -> Span {
        Span::from_whole_secs(seconds)
    }

    fn answer_of(verdict: Verdict) -> Result<Allocation, String> {
        match verdict {
            Verdict::Step(input, text) => {
                assert_eq!(serde_json::from_str::<Input>(&text).unwrap(), input);
                let Input::Planned { answer, .. } = input else { panic!("{input:?}") };
                answer
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_answer_is_an_input() {
        let (mut planner, mut answers) = planner(|| Ok(Allocation::queue(Shares::All(vec![]), true)));
        assert_eq!(planner.ask(at(0), PlanId(1), view()), None);
        let verdict = planner.hear(at(1), answers.blocking_recv().unwrap());
        assert!(answer_of(verdict).is_ok());
        assert_eq!(planner.deadline(), None);
    }

    #[test]
    fn numbers_that_no_journal_can_hold_are_refused() {
        let (mut planner, mut answers) = planner(|| {
            Ok(Allocation::fractions(vec![yard_core::allocation::Share::part(
                yard_core::ids::JobIdx(0),
                f64::NAN,
            )]))
        });
        planner.ask(at(0), PlanId(1), view());
        let verdict = planner.hear(at(1), answers.blocking_recv().unwrap());
        assert!(answer_of(verdict).unwrap_err().contains("not finite"));
    }

    #[test]
    fn a_panic_is_an_error_and_a_new_policy_answers_later() {
        let (mut planner, mut answers) = planner(|| panic!("out of ideas"));
        planner.ask(at(0), PlanId(1), view());
        let verdict = planner.hear(at(1), answers.blocking_recv().unwrap());
        let Verdict::Broken(PlanId(1), reason) = verdict else { panic!("{verdict:?}") };
        assert!(reason.contains("out of ideas"), "{reason}");
        let refused = planner.ask(at(2), PlanId(2), view()).expect("there is no policy now");
        assert!(answer_of(refused).unwrap_err().contains("will be restarted"));
        assert!(!planner.rested(at(3)));
        assert!(planner.rested(at(6)));
        assert_eq!(planner.ask(at(6), PlanId(3), view()), None);
        assert!(matches!(
            planner.hear(at(7), answers.blocking_recv().unwrap()),
            Verdict::Broken(PlanId(3), _)
        ));
    }

    #[test]
    fn a_late_answer_is_given_up_and_a_policy_that_hangs_is_replaced() {
        // Never asked to end: its thread waits for an answer nobody reads.
        let (mut planner, mut answers) = planner(|| {
            loop {
                std::thread::park();
            }
        });
        planner.ask(at(0), PlanId(1), view());
        assert_eq!(planner.deadline(), Some(at(10)));
        assert_eq!(planner.overdue(at(9)), None);
        let given_up = planner.overdue(at(10)).unwrap();
        assert!(answer_of(given_up).unwrap_err().contains("longer than 10s"));
        planner.ask(at(11), PlanId(2), view());
        assert!(matches!(planner.overdue(at(21)), Some(Verdict::Broken(PlanId(2), _))));
        assert!(answers.try_recv().is_err());
    }

    #[test]
    fn an_answer_that_came_too_late_is_ignored() {
        let (mut planner, mut answers) = planner(|| Ok(Allocation::queue(Shares::All(vec![]), true)));
        planner.ask(at(0), PlanId(1), view());
        let late = answers.blocking_recv().unwrap();
        assert!(planner.overdue(at(10)).is_some());
        assert_eq!(planner.hear(at(11), late), Verdict::Ignore);
    }
}
