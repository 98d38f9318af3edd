//! From the state of the screen to a frame, and nothing else: the same state and time give the same frame.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table, TableState};
use yard_live::views::{DeviceView, JobView, NodeView};

use super::super::jobs;
use super::screen::{Panel, Screen};
use super::{cards, map};
use crate::output::{brief, plain};

/// Colours of jobs on devices, by number; devices of one job have one colour.
const COLOURS: [Color; 6] =
    [Color::Green, Color::Yellow, Color::Blue, Color::Magenta, Color::Cyan, Color::LightRed];

/// What the keys do, and what the signs mean.
const HELP: &str = "Keys
  q, Esc         quit (Esc closes this help first)
  j/k, arrows    select the next or previous job; the bottom line says what it does or waits for
  s              sort jobs by number, user, GPUs or progress
  r              reverse the order
  c              list of GPUs, one per line; again: nodes
  m              map of all GPUs, one character each; again: nodes
  ?              this help

Symbols
  112·           each GPU: last digit of its job; · free, x out of service
  busy ▁▃▅█      recent utilisation of each GPU; z: reserved but not used

More of one job: yard show JOB, yard explain JOB, yard logs -f JOB";

/// Draws the screen at a time.
pub(super) fn draw(screen: &Screen, now: f64, frame: &mut Frame<'_>) {
    if screen.help {
        return frame.render_widget(Paragraph::new(HELP), frame.area());
    }
    let (running, waiting) = screen.jobs();
    let area = frame.area();
    // A map is there to be looked at.
    let most = if screen.panel == Panel::Map { area.height / 2 } else { area.height / 3 };
    let lines = (machine_lines(screen, area.width) + 2).min(usize::from(most)).max(3);
    let rows = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(lines as u16),
        Constraint::Fill(1),
        Constraint::Fill(1),
        Constraint::Length(2),
    ]);
    let [head, nodes, upper, lower, foot] = rows.areas(frame.area());
    let counts = (running.len(), waiting.len());
    frame.render_widget(Paragraph::new(header(screen, counts)), head);
    frame.render_widget(nodes_widget(screen, nodes), nodes);
    draw_jobs(screen, "running", &running, now, upper, frame);
    draw_jobs(screen, "waiting", &waiting, now, lower, frame);
    frame.render_widget(Paragraph::new(footer(screen)), foot);
}

/// What is so in all. Jobs are counted as they are listed, so that the two agree.
fn header(screen: &Screen, (running, waiting): (usize, usize)) -> Vec<Line<'static>> {
    let status = &screen.look.status;
    let prices: Vec<_> = status.prices.iter().map(|(kind, price)| format!("{kind} {price:.2}")).collect();
    let prices = if prices.is_empty() { String::new() } else { format!("  prices {}", prices.join(" ")) };
    let first = format!("yard {}  policy {}  round {}", status.version, status.policy, brief(status.round_s));
    let hidden = screen.look.hidden;
    let others = if hidden > 0 { format!("  {hidden} of other users") } else { String::new() };
    let second = format!(
        "{running} running  {waiting} waiting{others}  {} over  {}/{} devices in use on {} nodes",
        status.ended, status.devices_held, status.devices, status.nodes_up
    );
    vec![
        Line::styled(plain(&(first + &prices)), Style::new().add_modifier(Modifier::BOLD)),
        Line::raw(second),
    ]
}

/// How many lines there are to show of machines.
fn machine_lines(screen: &Screen, width: u16) -> usize {
    match screen.panel {
        Panel::Map => map_lines(screen, width).len(),
        Panel::Nodes | Panel::Cards => machines(screen).count(),
    }
}

fn map_lines(screen: &Screen, width: u16) -> Vec<Line<'static>> {
    let selected = screen.selected().map(|job| job.id);
    map::lines(&screen.look.nodes, selected, usize::from(width.saturating_sub(2)))
}

fn nodes_widget(screen: &Screen, area: Rect) -> Paragraph<'static> {
    let shown = usize::from(area.height.saturating_sub(2));
    let more = machine_lines(screen, area.width).saturating_sub(shown);
    let what = match screen.panel {
        Panel::Nodes => "nodes",
        Panel::Cards => "GPUs",
        Panel::Map => "devices",
    };
    let title = if more > 0 { format!(" {what} ({more} more) ") } else { format!(" {what} ") };
    let line = |(node, device): (&NodeView, Option<&DeviceView>)| match device {
        Some(device) => cards::line(node, device),
        None => node_line(screen, node),
    };
    let lines: Vec<_> = match screen.panel {
        Panel::Map => map_lines(screen, area.width).into_iter().take(shown).collect(),
        Panel::Nodes | Panel::Cards => machines(screen).take(shown).map(line).collect(),
    };
    Paragraph::new(lines).block(Block::new().borders(Borders::ALL).title(title))
}

