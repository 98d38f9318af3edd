//! Cards on the screen: how busy they are and how full, as bars. In a line of its own each, or all cards of a node in
//! a few characters.

use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use yard_live::views::{DeviceView, NodeView};

use super::super::nodes;
use crate::output::plain;

/// Bars of one character, from nothing to full.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How wide a bar of several characters is.
const WIDTH: usize = 10;

/// How busy a node's cards are, and how full, one character each; nothing where nothing is known. `z` is a card that
/// is held and not used.
pub(super) fn strip(node: &NodeView) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    if node.devices.iter().any(|device| device.busy.is_some()) {
        spans.push(Span::raw("  busy "));
        spans.extend(node.devices.iter().map(busy_cell));
    }
    if node.devices.iter().any(|device| fullness(device).is_some()) {
        spans.push(Span::raw("  memory "));
        let cell = |device| Span::styled(level(fullness(device)).to_string(), Color::Blue);
        spans.extend(node.devices.iter().map(cell));
    }
    spans
}

fn busy_cell(device: &DeviceView) -> Span<'static> {
    if device.idle_jobs.is_empty() {
        Span::styled(level(device.busy).to_string(), heat(device))
    } else {
        Span::styled("z", Color::Yellow)
    }
}

/// A card in a line.
pub(super) fn line(node: &NodeView, device: &DeviceView) -> Line<'static> {
    let name =
        format!("{:<14.14} {:<9.9}", plain(&node.name), plain(&format!("{}:{}", device.kind, device.index)));
    let busy = device.busy.map_or_else(String::new, nodes::percent);
    let jobs = nodes::jobs(device.jobs.iter());
    let jobs = if jobs.is_empty() { jobs } else { format!("job {jobs}") };
    let note = plain(&nodes::note(device).unwrap_or_default());
    Line::from(vec![
        Span::raw(name),
        Span::styled(bar(device.busy), heat(device)),
        Span::raw(format!(" {busy:>4}  ")),
        Span::styled(bar(fullness(device)), Color::Blue),
        Span::raw(format!(" {:<11} {:<10} {jobs:<8} ", nodes::memory(device), nodes::heat(device))),
        Span::styled(note, if device.problem.is_some() { Color::Red } else { Color::Yellow }),
    ])
}

/// Slowed-down cards are red.
fn heat(device: &DeviceView) -> Style {
    Style::new().fg(if device.throttled.is_some() { Color::Red } else { Color::Green })
}

fn fullness(device: &DeviceView) -> Option<f64> {
    let (used, all) = (device.memory_used_mib?, device.memory_mib.filter(|all| *all > 0)?);
    Some(used as f64 / all as f64)
}

/// What is not known is a dot.
fn level(part: Option<f64>) -> char {
    part.map_or('·', |part| LEVELS[eighths(part, 1)])
}

/// A bar of several characters.
fn bar(part: Option<f64>) -> String {
    let Some(part) = part else { return "·".repeat(WIDTH) };
    let filled = eighths(part, WIDTH).div_ceil(8);
    "█".repeat(filled) + &"░".repeat(WIDTH - filled)
}

/// How many eighths of a character so wide are filled: whatever is not nothing shows.
fn eighths(part: f64, width: usize) -> usize {
    (part.clamp(0.0, 1.0) * (8 * width) as f64).ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_what_there_is() {
        let levels: String = [0.0, 0.01, 0.5, 1.0, 7.0].iter().map(|part| level(Some(*part))).collect();
        assert_eq!((levels.as_str(), level(None)), (" ▁▄██", '·'));
        assert_eq!(bar(Some(0.0)), "░░░░░░░░░░");
        assert_eq!(bar(Some(0.52)), "██████░░░░");
        assert_eq!(bar(Some(f64::NAN)), "░░░░░░░░░░");
        assert_eq!(bar(None), "··········");
    }
}
