//! From times of groups of classes to shares of groups of jobs.
//!
//! First each class gives its time to its jobs (`profile`): one window each, so about two pieces a job. Then
//! each group lines its jobs up: every class in it lays its pieces on a line as long as the group's time, one
//! after the other, and on as many lines as it has places in the group, wrapping from the end of one to the
//! begin of the next (McNaughton, Management Science, 1959). Whoever lies at the same point runs together.
//! A job never meets itself, since no piece is longer than the line. The number of job groups is at most the
//! number of pieces plus the number of places: O(jobs + groups). Everything goes by index, so equal input
//! gives equal output.
//!
//! The one care: a class paired with itself for less than one unit of time. Its piece for one job must not be
//! longer than that, so this time is dealt out first, evenly over as few jobs as possible; if the others'
//! time cannot make up for it, over twice as many, and in the end over all, where it always can for jobs of
//! equal need.

use smallvec::SmallVec;

use super::needs::segments;
use super::profile::{self, Segment, Taker};
use super::{Needs, PackedError, PackedProblem, PackedSolution, Ready, length};

/// Shares shorter than this are rounding.
const SHORT: f64 = 1e-12;

/// Jobs that share devices for a part of the time.
#[derive(Clone, Debug, PartialEq)]
pub struct JobGroup {
    /// The jobs, in the order of the group's roles.
    pub members: SmallVec<[u32; 2]>,
    /// Which of the problem's groups this is: it says on which kind, with how many devices, and how fast.
    pub group: u32,
    /// The fraction of time.
    pub fraction: f64,
}

/// Shares for jobs. `members[c]` names the jobs of class c, in the order of the needs if there are any.
pub fn hand_back(
    packed: &PackedProblem,
    solution: &PackedSolution,
    members: &[&[u32]],
) -> Result<Vec<JobGroup>, PackedError> {
    let ready = Ready::new(packed)?;
    length("time", solution.time.len(), packed.groups.len())?;
    length("members", members.len(), packed.classes.len())?;
    for (members, class) in members.iter().zip(&packed.classes) {
        length("members of a class", members.len(), class.jobs as usize)?;
    }
    let mut pieces: Vec<SmallVec<[Vec<HandBackPiece>; 2]>> = vec![SmallVec::new(); packed.groups.len()];
    for live in &ready.live {
        pieces[live.group].resize(live.parts.len(), Vec::new());
    }
    for (class, members) in members.iter().enumerate() {
        let needs = sorted_needs(solution, class, members.len())?;
        let split = Split::new(&ready, solution, class, needs);
        split.run(|job, group, time| {
            let at = ready.live.binary_search_by_key(&group, |live| live.group).ok();
            let parts = at.map(|at| &ready.live[at].parts);
            if let Some(part) = parts.and_then(|parts| parts.iter().position(|part| part.class == class)) {
                add(&mut pieces[group][part], HandBackPiece { job: members[job], time });
            }
        });
    }
    let mut out = Vec::new();
    for live in &ready.live {
        line_up(packed, live, solution.time[live.group], &pieces[live.group], &mut out);
    }
    Ok(out)
}

/// A job's time in one place of a group.
#[derive(Clone, Copy, Debug)]
struct HandBackPiece {
    job: u32,
    time: f64,
}

fn add(pieces: &mut Vec<HandBackPiece>, piece: HandBackPiece) {
    match pieces.last_mut() {
        Some(last) if last.job == piece.job => last.time += piece.time,
        _ => pieces.push(piece),
    }
}

/// The needs of a class from the largest down, with whose they are.
fn sorted_needs(
    solution: &PackedSolution,
    class: usize,
    jobs: usize,
) -> Result<Vec<(usize, f64)>, PackedError> {
    let mut needs: Vec<(usize, f64)> = match &solution.needs {
        Needs::Equal => (0..jobs).map(|job| (job, 1.0)).collect(),
        Needs::Each(needs) => {
            let needs = needs.get(class).map_or(&[][..], |needs| needs);
            length("needs of a class", needs.len(), jobs)?;
            needs.iter().copied().enumerate().collect()
        }
    };
    needs.sort_by(|left, right| right.1.total_cmp(&left.1));
    Ok(needs)
}

/// How one class splits its time.
struct Split {
    /// Whose place each is in the order of targets.
    order: Vec<usize>,
    targets: Vec<f64>,
    /// What goes by windows, fastest first, without idle time.
    pool: Vec<Segment>,
    /// What the class spends with itself for less than a unit: the segment, and the places in the group.
    own: Vec<(Segment, usize)>,
}

impl Split {
    fn new(ready: &Ready, solution: &PackedSolution, class: usize, needs: Vec<(usize, f64)>) -> Split {
        let all = segments(ready, class, solution);
        let amounts: Vec<f64> = needs.iter().map(|(_, need)| *need).collect();
        let by_need = profile::targets(&all, &amounts);
        let mut order: Vec<usize> = (0..needs.len()).collect();
        order.sort_by(|left, right| by_need[*right].total_cmp(&by_need[*left]));
        let targets = order.iter().map(|at| by_need[*at]).collect();
        let places = |segment: &Segment| {
            let roles = &ready.packed.groups[segment.option].roles;
            roles.iter().filter(|role| role.class as usize == class).count()
        };
        let (mut pool, mut own) = (Vec::new(), Vec::new());
        for segment in all {
            match places(&segment) {
                places if places > 1 && solution.time[segment.option] < 1.0 => own.push((segment, places)),
                _ => pool.push(segment),
            }
        }
        Split { order: order.into_iter().map(|at| needs[at].0).collect(), targets, pool, own }
    }