/// What has a line of its own: nodes, or the devices of each.
fn machines(screen: &Screen) -> impl Iterator<Item = (&NodeView, Option<&DeviceView>)> {
    let nodes = screen.look.nodes.iter();
    nodes.flat_map(|node| {
        let by_card = screen.panel == Panel::Cards;
        let devices = node.devices.iter().filter(move |_| by_card).map(move |device| (node, Some(device)));
        devices.chain((!by_card).then_some((node, None)))
    })
}

fn node_line(screen: &Screen, node: &NodeView) -> Line<'static> {
    let selected = screen.selected().map(|job| job.id);
    let colour = if node.state == "up" { Color::Reset } else { Color::Red };
    let mut spans = vec![Span::styled(format!("{:<14.14} {:<11.11}", plain(&node.name), node.state), colour)];
    let mut kind = "";
    for device in &node.devices {
        if device.kind != kind {
            kind = &device.kind;
            spans.push(Span::raw(format!(" {} ", plain(kind))));
        }
        spans.push(cell(device, selected));
    }
    spans.extend(cards::strip(node));
    Line::from(spans)
}

/// A device as one character: free, out of service, or the last digit of the job that holds it; `&` if several do.
pub(super) fn cell(device: &DeviceView, selected: Option<u64>) -> Span<'static> {
    if device.problem.is_some() {
        return Span::styled("x", Color::Red);
    }
    let Some(&job) = device.jobs.first() else { return Span::styled("·", Color::DarkGray) };
    let text = if device.jobs.len() > 1 { "&".into() } else { (job % 10).to_string() };
    let style = Style::new().fg(COLOURS[(job % COLOURS.len() as u64) as usize]);
    let held = selected.is_some_and(|selected| device.jobs.contains(&selected));
    Span::styled(text, if held { style.add_modifier(Modifier::REVERSED) } else { style })
}

fn draw_jobs(screen: &Screen, title: &str, jobs: &[&JobView], now: f64, area: Rect, frame: &mut Frame<'_>) {
    let widths = [
        Constraint::Length(6),
        Constraint::Fill(2),
        Constraint::Length(8),
        Constraint::Length(10),
        Constraint::Length(4),
        Constraint::Length(4),
        Constraint::Length(11),
        Constraint::Fill(3),
    ];
    let header = ["job", "name", "user", "state", "gpus", "done", "time", "where or why"];
    let rows = jobs.iter().map(|job| row(job, now));
    let table = Table::new(rows, widths)
        .header(Row::new(header).style(Style::new().add_modifier(Modifier::BOLD)))
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .block(Block::new().borders(Borders::TOP).title(format!(" {title}: {} ", jobs.len())));
    let selected = screen.selected().and_then(|chosen| jobs.iter().position(|job| job.id == chosen.id));
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(selected));
}

fn row(job: &JobView, now: f64) -> Row<'static> {
    let place = jobs::place(job);
    let place = if place.is_empty() { plain(job.reason.as_deref().unwrap_or_default()) } else { place };
    let cells = [
        job.id.to_string(),
        plain(&job.name),
        plain(&job.user),
        job.state.clone(),
        job.gpus.to_string(),
        jobs::percent(job),
        jobs::time(job, now),
        place,
    ];
    Row::new(cells.map(Cell::new))
}

fn footer(screen: &Screen) -> Vec<Line<'static>> {
    let other = |panel, name| if screen.panel == panel { "nodes" } else { name };
    let (cards, map) = (other(Panel::Cards, "GPUs"), other(Panel::Map, "map"));
    let keys =
        format!("? help  q quit  j/k move  s sort (by {})  r reverse  c {cards}  m {map}", screen.order());
    let news = match (&screen.problem, screen.selected()) {
        (Some(problem), _) => Line::styled(plain(problem), Color::Red),
        (None, Some(job)) => Line::raw(about(job)),
        (None, None) => Line::raw("no jobs; try: yard submit -- sleep 60"),
    };
    vec![news, Line::styled(keys, Color::DarkGray)]
}

