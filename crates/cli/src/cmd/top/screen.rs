//! What is on the screen: the last look, which job is selected, and in which order jobs are listed.

use std::cmp::Ordering;

use yard_live::views::JobView;

use super::feed::Look;

/// Orders in which jobs can be listed.
const ORDERS: [&str; 4] = ["number", "user", "gpus", "progress"];

/// What is shown of machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Panel {
    /// A line for each node.
    Nodes,
    /// A line for each card.
    Cards,
    /// All devices, as small as can be.
    Map,
}

/// The state of the screen.
#[derive(Debug)]
pub(super) struct Screen {
    pub(super) look: Look,
    /// Why the last look is old, where it is.
    pub(super) problem: Option<String>,
    /// What is shown of machines.
    pub(super) panel: Panel,
    /// Whether the keys are explained instead of all else.
    pub(super) help: bool,
    order: usize,
    turned: bool,
    /// The selected job, by its number: it stays selected when the list changes.
    selected: Option<u64>,
}

impl Screen {
    pub(super) fn new(look: Look) -> Screen {
        let mut screen = Screen {
            look,
            problem: None,
            panel: Panel::Nodes,
            help: false,
            order: 0,
            turned: false,
            selected: None,
        };
        screen.select(0);
        screen
    }

    /// Shows this of machines, or nodes again where it is shown already.
    pub(super) fn show(&mut self, panel: Panel) {
        self.panel = if self.panel == panel { Panel::Nodes } else { panel };
    }

    /// Takes in the news.
    pub(super) fn update(&mut self, news: Result<Look, String>) {
        match news {
            Err(problem) => self.problem = Some(problem),
            Ok(look) => {
                let at = self.place();
                (self.look, self.problem) = (look, None);
                // Where the selected job is gone, whoever took its place in the list is selected.
                if !self.ids().iter().any(|&id| Some(id) == self.selected) {
                    self.select(at);
                }
            }
        }
    }

    /// Jobs that hold devices, then those that wait, each in the chosen order.
    pub(super) fn jobs(&self) -> (Vec<&JobView>, Vec<&JobView>) {
        let live = self.look.jobs.iter().filter(|job| job.ended_at.is_none());
        let (mut running, mut waiting): (Vec<_>, Vec<_>) = live.partition(|job| !is_waiting(job));
        running.sort_by(|a, b| self.compare(a, b));
        waiting.sort_by(|a, b| self.compare(a, b));
        (running, waiting)
    }

    pub(super) fn selected(&self) -> Option<&JobView> {
        self.look.jobs.iter().find(|job| Some(job.id) == self.selected)
    }

    /// Moves the selection.
    pub(super) fn go(&mut self, by: isize) {
        self.select(self.place().saturating_add_signed(by));
    }

    /// Lists jobs in the next order.
    pub(super) fn sort(&mut self) {
        self.order = (self.order + 1) % ORDERS.len();
    }

    /// Lists jobs the other way round.
    pub(super) fn turn(&mut self) {
        self.turned = !self.turned;
    }

    /// The order's name.
    pub(super) fn order(&self) -> &'static str {
        ORDERS[self.order]
    }

    fn ids(&self) -> Vec<u64> {
        let (running, waiting) = self.jobs();
        running.iter().chain(&waiting).map(|job| job.id).collect()
    }

    fn place(&self) -> usize {
        self.ids().iter().position(|&id| Some(id) == self.selected).unwrap_or(0)
    }

    /// Selects the job at a place of the list, or the last one.
    fn select(&mut self, at: usize) {
        let ids = self.ids();
        self.selected = ids.get(at).or(ids.last()).copied();
    }

    fn compare(&self, a: &JobView, b: &JobView) -> Ordering {
        let by = match self.order {
            1 => a.user.cmp(&b.user),
            2 => b.gpus.cmp(&a.gpus),
            3 => done(b).total_cmp(&done(a)),
            _ => Ordering::Equal,
        };
        let by = by.then(a.id.cmp(&b.id));
        if self.turned { by.reverse() } else { by }
    }
}

fn is_waiting(job: &JobView) -> bool {
    matches!(job.state.as_str(), "pending" | "suspended")
}

/// How far a job has come, from 0 to 1.
fn done(job: &JobView) -> f64 {
    match (job.step, job.steps) {
        (Some(step), Some(steps)) if steps > 0 => step as f64 / steps as f64,
        _ => 0.0,
    }
}

