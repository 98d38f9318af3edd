//! The living jobs as rows of a market, and its shares as an allocation. Jobs that are alike in shapes, speeds
//! and weight are one row: they get equal parts, and a solve costs what the distinct jobs cost, not all of them.

use std::cmp::Ordering;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use yard_core::allocation::{Allocation, Certificate, Share};
use yard_core::ids::{JobIdx, KindId, ProfileId};
use yard_core::job::{JobSpec, Rank};
use yard_core::policy::PolicyError;
use yard_core::view::View;
use yard_solver::market::{Market, MarketError, MarketWork, Solution};

use crate::leftovers::with_leftovers;
use crate::together::likeness;

/// Shares below this are rounding, not meant.
pub(crate) const SHARE_MIN: f64 = 1e-7;

/// Options that are dearer than they are worth by less than this part of a device's price are all as good.
const DEAR_MIN: f64 = 1e-2;

/// Shapes with parts of the time.
type BuyerParts = SmallVec<[(u16, f64); 4]>;

/// Which jobs may stand in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuyerRows {
    /// Jobs that are alike.
    Alike,
    /// Jobs that are alike beside others, too.
    Mates,
    /// Each by itself: what it needs depends on how far it is.
    Single,
}

/// What a policy believes of speeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Each kind has the speed that it has.
    Aware,
    /// All devices are one pool, each as fast as the first kind named that the job can use; what a job gets of
    /// it is spread over the kinds it can use as they are there.
    Agnostic,
}

/// Where what the fair level leaves goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BuyersRest {
    /// To the largest total normalised throughput.
    Most,
    /// To nobody: rounds give it out as leftovers.
    None,
}

/// One row: jobs that are alike.
#[derive(Clone, Debug)]
pub(crate) struct BuyerRow {
    /// In the order of their rows in the view.
    pub(crate) jobs: Vec<JobIdx>,
    /// Devices that one of them asks for.
    pub(crate) size: f64,
    pub(crate) weight: f64,
    /// Speed averaged over all devices of the cluster: what an even share of every kind would give.
    pub(crate) even: f64,
}

/// Jobs as buyers.
pub(crate) struct Buyers<'v> {
    pub(crate) view: &'v View,
    pub(crate) market: Market,
    pub(crate) rows: Vec<BuyerRow>,
    /// The kinds that have devices: those of the market, unless it is one pool.
    pub(crate) kinds: Vec<KindId>,
    sight: Sight,
    /// The shapes behind each option, with the part of its time that each gets.
    shapes: Vec<SmallVec<[(u16, f64); 1]>>,
}

impl From<BrokenRow> for PolicyError {
    fn from(BrokenRow(error): BrokenRow) -> PolicyError {
        PolicyError(format!("the market of jobs and devices cannot be solved: {error}"))
    }
}

/// A market that could not be built or solved; numbers were checked before, so it is a bug elsewhere.
pub(crate) struct BrokenRow(pub(crate) MarketError);

impl From<MarketError> for BrokenRow {
    fn from(error: MarketError) -> BrokenRow {
        BrokenRow(error)
    }
}

