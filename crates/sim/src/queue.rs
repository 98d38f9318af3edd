//! What is going to happen, in order of (time, sequence): at equal times, first asked comes first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use yard_core::Time;

/// A queue of things to come.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    heap: BinaryHeap<Reverse<Item<T>>>,
    /// What was asked for at the instant at which it happens, in order: most of all where nothing takes time.
    at_once: VecDeque<Item<T>>,
    now: Time,
    sequence: u64,
}

/// A place in the order of things that come at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueueTurn(u64);

#[derive(Debug)]
struct Item<T> {
    time: Time,
    turn: QueueTurn,
    what: T,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Queue<T> {
        Queue { heap: BinaryHeap::new(), at_once: VecDeque::new(), now: Time::ZERO, sequence: 0 }
    }

    pub(crate) fn push(&mut self, time: Time, what: T) {
        let item = Item { time, turn: self.turn(), what };
        if time == self.now && self.at_once.back().is_none_or(|last| last.time == time) {
            self.at_once.push_back(item);
        } else {
            self.heap.push(Reverse(item));
        }
    }

    /// The next place in the order, for what may be asked for later.
    pub(crate) fn turn(&mut self) -> QueueTurn {
        self.sequence += 1;
        QueueTurn(self.sequence)
    }

    /// Asks for something in a place that was taken before.
    pub(crate) fn push_in_turn(&mut self, time: Time, turn: QueueTurn, what: T) {
        self.heap.push(Reverse(Item { time, turn, what }));
    }

    /// When the next thing happens.
    pub(crate) fn time(&self) -> Option<Time> {
        self.next_in_heap().into_iter().chain(self.at_once.front()).map(|item| item.time).min()
    }

    fn next_in_heap(&self) -> Option<&Item<T>> {
        self.heap.peek().map(|Reverse(item)| item)
    }

    /// The next thing and its turn, if it happens at `now` or before.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<(QueueTurn, T)> {
        self.now = now;
        let item = match (self.next_in_heap(), self.at_once.front()) {
            (Some(later), Some(soon)) if later.time <= now && later < soon => self.pop_heap(),
            (Some(later), None) if later.time <= now => self.pop_heap(),
            (_, Some(soon)) if soon.time <= now => self.at_once.pop_front(),
            _ => None,
        };
        item.map(|item| (item.turn, item.what))
    }

    fn pop_heap(&mut self) -> Option<Item<T>> {
        self.heap.pop().map(|Reverse(item)| item)
    }
}

impl<T> Item<T> {
    fn key(&self) -> (Time, QueueTurn) {
        (self.time, self.turn)
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

    fn next(queue: &mut Queue<char>, now: u64) -> Option<char> {
        queue.pop_due(Time(now)).map(|(_, what)| what)
    }

    #[test]
    fn equal_times_come_in_the_order_asked() {
        let mut queue = Queue::new();
        for (time, what) in [(5, 'b'), (3, 'a'), (5, 'c')] {
            queue.push(Time(time), what);
        }
        assert_eq!(next(&mut queue, 4), Some('a'));
        assert_eq!(next(&mut queue, 4), None);
        // What is asked for at once comes after what was asked for before, and a turn that was taken is kept.
        queue.push(Time(5), 'd');
        let turn = queue.turn();
        queue.push(Time(5), 'f');
        assert_eq!(next(&mut queue, 5), Some('b'));
        queue.push(Time(5), 'g');
        queue.push_in_turn(Time(5), turn, 'e');
        let rest: String = std::iter::from_fn(|| next(&mut queue, 5)).collect();
        assert_eq!((rest.as_str(), queue.time()), ("cdefg", None));
    }
}
