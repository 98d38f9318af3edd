//! All devices at a glance: by kind, node after node, as many to a line as fit.

use std::collections::BTreeMap;

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use yard_live::views::{DeviceView, NodeView};

use super::draw::cell;
use crate::output::plain;

/// The map in lines of at most this width. Nodes are told apart by a blank; one that takes no jobs is in brackets.
pub(super) fn lines(nodes: &[NodeView], selected: Option<u64>, width: usize) -> Vec<Line<'static>> {
    let mut kinds: BTreeMap<&str, Vec<(&NodeView, Vec<&DeviceView>)>> = BTreeMap::new();
    for node in nodes {
        let mut own: BTreeMap<&str, Vec<&DeviceView>> = BTreeMap::new();
        node.devices.iter().for_each(|device| own.entry(&device.kind).or_default().push(device));
        own.into_iter().for_each(|(kind, devices)| kinds.entry(kind).or_default().push((node, devices)));
    }
    let kind = |(kind, nodes): (&str, Vec<_>)| {
        let mut lines = vec![title(kind, &nodes)];
        lines.extend(rows(&nodes, selected, width));
        lines
    };
    kinds.into_iter().flat_map(kind).collect()
}

fn title(kind: &str, nodes: &[(&NodeView, Vec<&DeviceView>)]) -> Line<'static> {
    let devices = || nodes.iter().flat_map(|(_, devices)| devices);
    let held = devices().filter(|device| !device.jobs.is_empty()).count();
    let text = format!("{}  {held}/{} held", plain(kind), devices().count());
    Line::styled(text, Style::new().add_modifier(Modifier::BOLD))
}

fn rows(nodes: &[(&NodeView, Vec<&DeviceView>)], selected: Option<u64>, width: usize) -> Vec<Line<'static>> {
    let (mut lines, mut spans, mut used) = (Vec::new(), Vec::new(), 0);
    for (node, devices) in nodes {
        let block = devices.len() + 2;
        if used > 0 && used + block > width {
            lines.push(Line::from(std::mem::take(&mut spans)));
            used = 0;
        }
        let edge = |up: &'static str, other: &'static str| {
            if node.state == "up" { Span::raw(up) } else { Span::styled(other, Color::Red) }
        };
        spans.push(edge(" ", "["));
        spans.extend(devices.iter().map(|device| cell(device, selected)));
        spans.push(edge(" ", "]"));
        used += block;
    }
    if !spans.is_empty() {
        lines.push(Line::from(spans));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::screen::sample;
    use super::*;

    fn texts(width: usize) -> Vec<String> {
        let map = lines(&sample().nodes, None, width);
        map.iter().map(|line| line.spans.iter().map(|span| span.content.as_ref()).collect()).collect()
    }

    #[test]
    fn nodes_of_a_kind_are_beside_each_other_while_there_is_room() {
        assert_eq!(texts(40), ["h100  3/6 held", " 112· [x·]"]);
        assert_eq!(texts(8), ["h100  3/6 held", " 112· ", "[x·]"]);
        assert_eq!(lines(&[], None, 80), []);
    }
}
