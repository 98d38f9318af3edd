//! What is going to happen, in order of (time, sequence): at equal times, first asked comes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use yard_core::Time;

/// A queue of things to come.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    heap: BinaryHeap<Reverse<Item<T>>>,
    sequence: u64,
}

#[derive(Debug)]
struct Item<T> {
    time: Time,
    sequence: u64,
    what: T,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Queue<T> {
        Queue { heap: BinaryHeap::new(), sequence: 0 }
    }

    pub(crate) fn push(&mut self, time: Time, what: T) {
        self.heap.push(Reverse(Item { time, sequence: self.sequence, what }));
        self.sequence += 1;
    }

    /// When the next thing happens.
    pub(crate) fn time(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(item)| item.time)
    }

    /// The next thing, if it happens at `now` or before.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<T> {
        if self.time()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(item)| item.what)
    }
}

impl<T> Item<T> {
    fn key(&self) -> (Time, u64) {
        (self.time, self.sequence)
    }
}

impl<T> PartialEq for Item<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Item<T> {}

impl<T> PartialOrd for Item<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Item<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_come_in_the_order_asked() {
        let mut queue = Queue::new();
        for (time, what) in [(5, 'b'), (3, 'a'), (5, 'c')] {
            queue.push(Time(time), what);
        }
        assert_eq!(queue.pop_due(Time(4)), Some('a'));
        assert_eq!(queue.pop_due(Time(4)), None);
        assert_eq!((queue.pop_due(Time(5)), queue.pop_due(Time(5))), (Some('b'), Some('c')));
    }
}
