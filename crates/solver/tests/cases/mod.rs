//! Random markets, plain and degenerate.

use std::fmt;

use proptest::prelude::*;
use proptest::sample::select;
use yard_solver::market::Market;
use yard_solver::reference::{Instance, Progress, ReferenceChoice};

/// What is special about a market.
#[derive(Clone, Copy, Debug)]
enum Family {
    Plain,
    OneKind,
    AllEqual,
    /// One row's gang is larger than any kind.
    Oversized,
    /// Six orders of magnitude.
    WideWeights,
    SingleOptions,
    EqualSpeeds,
    /// Everybody's own best speed is the limit.
    Abundant,
    Scarce,
    ZeroWeights,
}

const FAMILIES: [Family; 10] = [
    Family::Plain,
    Family::OneKind,
    Family::AllEqual,
    Family::Oversized,
    Family::WideWeights,
    Family::SingleOptions,
    Family::EqualSpeeds,
    Family::Abundant,
    Family::Scarce,
    Family::ZeroWeights,
];

/// Like buyers: how many, and their options.
#[derive(Clone, Debug)]
struct Row {
    count: u32,
    options: Vec<ReferenceChoice>,
}

/// A market, and columns for what may be asked of it.
#[derive(Clone)]
pub(crate) struct Case {
    family: Family,
    capacity: Vec<f64>,
    rows: Vec<Row>,
    /// May be zero.
    pub(crate) weight: Vec<f64>,
    /// Above zero.
    pub(crate) value: Vec<f64>,
    pub(crate) progress: Vec<Progress>,
    /// Of one device of each kind.
    pub(crate) dollars: Vec<f64>,
}

/// One line a row: failures are read by people.
impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: capacity {:?}, dollars {:?}", self.family, self.capacity, self.dollars)?;
        for (at, row) in self.rows.iter().enumerate() {
            let (weight, value, progress) = (self.weight[at], self.value[at], self.progress[at]);
            write!(f, "\n  {} × {:?}, weight {weight}, value {value}, {progress:?}", row.count, row.options)?;
        }
        Ok(())
    }
}

impl Case {
    pub(crate) fn market(&self) -> Market {
        let mut market = Market::new(self.capacity.clone()).unwrap();
        for row in &self.rows {
            market.row(f64::from(row.count)).unwrap();
            for (speed, uses) in &row.options {
                let uses: Vec<(u16, f64)> =
                    uses.iter().map(|(kind, devices)| (*kind as u16, *devices)).collect();
                market.option(*speed, &uses).unwrap();
            }
        }
        market
    }

    /// The same with every buyer a job of its own.
    pub(crate) fn reference(&self) -> Instance {
        let options: Vec<_> = self.rows.iter().map(|row| row.options.clone()).collect();
        Instance::new(self.capacity.clone(), &self.each(&options))
    }

    /// A column by row as one by buyer.
    pub(crate) fn each<T: Clone>(&self, column: &[T]) -> Vec<T> {
        let one = |(row, value): (&Row, &T)| vec![value.clone(); row.count as usize];
        self.rows.iter().zip(column).flat_map(one).collect()
    }

    /// Whether all weights are above zero and within two orders of magnitude.
    pub(crate) fn is_even(&self) -> bool {
        let most = self.weight.iter().copied().fold(0.0, f64::max);
        self.weight.iter().all(|weight| *weight * 100.0 >= most)
    }

    /// Whether a gang is larger than a kind.
    pub(crate) fn is_oversized(&self) -> bool {
        matches!(self.family, Family::Oversized)
    }

    /// The same with ten to these powers as much of each kind.
    pub(crate) fn scaled(&self, powers: &[f64]) -> Case {
        let mut case = self.clone();
        for (devices, power) in case.capacity.iter_mut().zip(powers) {
            *devices *= libm::pow(10.0, *power);
        }
        case
    }

    /// What each option of each buyer is worth, over `unit`.
    pub(crate) fn values(&self, value: &[f64], unit: f64) -> Vec<f64> {
        let reference = self.reference();
        let value = self.each(value);
        let of = |job: usize| reference.first[job] as usize..reference.first[job + 1] as usize;
        let job = |job: usize| {
            reference.speed[of(job)].iter().map(|speed| speed * value[job] / unit).collect::<Vec<_>>()
        };
        (0..reference.jobs()).flat_map(job).collect()
    }
}