    /// Calls `give(job, group, time)` for every piece.
    fn run(&self, mut give: impl FnMut(usize, usize, f64)) {
        let jobs = self.order.len();
        let mut over = 1;
        let dealt = loop {
            let dealt = self.deal(over);
            if over >= jobs || self.own.is_empty() || self.works(&dealt) {
                break dealt;
            }
            over *= 2;
        };
        dealt.own.iter().for_each(|(at, group, time)| give(self.order[*at], *group, *time));
        let takers = dealt.order.iter().map(|at| dealt.takers[*at]);
        profile::give_out(self.pool(&dealt), takers, |at, option, time| {
            if option != IDLE {
                give(self.order[dealt.order[at]], option, time);
            }
        });
    }

    /// Time with oneself over `over` jobs for each place, the next ones for each group in turn.
    fn deal(&self, over: usize) -> Dealt {
        let jobs = self.order.len();
        let mut takers: Vec<Taker> =
            self.targets.iter().map(|work| Taker { time: 1.0, work: *work }).collect();
        let (mut own, mut from) = (Vec::new(), 0);
        for (segment, places) in &self.own {
            let first = self.targets.partition_point(|target| *target > segment.speed);
            let count = (places * over).min(jobs);
            let each = segment.amount / count as f64;
            for step in 0..count {
                let at = (first + from + step) % jobs;
                takers[at].time -= each;
                takers[at].work -= each * segment.speed;
                own.push((at, segment.option, each));
            }
            from += count;
        }
        let pace = |at: &usize| takers[*at].work / takers[*at].time.max(SHORT);
        let mut order: Vec<usize> = (0..jobs).collect();
        if !own.is_empty() {
            order.sort_by(|left, right| pace(right).total_cmp(&pace(left)));
        }
        Dealt { takers, own, order }
    }

    /// Whether the rest of the time can make up for what was dealt.
    fn works(&self, dealt: &Dealt) -> bool {
        let mut short = dealt.takers.iter().any(|taker| taker.time < 0.0);
        let mut work: Vec<f64> = dealt.order.iter().map(|at| dealt.takers[*at].work).collect();
        if short {
            return false;
        }
        let speed_of = |option: usize| self.pool.iter().find(|segment| segment.option == option);
        let takers = dealt.order.iter().map(|at| dealt.takers[*at]);
        profile::give_out(self.pool(dealt), takers, |at, option, time| {
            work[at] -= time * speed_of(option).map_or(0.0, |segment| segment.speed);
        });
        short |= work.iter().zip(&dealt.order).any(|(left, at)| *left > 1e-10 * self.targets[*at]);
        !short
    }

    /// The pool with the idle time that fills it up.
    fn pool(&self, dealt: &Dealt) -> Vec<Segment> {
        let room: f64 = dealt.takers.iter().map(|taker| taker.time.max(0.0)).sum();
        let busy: f64 = self.pool.iter().map(|segment| segment.amount).sum();
        let mut pool = self.pool.clone();
        pool.push(Segment { speed: 0.0, amount: (room - busy).max(0.0), option: IDLE });
        pool
    }
}

/// The option of doing nothing.
const IDLE: usize = usize::MAX;

/// Who has got what of the time with oneself, and what each still has and wants.
struct Dealt {
    takers: Vec<Taker>,
    own: Vec<(usize, usize, f64)>,
    /// By work per time left, from the largest down.
    order: Vec<usize>,
}

/// One line for each role: where it stands in its class's pieces, and how much of that piece is left.
struct Line<'a> {
    pieces: &'a [HandBackPiece],
    left: f64,
}

impl<'a> Line<'a> {
    /// The part of the pieces from `begin` on.
    fn new(pieces: &'a [HandBackPiece], mut begin: f64) -> Line<'a> {
        let mut at = 0;
        while at < pieces.len() && begin >= pieces[at].time {
            begin -= pieces[at].time;
            at += 1;
        }
        let left = pieces.get(at).map_or(0.0, |piece| piece.time - begin);
        Line { pieces: &pieces[at..], left }
    }

    fn forward(&mut self, step: f64) {
        self.left -= step;
        if self.left <= 0.0 {
            self.pieces = self.pieces.get(1..).unwrap_or_default();
            self.left = self.pieces.first().map_or(0.0, |piece| piece.time);
        }
    }
}

/// Cuts a group's time where somebody changes.
fn line_up(
    packed: &PackedProblem,
    live: &super::LiveColumns,
    time: f64,
    pieces: &[Vec<HandBackPiece>],
    out: &mut Vec<JobGroup>,
) {
    if time <= 0.0 {
        return;
    }
    let mut used = vec![0.0; live.parts.len()];
    let mut lines: SmallVec<[Line; 2]> = SmallVec::new();
    for role in &packed.groups[live.group].roles {
        let Some(part) = live.parts.iter().position(|part| part.class == role.class as usize) else { return };
        lines.push(Line::new(&pieces[part], used[part] * time));
        used[part] += 1.0;
    }
    let mut left = time;
    while left > 0.0 && lines.iter().all(|line| !line.pieces.is_empty()) {
        let step = lines.iter().fold(left, |step, line| step.min(line.left));
        let members: SmallVec<[u32; 2]> = lines.iter().map(|line| line.pieces[0].job).collect();
        if step > SHORT && distinct(&members) {
            out.push(JobGroup { members, group: live.group as u32, fraction: step.min(1.0) });
        }
        lines.iter_mut().for_each(|line| line.forward(step));
        left -= step;
    }
}

/// Rounding at a wrap may let a job touch itself for an instant.
fn distinct(members: &[u32]) -> bool {
    members.iter().enumerate().all(|(at, job)| !members[..at].contains(job))
}
