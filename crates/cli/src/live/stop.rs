//! When somebody wants the process to stop: Ctrl-C, or what service managers send.

use tokio::signal::unix::{SignalKind, signal};

/// Waits for it. Without signal handlers, for ever: the default then ends the process.
pub(super) async fn asked() {
    let (Ok(mut interrupt), Ok(mut terminate)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}
