//! What an agent and its freezer say to each other.

use serde::{Deserialize, Serialize};

/// From the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    /// Its number, for the answer.
    pub(super) id: u64,
    /// What is wanted.
    #[serde(flatten)]
    pub(super) what: FreezerWhat,
}

/// What is wanted. Each may be asked again: what is already so is not done twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FreezerWhat {
    /// Can anything be frozen here?
    Probe {},
    /// Move what these processes have on cards to the host's memory. All of them or none.
    Freeze {
        /// Those that use no card are left alone.
        pids: Vec<i32>,
    },
    /// Move it back.
    Thaw {
        /// The same.
        pids: Vec<i32>,
    },
}

/// From the freezer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct FreezerAnswer {
    /// Which request.
    pub(super) id: u64,
    /// How it went.
    pub(super) done: Result<Moved, Failure>,
}

/// What was moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Moved {
    /// Host memory that it takes.
    pub(crate) bytes: u64,
    /// How long it took.
    pub(crate) seconds: f64,
}

/// Why nothing was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failure {
    /// In half a sentence.
    pub(crate) reason: String,
    /// Whether it would fail again.
    pub(crate) forever: bool,
}

/// A message as a line.
pub(super) fn line<T: Serialize>(message: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("the freezer's words are plain data");
    line.push(b'\n');
    line
}