/// A small cluster to look at.
#[cfg(test)]
pub(super) fn sample() -> Look {
    let job = |id: u64, state: &str, user: &str, gpus: u32, nodes: &[&str], step: Option<u64>| {
        serde_json::json!({
            "id": id, "name": format!("job-{id}"), "user": user, "tenant": null, "state": state,
            "reason": (state == "pending").then_some("waits for 4 h100"), "gpus": gpus, "kind": null, "nodes": nodes,
            "priority": 0, "deadline": null, "submitted_at": 1000.0, "started_at": null, "ended_at": null,
            "executed_s": 120.0, "step": step, "steps": 100, "checkpointed": null, "rate": null, "starts": 1,
            "preemptions": 0, "migrations": 0, "failures": 0, "exit_code": null,
        })
    };
    let device = |index: u32, jobs: &[u64], problem: Option<&str>| {
        serde_json::json!({
            "kind": "h100", "index": index, "name": "fake", "uuid": null, "memory_mib": 81_920, "jobs": jobs, "problem": problem,
            "busy": problem.is_none().then_some(0.3 * f64::from(index)), "memory_used_mib": problem.is_none().then_some(8192 * jobs.len()),
            "temperature_c": 30 + index, "idle_jobs": jobs.iter().filter(|_| index == 0).collect::<Vec<_>>(),
        })
    };
    let node = |name: &str, state: &str, devices: Vec<serde_json::Value>| serde_json::json!({"name": name, "state": state, "reason": null, "address": "127.0.0.1", "devices": devices, "heard_s": 0.5});
    let status = serde_json::json!({
        "version": "0.1.0", "policy": "max-min", "round_s": 60.0, "pending": 2, "running": 2, "ended": 7, "nodes_up": 1,
        "devices": 8, "devices_held": 3, "prices": {"h100": 1.5}, "rounds": 41, "plans": 50,
    });
    let nodes = vec![
        node(
            "n1",
            "up",
            vec![device(0, &[1], None), device(1, &[1], None), device(2, &[2], None), device(3, &[], None)],
        ),
        node("n2", "draining", vec![device(0, &[], Some("lost")), device(1, &[], None)]),
    ];
    let jobs = vec![
        job(1, "running", "ada", 2, &["n1[0,1]"], Some(40)),
        job(2, "running", "bob", 1, &["n1[2]"], Some(90)),
        job(3, "pending", "bob", 4, &[], None),
        job(4, "suspended", "ada", 2, &[], Some(10)),
    ];
    let read = |value: serde_json::Value| serde_json::from_value(value);
    Look {
        status: serde_json::from_value(status).expect("a status"),
        nodes: serde_json::from_value(nodes.into()).expect("nodes"),
        jobs: jobs.into_iter().map(|job| read(job).expect("a job")).collect(),
        hidden: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(screen: &Screen) -> Vec<u64> {
        screen.ids()
    }

    #[test]
    fn jobs_are_listed_in_any_order() {
        let mut screen = Screen::new(sample());
        assert_eq!(listed(&screen), [1, 2, 3, 4]);
        screen.sort();
        assert_eq!((screen.order(), listed(&screen)), ("user", vec![1, 2, 4, 3]));
        screen.sort();
        assert_eq!((screen.order(), listed(&screen)), ("gpus", vec![1, 2, 3, 4]));
        screen.sort();
        assert_eq!((screen.order(), listed(&screen)), ("progress", vec![2, 1, 4, 3]));
        screen.turn();
        assert_eq!(listed(&screen), [1, 2, 3, 4]);
    }

    #[test]
    fn the_selection_stays_with_its_job_and_never_leaves_the_list() {
        let mut screen = Screen::new(sample());
        screen.go(-5);
        assert_eq!(screen.selected().map(|job| job.id), Some(1));
        screen.go(100);
        assert_eq!(screen.selected().map(|job| job.id), Some(4));
        screen.go(-2);
        let mut look = sample();
        look.jobs.remove(0);
        screen.update(Ok(look));
        assert_eq!(screen.selected().map(|job| job.id), Some(2), "it moved up with its job");
        screen.update(Ok(Look { jobs: Vec::new(), ..sample() }));
        assert_eq!(screen.selected().map(|job| job.id), None);
        screen.go(1);
    }

    #[test]
    fn a_problem_leaves_the_last_look() {
        let mut screen = Screen::new(sample());
        screen.update(Err("no server answers".into()));
        assert_eq!((screen.problem.as_deref(), screen.look.jobs.len()), (Some("no server answers"), 4));
        screen.update(Ok(sample()));
        assert_eq!(screen.problem, None);
    }
}
