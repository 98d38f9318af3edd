//! Complaints that a job could cause as often as it likes: one goes to the log now and then, with how many there were.

use std::time::Duration;

use tokio::time::Instant;

/// How often at most.
const EVERY: Duration = Duration::from_secs(10);

/// What keeps a log small.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    last: Option<Instant>,
    times: u64,
}

impl Seldom {
    /// Says it, with how many times it was to be said since it last was, unless that was just now.
    pub(crate) fn say(&mut self, say: impl FnOnce(u64)) {
        self.times += 1;
        if self.last.is_none_or(|last| last.elapsed() >= EVERY) {
            say(std::mem::take(&mut self.times));
            self.last = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_the_first_and_counts_the_others() {
        let (mut seldom, mut said) = (Seldom::default(), Vec::new());
        (0..5).for_each(|_| seldom.say(|times| said.push(times)));
        assert_eq!(said, [1]);
        seldom.last = seldom.last.and_then(|last| last.checked_sub(EVERY));
        seldom.say(|times| said.push(times));
        assert_eq!(said, [1, 5]);
    }
}
