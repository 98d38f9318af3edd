//! A chart as marks on a page: lines, and words at places. Writers know nothing of charts.

use super::axis::Axis;
use super::data::{Chart, PlotCurve};

/// The page, in points.
pub(super) const WIDTH: f64 = 420.0;
pub(super) const HEIGHT: f64 = 270.0;

const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 42.0;
const TOP: f64 = 12.0;
const LEGEND_LINE: f64 = 15.0;
const TITLE: f64 = 18.0;

/// Size of the letters.
pub(super) const SMALL: f64 = 10.0;
const LARGE: f64 = 12.0;

const GREY: Colour = Colour(0x66, 0x66, 0x66);
const FAINT: Colour = Colour(0xdd, 0xdd, 0xdd);

/// Colours that colour-blind readers can tell apart (Okabe and Ito, "Color universal design", 2008).
const COLOURS: [Colour; 7] = [
    Colour(0x00, 0x72, 0xb2),
    Colour(0xd5, 0x5e, 0x00),
    Colour(0x00, 0x9e, 0x73),
    Colour(0xcc, 0x79, 0xa7),
    Colour(0xe6, 0x9f, 0x00),
    Colour(0x56, 0xb4, 0xe9),
    Colour(0x00, 0x00, 0x00),
];

/// Dashes, so that curves differ in black and white, too.
const DASHES: [&[f64]; 4] = [&[], &[6.0, 3.0], &[2.0, 2.0], &[8.0, 3.0, 2.0, 3.0]];

/// Red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Colour(pub(super) u8, pub(super) u8, pub(super) u8);

/// Where a word is put: its beginning, middle or end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A thing on the page; y grows downwards.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Mark {
    Line { points: Vec<(f64, f64)>, colour: Colour, width: f64, dashes: &'static [f64] },
    Word { at: (f64, f64), text: String, size: f64, anchor: Anchor, upwards: bool },
}

/// The rectangle in which curves lie, and the axes.
struct Frame {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
    x: Axis,
    y: Axis,
}

/// The marks of a chart.
pub(super) fn draw(chart: &Chart) -> Vec<Mark> {
    let (legend, lines) = legend(chart);
    let title = if chart.title.is_some() { TITLE } else { 0.0 };
    let top = TOP + title + lines as f64 * LEGEND_LINE;
    let frame = Frame {
        left: LEFT,
        top,
        right: WIDTH - RIGHT,
        bottom: HEIGHT - BOTTOM,
        x: x_axis(chart),
        y: y_axis(chart),
    };
    let mut marks = frame.marks(chart);
    marks.extend(legend);
    for (at, curve) in chart.curves.iter().enumerate() {
        marks.extend(frame.curve(curve, at));
    }
    if let Some(title) = &chart.title {
        marks.push(word((WIDTH / 2.0, TOP + 6.0), title, LARGE, Anchor::Middle));
    }
    marks
}

fn x_axis(chart: &Chart) -> Axis {
    let values = chart.curves.iter().flat_map(|curve| curve.points.iter().map(|(x, _)| *x));
    if chart.times { Axis::times(values) } else { Axis::plain(values, false) }
}

fn y_axis(chart: &Chart) -> Axis {
    let points = chart.curves.iter().flat_map(|curve| curve.points.iter().map(|(_, y)| *y));
    let ends =
        chart.curves.iter().flat_map(|curve| curve.intervals.iter().flat_map(|(_, low, high)| [*low, *high]));
    Axis::plain(points.chain(ends), true)
}

fn word(at: (f64, f64), text: &str, size: f64, anchor: Anchor) -> Mark {
    Mark::Word { at, text: text.to_owned(), size, anchor, upwards: false }
}

fn rule(from: (f64, f64), to: (f64, f64), colour: Colour) -> Mark {
    Mark::Line { points: vec![from, to], colour, width: 0.75, dashes: &[] }
}

/// The names of the curves above them, in as many lines as they need; and how many those are.
fn legend(chart: &Chart) -> (Vec<Mark>, usize) {
    let top = TOP + if chart.title.is_some() { TITLE } else { 0.0 };
    let (mut marks, mut x, mut line) = (Vec::new(), LEFT, 0);
    for (at, curve) in chart.curves.iter().enumerate() {
        let width = 30.0 + text_width(&curve.name, SMALL) + 14.0;
        if x > LEFT && x + width > WIDTH {
            (x, line) = (LEFT, line + 1);
        }
        let y = top + line as f64 * LEGEND_LINE;
        let (colour, dashes) = look(at);
        marks.push(Mark::Line { points: vec![(x, y), (x + 24.0, y)], colour, width: 1.5, dashes });
        marks.push(word((x + 30.0, y + 3.5), &curve.name, SMALL, Anchor::Start));
        x += width;
    }
    (marks, line + 1)
}

fn look(at: usize) -> (Colour, &'static [f64]) {
    (COLOURS[at % COLOURS.len()], DASHES[at % DASHES.len()])
}