/// The selected job in a line.
fn about(job: &JobView) -> String {
    let why = job.reason.as_ref().map_or_else(String::new, |reason| format!(": {}", plain(reason)));
    format!("job {} {} is {}{why}", job.id, plain(&job.name), job.state)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::screen::sample;
    use super::*;

    fn drawn(screen: &Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("it is only memory");
        terminal.draw(|frame| draw(screen, 1300.0, frame)).expect("it is only memory");
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(|y| line(y).trim_end().to_owned() + "\n").collect()
    }

    #[test]
    fn everything_is_on_a_small_terminal() {
        let screen = Screen::new(sample());
        expect![[r#"
            yard 0.1.0  policy max-min  round 1m  prices h100 1.50
            2 running  2 waiting  7 over  3/8 devices in use on 1 nodes
            ┌ nodes ───────────────────────────────────────────────────────────────────────┐
            │n1             up          h100 112·  busy z▃▅█  memory ▁▁▁                   │
            │n2             draining    h100 x·  busy ·▃  memory ·                         │
            └──────────────────────────────────────────────────────────────────────────────┘
             running: 2 ────────────────────────────────────────────────────────────────────
            job    name         user     state      gpus done time        where or why
            1      job-1        ada      running    2    40%  runs 2m     n1[0,1]
            2      job-2        bob      running    1    90%  runs 2m     n1[2]




             waiting: 2 ────────────────────────────────────────────────────────────────────
            job    name         user     state      gpus done time        where or why
            3      job-3        bob      pending    4         waits 3m    waits for 4 h100
            4      job-4        ada      suspended  2    10%  waits 3m




            job 1 job-1 is running
            ? help  q quit  j/k move  s sort (by number)  r reverse  c GPUs  m map
        "#]]
        .assert_eq(&drawn(&screen, 80, 24));
    }

    #[test]
    fn keys_and_signs_are_explained() {
        let mut screen = Screen::new(sample());
        screen.help = true;
        let drawn = drawn(&screen, 100, 24);
        assert!(drawn.contains("sort jobs by") && drawn.contains("out of service"), "{drawn}");
        assert!(!drawn.contains("job-1"), "{drawn}");
    }

    #[test]
    fn others_jobs_are_counted_and_ones_own_as_they_are_listed() {
        let mut look = sample();
        (look.hidden, look.status.pending, look.status.running) = (3, 40, 50);
        let drawn = drawn(&Screen::new(look), 80, 24);
        assert!(drawn.contains("2 running  2 waiting  3 of other users"), "{drawn}");
    }

    #[test]
    fn each_card_may_have_a_line() {
        let mut screen = Screen::new(sample());
        screen.show(Panel::Cards);
        let drawn: Vec<String> = drawn(&screen, 110, 30).lines().skip(2).take(8).map(str::to_owned).collect();
        expect![[r#"
            ┌ GPUs ──────────────────────────────────────────────────────────────────────────────────────────────────────┐
            │n1             h100:0   ░░░░░░░░░░   0%  █░░░░░░░░░ 8.0/80 GiB  30°C       job 1    not used by job 1       │
            │n1             h100:1   ███░░░░░░░  30%  █░░░░░░░░░ 8.0/80 GiB  31°C       job 1                            │
            │n1             h100:2   ██████░░░░  60%  █░░░░░░░░░ 8.0/80 GiB  32°C       job 2                            │
            │n1             h100:3   █████████░  90%  ░░░░░░░░░░ 0.0/80 GiB  33°C                                        │
            │n2             h100:0   ··········       ·········· 80 GiB      30°C                lost                    │
            │n2             h100:1   ███░░░░░░░  30%  ░░░░░░░░░░ 0.0/80 GiB  31°C                                        │
            └────────────────────────────────────────────────────────────────────────────────────────────────────────────┘"#]].assert_eq(&drawn.join("\n"));
    }

    #[test]
    fn a_server_that_is_away_is_told_of() {
        let mut screen = Screen::new(sample());
        screen.update(Err("no server answers at http://127.0.0.1:7411".into()));
        let drawn = drawn(&screen, 80, 24);
        assert!(drawn.contains("no server answers") && drawn.contains("job-3"), "{drawn}");
    }

    #[test]
    fn no_size_is_too_small_and_no_cluster_too_large() {
        let mut look = sample();
        look.nodes = vec![look.nodes[0].clone(); 5000];
        look.nodes[0].devices = vec![look.nodes[0].devices[0].clone(); 64];
        let screen = Screen::new(look);
        for (width, height) in [(1, 1), (10, 3), (80, 5), (20, 50), (300, 100)] {
            drawn(&screen, width, height);
        }
        assert!(drawn(&screen, 80, 24).contains("nodes (4994 more)"));
        let mut screen = screen;
        screen.show(Panel::Map);
        for (width, height) in [(1, 1), (10, 3), (80, 24), (300, 100)] {
            drawn(&screen, width, height);
        }
        assert!(drawn(&screen, 80, 24).contains("devices ("));
    }

    #[test]
    fn nothing_is_a_cluster_too() {
        let mut look = sample();
        (look.nodes, look.jobs) = (Vec::new(), Vec::new());
        assert!(drawn(&Screen::new(look), 80, 24).contains("no jobs; try"));
    }
}
