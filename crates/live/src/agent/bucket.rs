//! A token bucket: so many a second, and so many at once after a silence. Who is faster waits; nothing is dropped.

use std::time::Duration;

use tokio::time::Instant;

/// A bucket.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    /// How long one token takes to come.
    every: Duration,
    /// How long a full bucket takes to fill.
    depth: Duration,
    /// When the bucket would be full if nothing more was taken.
    full: Instant,
}

impl TokenBucket {
    /// A full one.
    pub(crate) fn new(a_second: u32, at_once: u32) -> TokenBucket {
        let every = Duration::from_secs(1) / a_second.max(1);
        TokenBucket { every, depth: every * at_once.max(1), full: Instant::now() }
    }

    /// Takes a token, once there is one.
    pub(crate) async fn take(&mut self) {
        let wait = self.take_at(Instant::now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// Takes the next token; how long it is until then.
    fn take_at(&mut self, now: Instant) -> Duration {
        self.full = self.full.max(now) + self.every;
        self.full.saturating_duration_since(now).saturating_sub(self.depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_then_each_waits() {
        let mut bucket = TokenBucket::new(200, 400);
        let began = bucket.full;
        assert!((0..400).all(|_| bucket.take_at(began).is_zero()));
        let waits: Vec<_> = (0..200).map(|_| bucket.take_at(began)).collect();
        assert_eq!((waits[0], waits[199]), (Duration::from_millis(5), Duration::from_secs(1)));
        // A silence fills it, and no more than that.
        let later = began + Duration::from_secs(60);
        assert!((0..400).all(|_| bucket.take_at(later).is_zero()));
        assert_eq!(bucket.take_at(later), Duration::from_millis(5));
    }
}
