//! `yard top`: a screen with nodes, devices and jobs that is always up to date. A thread asks the server, so that
//! keys are answered at once; the terminal is put right again however it ends.

mod cards;
mod draw;
mod feed;
mod map;
mod screen;

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::ensure;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::client::{Client, ServerArgs};
use crate::clock;
use screen::{Panel, Screen};

/// How long to wait for a key before looking whether there is news.
const PATIENCE: Duration = Duration::from_millis(100);

/// Which server.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  yard top\n  yard top --server https://head:7411\n\nKeys: ? help, q or Esc quit, j/k or arrows move, s sort, r reverse, c list of GPUs, m map of all devices."
)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) fn run(args: &TopArgs) -> anyhow::Result<()> {
    let client = Client::new(&args.server)?;
    ensure!(
        std::io::stdout().is_terminal() && std::io::stdin().is_terminal(),
        "yard top needs a terminal; yard jobs --watch does not"
    );
    // Whoever has no server or no token should read why, on a terminal that was not touched.
    let first = feed::look(&client)?;
    let stop = stop_by_signal()?;
    let news = feed::start(client);
    let mut terminal = ratatui::try_init()?;
    let done = show(&mut terminal, Screen::new(first), &news, &stop);
    ratatui::restore();
    done
}

fn show(
    terminal: &mut DefaultTerminal,
    mut screen: Screen,
    news: &feed::FeedNews,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        news.try_iter().for_each(|look| screen.update(look));
        let now = clock::seconds_now();
        terminal.draw(|frame| draw::draw(&screen, now, frame))?;
        if event::poll(PATIENCE)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
            && is_quit(&mut screen, key)
        {
            return Ok(());
        }
    }
    Ok(())
}

/// What a key does; whether that is to quit.
fn is_quit(screen: &mut Screen, key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Char('?' | 'h') => screen.help = !screen.help,
        KeyCode::Esc if screen.help => screen.help = false,
        KeyCode::Char('q') | KeyCode::Esc => return true,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return true,
        KeyCode::Char('j') | KeyCode::Down => screen.go(1),
        KeyCode::Char('k') | KeyCode::Up => screen.go(-1),
        KeyCode::Char('s') => screen.sort(),
        KeyCode::Char('r') => screen.turn(),
        KeyCode::Char('c') => screen.show(Panel::Cards),
        KeyCode::Char('m') => screen.show(Panel::Map),
        _ => {}
    }
    false
}

/// Becomes true when the system asks us to end: the terminal must be put right first.
fn stop_by_signal() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut term, mut hang_up) = runtime.block_on(async {
        use tokio::signal::unix::{SignalKind, signal};
        anyhow::Ok((signal(SignalKind::terminate())?, signal(SignalKind::hangup())?))
    })?;
    let asked = Arc::clone(&stop);
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! { _ = term.recv() => (), _ = hang_up.recv() => () }
        });
        asked.store(true, Ordering::Relaxed);
    });
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_move_sort_and_quit() {
        let mut screen = Screen::new(screen::sample());
        let press = |screen: &mut Screen, code| is_quit(screen, KeyEvent::new(code, KeyModifiers::NONE));
        let first = screen.selected().map(|job| job.id);
        assert!(!press(&mut screen, KeyCode::Char('j')));
        assert_ne!(screen.selected().map(|job| job.id), first);
        assert!(!press(&mut screen, KeyCode::Up));
        assert_eq!(screen.selected().map(|job| job.id), first);
        assert!(!press(&mut screen, KeyCode::Char('c')) && screen.panel == Panel::Cards);
        assert!(!press(&mut screen, KeyCode::Char('m')) && screen.panel == Panel::Map);
        assert!(!press(&mut screen, KeyCode::Char('m')) && screen.panel == Panel::Nodes);
        assert!(!press(&mut screen, KeyCode::Char('?')) && screen.help);
        assert!(!press(&mut screen, KeyCode::Esc) && !screen.help, "Esc closes the help first");
        assert!(press(&mut screen, KeyCode::Char('q')) && press(&mut screen, KeyCode::Esc));
        assert!(is_quit(&mut screen, KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    }
}