impl Frame {
    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let across = self.left + self.x.place(x) * (self.right - self.left);
        (across, self.bottom - self.y.place(y) * (self.bottom - self.top))
    }

    /// Axes, ticks and what they mean.
    fn marks(&self, chart: &Chart) -> Vec<Mark> {
        let mut marks = Vec::new();
        for (value, name) in &self.y.ticks {
            let y = self.bottom - self.y.place(*value) * (self.bottom - self.top);
            marks.push(rule((self.left, y), (self.right, y), FAINT));
            marks.push(word((self.left - 6.0, y + 3.5), name, SMALL, Anchor::End));
        }
        for (value, name) in &self.x.ticks {
            let x = self.left + self.x.place(*value) * (self.right - self.left);
            marks.push(rule((x, self.bottom), (x, self.bottom + 4.0), GREY));
            marks.push(word((x, self.bottom + 15.0), name, SMALL, Anchor::Middle));
        }
        marks.push(rule((self.left, self.bottom), (self.right, self.bottom), GREY));
        let middle = ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0);
        marks.push(word((middle.0, HEIGHT - 8.0), &chart.x, SMALL, Anchor::Middle));
        let at = (13.0, middle.1);
        marks.push(Mark::Word {
            at,
            text: chart.y.clone(),
            size: SMALL,
            anchor: Anchor::Middle,
            upwards: true,
        });
        marks
    }

    fn curve(&self, curve: &PlotCurve, at: usize) -> Vec<Mark> {
        let (colour, dashes) = look(at);
        let points = if curve.stairs { stairs(&curve.points) } else { curve.points.clone() };
        let points = thinned(points.into_iter().map(|point| self.at(point)).collect());
        let mut marks = vec![Mark::Line { points, colour, width: 1.5, dashes }];
        for (x, low, high) in &curve.intervals {
            let (low, high) = (self.at((*x, *low)), self.at((*x, *high)));
            for (from, to) in [
                (low, high),
                ((low.0 - 3.0, low.1), (low.0 + 3.0, low.1)),
                ((high.0 - 3.0, high.1), (high.0 + 3.0, high.1)),
            ] {
                marks.push(Mark::Line { points: vec![from, to], colour, width: 1.0, dashes: &[] });
            }
        }
        marks
    }
}

/// A value holds until the next.
fn stairs(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let pairs = points.windows(2).flat_map(|pair| [pair[0], (pair[1].0, pair[0].1)]);
    pairs.chain(points.last().copied()).collect()
}

/// Without points that lie where the one before lies: a curve of a million points would be no figure.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for (at, point) in points.iter().enumerate() {
        let near = |last: &(f64, f64)| (last.0 - point.0).abs() < 0.25 && (last.1 - point.1).abs() < 0.25;
        if at + 1 == points.len() || !kept.last().is_some_and(near) {
            kept.push(*point);
        }
    }
    kept
}

/// How wide a text is in Helvetica, from the widths that Adobe published of it, for letters from space to tilde.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    const WIDTHS: [u16; 95] = [
        278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556,
        556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778,
        722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278,
        278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
        556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
    ];
    let width = |letter: char| {
        let at = (letter as usize).checked_sub(' ' as usize);
        f64::from(at.and_then(|at| WIDTHS.get(at)).copied().unwrap_or(556))
    };
    text.chars().map(width).sum::<f64>() / 1000.0 * size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_marks_lie_on_the_page() {
        let curve = |name: &str| PlotCurve {
            name: name.into(),
            points: vec![(1.0, 5.0), (2.0, 9.0), (4000.0, 12.0)],
            intervals: vec![(2.0, 8.0, 13.0)],
            stairs: true,
        };
        let names =
            ["fifo", "a rather long name of a policy", "tiresias:promote=8", "exec:./mine.py:depth=3"];
        let curves = names.into_iter().map(curve).collect();
        let chart =
            Chart { x: "time".into(), y: "jobs".into(), times: true, curves, title: Some("A title".into()) };
        let marks = draw(&chart);
        let on_page = |(x, y): &(f64, f64)| (0.0..=WIDTH).contains(x) && (0.0..=HEIGHT).contains(y);
        for mark in &marks {
            match mark {
                Mark::Line { points, .. } => assert!(points.iter().all(on_page), "{mark:?}"),
                Mark::Word { at, .. } => assert!(on_page(at), "{mark:?}"),
            }
        }
        let curves =
            marks.iter().filter(|mark| matches!(mark, Mark::Line { points, .. } if points.len() == 5));
        assert_eq!(curves.count(), 4, "three values are five corners");
    }

    #[test]
    fn a_long_curve_has_no_more_points_than_can_be_seen() {
        let points: Vec<_> = (0..100_000).map(|at| (f64::from(at) / 1000.0, 7.0)).collect();
        let kept = thinned(points.clone());
        assert!(kept.len() < 500, "{}", kept.len());
        assert_eq!((kept.first(), kept.last()), (points.first(), points.last()));
    }
}
