//! Freezing and thawing the processes of a part together: all are locked before any is moved, so that none waits for
//! another that is gone already, and all are moved back before any goes on.

use super::calls::{Calls, ProcessState};
use super::words::Failure;

/// Freezes them all and gives the host memory it took; where one fails, the others are thawed.
pub(super) fn freeze(calls: &dyn Calls, pids: &[i32]) -> Result<u64, Failure> {
    let pids = users(calls, pids)?;
    let before: Vec<(i32, u64)> = pids.iter().map(|pid| (*pid, fresh_memory(calls, *pid))).collect();
    let locked = each(calls, &pids, ProcessState::Running, |pid| calls.lock(pid));
    let moved = locked.and_then(|()| each(calls, &pids, ProcessState::Locked, |pid| calls.checkpoint(pid)));
    if let Err(failure) = moved {
        return Err(match thaw(calls, &pids) {
            Ok(()) => failure,
            Err(stays) => {
                Failure { reason: format!("{}; and then {}", failure.reason, stays.reason), ..failure }
            }
        });
    }
    let grown = before.into_iter().map(|(pid, before)| calls.memory(pid).saturating_sub(before));
    Ok(grown.sum())
}

/// Thaws them all.
pub(super) fn thaw(calls: &dyn Calls, pids: &[i32]) -> Result<(), Failure> {
    let pids = users(calls, pids)?;
    each(calls, &pids, ProcessState::Checkpointed, |pid| calls.restore(pid))?;
    each(calls, &pids, ProcessState::Locked, |pid| calls.unlock(pid))
}

/// Does this to all that are in this state. The others need it no more; whoever dies meanwhile needs nothing.
fn each(
    calls: &dyn Calls,
    pids: &[i32],
    from: ProcessState,
    call: impl Fn(i32) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for pid in pids {
        if calls.state(*pid)? != Some(from) {
            continue;
        }
        if let Err(failure) = call(*pid)
            && calls.state(*pid)?.is_some()
        {
            return Err(failure);
        }
    }
    Ok(())
}

/// Those that use cards.
fn users(calls: &dyn Calls, pids: &[i32]) -> Result<Vec<i32>, Failure> {
    let mut users = Vec::new();
    for pid in pids {
        match calls.state(*pid)? {
            Some(ProcessState::Failed) => {
                let reason = format!("the driver has given process {pid} up");
                return Err(Failure { reason, forever: true });
            }
            Some(_) => users.push(*pid),
            None => {}
        }
    }
    Ok(users)
}

