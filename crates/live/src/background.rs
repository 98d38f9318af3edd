//! Threads whose work can wait: forecasts and questions. Scheduling is not to wait for them: where both want the same
//! processor, the system gives them a tenth of it.

use tokio::sync::oneshot;

use crate::handle::Refusal;

/// Weighs about a tenth of what other threads do; 19, the lowest, would starve on a machine that is busy with others.
const NICE: i32 = 10;

/// Has this thread give way to others from now on. A system that does not let it is no reason to stop.
pub fn give_way() {
    // On Linux this is about the calling thread alone, which may not take it back.
    if let Err(error) = rustix::process::setpriority_process(None, NICE) {
        tracing::warn!(%error, "forecasts and questions run at the same priority as scheduling");
    }
}

/// Threads of this sort that may work at once: one processor is left to scheduling.
pub(crate) fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1).max(1))
}

/// Answers a question on a thread of its own, which gives way to all others and goes on if nobody waits any more.
pub(crate) async fn answered<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let (tells, told) = oneshot::channel();
    let work = move || {
        give_way();
        // Who asked may have gone.
        let _ = tells.send(work());
    };
    let started = std::thread::Builder::new().name("yard-what-if".into()).spawn(work);
    started
        .map_err(|error| Refusal::Unavailable(format!("cannot start a thread for the question: {error}")))?;
    let broken = || Refusal::Unavailable("the question could not be answered; see the server's log".into());
    told.await.unwrap_or_else(|_| Err(broken()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 19th number of proc_pid_stat(5), counted after the name.
    fn nice() -> Option<i32> {
        let text = std::fs::read_to_string("/proc/thread-self/stat").ok()?;
        text.rsplit_once(')')?.1.split_whitespace().nth(16)?.parse().ok()
    }

    #[test]
    fn only_the_thread_itself_gives_way() {
        let before = nice();
        let within = std::thread::spawn(|| {
            give_way();
            nice()
        });
        assert_eq!(within.join().unwrap(), Some(NICE));
        assert_eq!(nice(), before);
    }
}