impl<'v> Buyers<'v> {
    /// The jobs of a view that can run now.
    pub(crate) fn new(view: &'v View, rows: BuyerRows, sight: Sight) -> Result<Buyers<'v>, PolicyError> {
        let kinds: Vec<KindId> = view.kinds.ids().filter(|kind| view.capacity(*kind) > 0).collect();
        let mut capacity: Vec<f64> = kinds.iter().map(|kind| view.capacity(*kind) as f64).collect();
        if sight == Sight::Agnostic && !kinds.is_empty() {
            capacity = vec![capacity.iter().sum()];
        }
        let market = Market::new(capacity).map_err(BrokenRow)?;
        let mut buyers = Buyers { view, market, rows: Vec::new(), kinds, sight, shapes: Vec::new() };
        let mut jobs: Vec<JobIdx> = Vec::with_capacity(view.runs.len());
        jobs.extend(view.active().filter(|job| !view.run(*job).cancelled));
        let order = |a: &JobIdx, b: &JobIdx| match rows {
            BuyerRows::Single => a.cmp(b),
            BuyerRows::Alike => order(view, *a, *b),
            BuyerRows::Mates => order(view, *a, *b).then_with(|| likeness(view, *a).cmp(&likeness(view, *b))),
        };
        if rows != BuyerRows::Single {
            // By profile, which decides nearly always and need not be looked up each time.
            let mut keyed: Vec<(ProfileId, JobIdx)> =
                jobs.iter().map(|job| (view.spec(*job).profile, *job)).collect();
            keyed.sort_unstable_by(|(profile, a), (other, b)| {
                profile.cmp(other).then_with(|| order(a, b)).then_with(|| a.cmp(b))
            });
            jobs.iter_mut().zip(keyed).for_each(|(job, (_, next))| *job = next);
        }
        let alike = |a: &JobIdx, b: &JobIdx| order(a, b).is_eq();
        for jobs in jobs.chunk_by(alike) {
            buyers.add(jobs).map_err(BrokenRow)?;
        }
        Ok(buyers)
    }

    /// Adds a row, unless its jobs cannot run on what there is.
    fn add(&mut self, jobs: &[JobIdx]) -> Result<(), MarketError> {
        let (view, spec) = (self.view, self.view.spec(jobs[0]));
        let fits = |shape: &u16| self.fits(spec, *shape) && view.speed(jobs[0], *shape) > 0.0;
        let shapes: SmallVec<[u16; 8]> = (0..spec.shapes.len() as u16).filter(fits).collect();
        if shapes.is_empty() {
            return Ok(());
        }
        self.market.row(jobs.len() as f64)?;
        match self.sight {
            Sight::Aware => shapes.iter().try_for_each(|shape| self.add_option(jobs[0], *shape))?,
            Sight::Agnostic => self.add_pool(jobs[0], &shapes)?,
        }
        let row = self.market.rows() - 1;
        let (size, even) = (spec.shapes[0].devices() as f64, self.even(row));
        self.rows.push(BuyerRow { jobs: jobs.to_vec(), size, weight: spec.weight, even });
        Ok(())
    }

    fn add_option(&mut self, job: JobIdx, shape: u16) -> Result<(), MarketError> {
        let needs = &self.view.spec(job).shapes[shape as usize].needs;
        let place = |kind| self.kinds.iter().position(|known| *known == kind).expect("it fits") as u16;
        let uses: SmallVec<[(u16, f64); 2]> =
            needs.iter().map(|need| (place(need.kind), need.devices as f64)).collect();
        self.market.option(self.view.speed(job, shape), &uses)?;
        self.shapes.push(smallvec![(shape, 1.0)]);
        Ok(())
    }

    /// One option for all shapes: those of the size asked for, each for as much of the time as it has devices.
    fn add_pool(&mut self, job: JobIdx, shapes: &[u16]) -> Result<(), MarketError> {
        let spec = self.view.spec(job);
        let devices = |shape: u16| spec.shapes[shape as usize].devices();
        let kind = |shape: u16| spec.shapes[shape as usize].needs[0].kind;
        let size = devices(shapes[0]);
        let mut pool: SmallVec<[(u16, f64); 1]> = SmallVec::new();
        for shape in shapes.iter().copied().filter(|shape| devices(*shape) == size) {
            if !pool.iter().any(|(other, _)| kind(*other) == kind(shape)) {
                pool.push((shape, self.view.capacity(kind(shape)) as f64));
            }
        }
        let all: f64 = pool.iter().map(|(_, devices)| devices).sum();
        pool.iter_mut().for_each(|(_, part)| *part /= all);
        let first =
            pool.iter().map(|(shape, _)| *shape).min_by_key(|shape| kind(*shape)).expect("it has one");
        self.market.option(self.view.speed(job, first), &[(0, size as f64)])?;
        self.shapes.push(pool);
        Ok(())
    }

    /// Whether the nodes that are up could hold the shape.
    fn fits(&self, spec: &JobSpec, shape: u16) -> bool {
        spec.shapes[shape as usize].needs.iter().all(|need| need.devices <= self.view.capacity(need.kind))
    }

    /// Speed of one job of a row averaged over all devices, each kind at its best.
    fn even(&self, row: usize) -> f64 {
        if self.sight == Sight::Agnostic {
            return self.market.best(row);
        }
        let mut best: SmallVec<[f64; 8]> = SmallVec::from_elem(0.0, self.kinds.len());
        for option in self.market.options_of(row) {
            let mut uses = self.market.uses(option);
            if let (Some((kind, _)), None) = (uses.next(), uses.next()) {
                best[kind] = best[kind].max(self.market.speed(option));
            }
        }
        let devices = |kind: &KindId| self.view.capacity(*kind) as f64;
        let all: f64 = self.kinds.iter().map(devices).sum();
        let mean: f64 = self.kinds.iter().zip(&best).map(|(kind, best)| devices(kind) / all * best).sum();
        // A job that runs on mixes of kinds only is measured by the best of them.
        if mean > 0.0 { mean } else { self.market.best(row) }
    }

    /// The shape behind an option, where each kind has its own.
    pub(crate) fn shape(&self, option: usize) -> u16 {
        self.shapes[option][0].0
    }

    /// A number for each row.
    pub(crate) fn column(&self, of: impl Fn(&BuyerRow) -> f64) -> Vec<f64> {
        self.rows.iter().map(of).collect()
    }

    /// The speed that a level of 1 means: an even share, more for more weight, less for more devices, since
    /// a gang holds them all at once (Gavel, section 4.1).
    pub(crate) fn fair(&self) -> Vec<f64> {
        self.column(|row| row.weight * row.even / row.size)
    }

    /// What a unit of speed counts where ties are broken by total normalised throughput.
    pub(crate) fn normal(&self) -> Vec<f64> {
        self.column(|row| row.size / row.even)
    }

    /// The prices in force, in the order of the market's kinds.
    pub(crate) fn last_prices(&self) -> Option<Vec<f64>> {
        let prices = &self.view.prices;
        if self.sight == Sight::Agnostic {
            return None; // One pool has one price.
        }
        let known = prices.len() == self.view.kinds.ids().count();
        known.then(|| self.kinds.iter().map(|kind| prices[kind.index()]).collect())
    }

    /// One job's time by shape, from the shares of all options.
    pub(crate) fn shares_of<'s>(
        &'s self,
        row: usize,
        shares: &'s [f64],
    ) -> impl Iterator<Item = (u16, f64)> + 's {
        let count = self.rows[row].jobs.len() as f64;
        let of = move |option: usize| {
            self.shapes[option].iter().map(move |(shape, part)| (*shape, part * shares[option] / count))
        };
        self.market.options_of(row).flat_map(of).filter(|(_, part)| *part > SHARE_MIN)
    }

    /// The allocation, with its certificate; `rank` is what the policy wants to find again next time.
    pub(crate) fn allocation(&self, solution: &Solution, rank: impl Fn(usize) -> Rank) -> Allocation {
        self.allocate(solution, rank, |_| SmallVec::new())
    }

    /// The allocation where speed has a value: options without a share get next to nothing, and more of it the
    /// nearer they are to being worth their price. What rounds leave over goes to whom the market would serve next.
    pub(crate) fn allocation_by_value(&self, solution: &Solution, value: &[f64]) -> Allocation {
        self.allocate(solution, |_| Rank::default(), |row| self.slivers(row, solution, value[row]))
    }

    fn allocate(
        &self,
        solution: &Solution,
        rank: impl Fn(usize) -> Rank,
        slivers: impl Fn(usize) -> BuyerParts,
    ) -> Allocation {
        // A share of each shape, or what is left over in its place.
        let most = |row: &BuyerRow| row.jobs.len() * self.view.spec(row.jobs[0]).shapes.len();
        let mut all = Vec::with_capacity(self.rows.iter().map(most).sum());
        for (row, buyer) in self.rows.iter().enumerate() {
            let mut parts: BuyerParts = self.shares_of(row, &solution.shares).collect();
            parts.extend(slivers(row));
            for job in &buyer.jobs {
                let share = |(shape, part): &(u16, f64)| Share {
                    jobs: smallvec![*job],
                    shape: Some(*shape),
                    fraction: part.min(1.0),
                    rank: rank(row),
                };
                all.extend(parts.iter().map(share));
            }
        }
        self.certified(solution, Allocation::fractions(with_leftovers(self.view, all)))
    }

    /// The allocation in which nobody has more than its shares.
    pub(crate) fn limits(&self, solution: &Solution) -> Allocation {
        let mut all = Vec::new();
        for (row, buyer) in self.rows.iter().enumerate() {
            let part = |(shape, part): (u16, f64)| {
                buyer
                    .jobs
                    .iter()
                    .map(move |job| Share { shape: Some(shape), ..Share::part(*job, part.min(1.0)) })
            };
            all.extend(self.shares_of(row, &solution.shares).flat_map(part));
        }
        self.certified(solution, Allocation::capped(all))
    }

    fn certified(&self, solution: &Solution, mut allocation: Allocation) -> Allocation {
        let certificate = self.certificate(solution.objective, solution.bound, &solution.prices);
        allocation.certificate = Some(Box::new(certificate));
        allocation
    }

    fn slivers(&self, row: usize, solution: &Solution, value: f64) -> BuyerParts {
        let (market, count) = (&self.market, self.rows[row].jobs.len() as f64);
        let options = market.options_of(row).filter(|option| solution.shares[*option] / count <= SHARE_MIN);
        let loss = |option: usize| {
            let cost: f64 = market.uses(option).map(|(kind, n)| n * solution.prices[kind]).sum();
            cost - value * market.speed(option)
        };
        let least = market.options_of(row).map(loss).fold(0.0, f64::min);
        let sliver = |option: usize| {
            let one = market.uses(option).next().map_or(0.0, |(kind, _)| solution.prices[kind]);
            // By how many devices' price it is worse than the best for its job.
            let dear = (loss(option) - least) / one.max(f64::MIN_POSITIVE);
            let part = Share::LEFTOVER * (1.5 + 1.0 / (dear + DEAR_MIN));
            self.shapes[option].iter().map(move |(shape, _)| (*shape, part))
        };
        options.flat_map(sliver).collect()
    }

    /// Gives out what is left once every row is sure of `floor`: evenly where all devices are one pool and each is
    /// worth the same to all. Nothing is left to a solver's taste.
    pub(crate) fn give_rest(
        &self,
        solution: &mut Solution,
        floor: &[f64],
        rest: BuyersRest,
    ) -> Result<(), PolicyError> {
        if rest == BuyersRest::None {
            return Ok(());
        }
        let (shares, limits) = (std::mem::take(&mut solution.shares), MarketWork::default());
        let rest = match self.sight {
            Sight::Aware => self.market.most_from(&self.normal(), floor, shares, &limits),
            Sight::Agnostic => self.market.fill_from(&self.fair(), floor, shares, &limits),
        };
        let rest = rest.map_err(BrokenRow)?;
        solution.shares = rest.shares;
        solution.passes += rest.passes;
        Ok(())
    }

    /// How good an answer is; its prices, by kind of the market, scaled so that all devices cost 1.
    pub(crate) fn certificate(&self, objective: f64, bound: f64, of_kinds: &[f64]) -> Certificate {
        let mut prices = vec![0.0; self.view.kinds.ids().count()];
        let devices = |kind: &KindId| self.view.capacity(*kind) as f64;
        let all: f64 = self.kinds.iter().zip(of_kinds).map(|(kind, price)| devices(kind) * price).sum();
        for (kind, price) in self.kinds.iter().zip(of_kinds) {
            prices[kind.index()] = if all > 0.0 { price / all } else { 0.0 };
        }
        Certificate { objective, bound, prices, unmet: Vec::new() }
    }
}

/// Orders jobs so that those that are alike lie together.
fn order(view: &View, a: JobIdx, b: JobIdx) -> Ordering {
    let (a, b) = (view.spec(a), view.spec(b));
    let speeds = || {
        if Arc::ptr_eq(&a.speeds, &b.speeds) {
            return Ordering::Equal;
        }
        a.speeds.len().cmp(&b.speeds.len()).then_with(|| {
            let pairs = a.speeds.iter().zip(b.speeds.iter());
            pairs.map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        })
    };
    let shapes = || if Arc::ptr_eq(&a.shapes, &b.shapes) { Ordering::Equal } else { a.shapes.cmp(&b.shapes) };
    a.profile.cmp(&b.profile).then_with(|| a.weight.total_cmp(&b.weight)).then_with(shapes).then_with(speeds)
}