/// A market of at most so many rows.
pub(crate) fn case(rows: usize) -> impl Strategy<Value = Case> {
    let kinds = 1..=5_usize;
    (kinds, select(&FAMILIES[..])).prop_flat_map(move |(kinds, family)| {
        let kinds = if matches!(family, Family::OneKind) { 1 } else { kinds };
        let capacity = prop::collection::vec(0.5..40.0_f64, kinds);
        let dollars = prop::collection::vec(0.2..5.0_f64, kinds);
        let rows = prop::collection::vec((row(kinds), columns(family)), 1..=rows);
        (capacity, dollars, rows)
            .prop_map(move |(capacity, dollars, rows)| shape(family, capacity, dollars, rows))
    })
}

fn row(kinds: usize) -> impl Strategy<Value = Row> {
    (1..=5_u32, prop::collection::vec(option(kinds), 1..=6))
        .prop_map(|(count, options)| Row { count, options })
}

/// On one kind, or now and then on two.
fn option(kinds: usize) -> impl Strategy<Value = ReferenceChoice> {
    let uses = (0..kinds as u32, 1..=8_u32, prop::option::weighted(0.25, (0..kinds as u32, 1..=8_u32)));
    (0.05..4.0_f64, uses).prop_map(|(speed, (kind, devices, other))| {
        let mut uses = vec![(kind, f64::from(devices))];
        let other = other.filter(|(other, _)| *other != kind);
        uses.extend(other.map(|(kind, devices)| (kind, f64::from(devices))));
        (speed, uses)
    })
}

/// Weight, value and progress of a row.
type Columns = (f64, f64, Progress);

fn columns(family: Family) -> impl Strategy<Value = Columns> {
    let weight = match family {
        Family::WideWeights => (-3.0..3.0_f64).prop_map(|power| libm::pow(10.0, power)).boxed(),
        Family::ZeroWeights => prop_oneof![Just(0.0), 0.1..10.0_f64].boxed(),
        _ => (0.1..10.0_f64).boxed(),
    };
    let progress = (1.0..50.0_f64, 1.0..100.0_f64, 0.0..100.0_f64);
    let progress = progress.prop_map(|(steps, isolated, elapsed)| Progress { steps, isolated, elapsed });
    (weight, 0.1..10.0_f64, progress)
}

fn shape(family: Family, capacity: Vec<f64>, dollars: Vec<f64>, all: Vec<(Row, Columns)>) -> Case {
    let (mut rows, columns): (Vec<Row>, Vec<Columns>) = all.into_iter().unzip();
    let mut case = Case {
        family,
        weight: columns.iter().map(|(weight, _, _)| *weight).collect(),
        value: columns.iter().map(|(_, value, _)| *value).collect(),
        progress: columns.iter().map(|(_, _, progress)| *progress).collect(),
        capacity,
        dollars,
        rows: Vec::new(),
    };
    let scale =
        |case: &mut Case, factor: f64| case.capacity.iter_mut().for_each(|devices| *devices *= factor);
    match family {
        Family::Plain | Family::OneKind | Family::WideWeights | Family::ZeroWeights => {}
        Family::AllEqual => level_out(&mut rows, &mut case),
        Family::Oversized => rows[0].options.iter_mut().for_each(|(_, uses)| uses[0].1 = 100.0),
        Family::SingleOptions => rows.iter_mut().step_by(2).for_each(|row| row.options.truncate(1)),
        Family::EqualSpeeds => {
            rows.iter_mut().flat_map(|row| &mut row.options).for_each(|option| option.0 = 1.0)
        }
        Family::Abundant => scale(&mut case, 1e4),
        Family::Scarce => scale(&mut case, 1e-2),
    }
    Case { rows, ..case }
}

fn level_out(rows: &mut [Row], case: &mut Case) {
    let first = rows[0].clone();
    rows.fill(first);
    case.weight.fill(1.0);
    case.value.fill(1.0);
    let progress = case.progress[0];
    case.progress.fill(progress);
}
