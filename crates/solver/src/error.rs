//! Why a general solver has no answer.

use thiserror::Error;

/// Why there is no answer, and what the caller can do.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SolveError {
    /// No point meets all rows: loosen one, or leave it out and say so.
    #[error("no point meets all demands")]
    Infeasible,
    /// The objective has no end: a row or a bound is missing.
    #[error("the objective has no bound")]
    Unbounded,
    /// The work allowed is used up before an answer: allow more, or keep the last plan.
    #[error("the limit of work was reached before an answer")]
    Limit,
    /// The method broke down: rescale, or keep the last plan.
    #[error("numerical failure: {0}")]
    Numerical(String),
    /// A number in the input is not finite.
    #[error("{what} {at}: not a finite number")]
    NotANumber {
        /// What holds it.
        what: &'static str,
        /// Which of them.
        at: usize,
    },
    /// A row names a variable that was never added.
    #[error("row {row}: names a variable that does not exist")]
    NoSuchVariable {
        /// The row.
        row: usize,
    },
    /// A cone has the wrong number of expressions, or a power outside (0, 1).
    #[error("cone {cone}: does not take {size} expressions with these parameters")]
    ConeSize {
        /// The cone, in the order of adding.
        cone: usize,
        /// How many expressions it was given.
        size: usize,
    },
    /// A column of the input has another length than the rest.
    #[error("{what}: {is} entries where {wanted} are wanted")]
    Length {
        /// Which column.
        what: &'static str,
        /// Its length.
        is: usize,
        /// The length of the rest.
        wanted: usize,
    },
}