/// What a process holds before it is frozen. Of one that a freezer before this one froze, nobody knows.
fn fresh_memory(calls: &dyn Calls, pid: i32) -> u64 {
    match calls.state(pid) {
        Ok(Some(ProcessState::Checkpointed)) => 0,
        _ => calls.memory(pid),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use proptest::prelude::*;

    use super::*;

    /// A driver that fails at one of its calls, for one or for ever, and may lose a process at another.
    #[derive(Default)]
    struct ScriptedMoves {
        states: Mutex<BTreeMap<i32, ProcessState>>,
        calls: Mutex<u32>,
        fails_at: Option<u32>,
        dies_at: Option<u32>,
    }

    impl ScriptedMoves {
        fn new(states: &[ProcessState], fails_at: Option<u32>, dies_at: Option<u32>) -> ScriptedMoves {
            let states = (1..).zip(states.iter().copied()).collect();
            ScriptedMoves { states: Mutex::new(states), fails_at, dies_at, ..ScriptedMoves::default() }
        }

        fn change(&self, pid: i32, from: ProcessState, to: ProcessState) -> Result<(), Failure> {
            let mut calls = self.calls.lock().unwrap();
            *calls += 1;
            let mut states = self.states.lock().unwrap();
            if self.dies_at == Some(*calls) {
                states.remove(&pid);
            }
            let failure = |reason: &str| Err(Failure { reason: reason.into(), forever: false });
            if self.fails_at == Some(*calls) || self.dies_at == Some(*calls) {
                return failure("scripted");
            }
            assert_eq!(states.insert(pid, to), Some(from), "process {pid} is not where it should be");
            Ok(())
        }

        fn all(&self) -> Vec<ProcessState> {
            self.states.lock().unwrap().values().copied().collect()
        }
    }

    impl Calls for ScriptedMoves {
        fn state(&self, pid: i32) -> Result<Option<ProcessState>, Failure> {
            Ok(self.states.lock().unwrap().get(&pid).copied())
        }
        fn lock(&self, pid: i32) -> Result<(), Failure> {
            self.change(pid, ProcessState::Running, ProcessState::Locked)
        }
        fn checkpoint(&self, pid: i32) -> Result<(), Failure> {
            let locked = |state: &ProcessState| *state != ProcessState::Running;
            assert!(self.all().iter().all(locked), "all are locked before any is moved");
            self.change(pid, ProcessState::Locked, ProcessState::Checkpointed)
        }
        fn restore(&self, pid: i32) -> Result<(), Failure> {
            self.change(pid, ProcessState::Checkpointed, ProcessState::Locked)
        }
        fn unlock(&self, pid: i32) -> Result<(), Failure> {
            assert!(
                !self.all().contains(&ProcessState::Checkpointed),
                "all are moved back before any goes on"
            );
            self.change(pid, ProcessState::Locked, ProcessState::Running)
        }
        fn memory(&self, pid: i32) -> u64 {
            let there = self.states.lock().unwrap().get(&pid).copied();
            if there == Some(ProcessState::Checkpointed) { 110 } else { 10 }
        }
    }

    const PIDS: [i32; 5] = [1, 2, 3, 4, 99];

    proptest! {
        /// Wherever a call fails, a process dies, or an earlier freezer stopped: all are frozen or all run.
        #[test]
        fn all_or_none(
            states in prop::collection::vec(
                prop::sample::select(&[ProcessState::Running, ProcessState::Locked, ProcessState::Checkpointed][..]), 1..4),
            fails_at in prop::option::of(1u32..9),
            dies_at in prop::option::of(1u32..9),
        ) {
            // Whoever has been moved was locked with all the others first.
            let moved = states.contains(&ProcessState::Checkpointed);
            prop_assume!(!(moved && states.contains(&ProcessState::Running)));
            let driver = ScriptedMoves::new(&states, fails_at, dies_at);
            match freeze(&driver, &PIDS) {
                Ok(_) => prop_assert!(driver.all().iter().all(|state| *state == ProcessState::Checkpointed)),
                Err(_) => prop_assert!(driver.all().iter().all(|state| *state == ProcessState::Running),
                    "{states:?} became {:?}", driver.all()),
            }
        }
    }

    #[test]
    fn memory_is_what_it_grew_by_and_strangers_are_left_alone() {
        let driver = ScriptedMoves::new(&[ProcessState::Running, ProcessState::Running], None, None);
        assert_eq!(freeze(&driver, &PIDS), Ok(200));
        assert_eq!(freeze(&driver, &PIDS), Ok(220), "of what was frozen before, all is counted");
        assert_eq!(thaw(&driver, &PIDS), Ok(()));
        assert_eq!(thaw(&driver, &PIDS), Ok(()));
        assert_eq!(driver.all(), [ProcessState::Running, ProcessState::Running]);
        assert_eq!(freeze(&driver, &[98]), Ok(0), "it uses no card");
    }

    #[test]
    fn a_thaw_that_fails_can_be_tried_again() {
        let driver =
            ScriptedMoves::new(&[ProcessState::Checkpointed, ProcessState::Checkpointed], Some(2), None);
        assert!(thaw(&driver, &PIDS).is_err());
        assert_eq!(thaw(&driver, &PIDS), Ok(()));
    }

    #[test]
    fn a_process_that_the_driver_gave_up_is_given_up_for_ever() {
        let driver = ScriptedMoves::new(&[ProcessState::Running, ProcessState::Failed], None, None);
        assert!(freeze(&driver, &PIDS).is_err_and(|failure| failure.forever));
        assert_eq!(driver.all(), [ProcessState::Running, ProcessState::Failed]);
    }
}
