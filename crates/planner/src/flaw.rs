//! What is wrong with an input, as one sentence for the user.

/// A field that makes no sense, why, and what to write instead. Whoever read the file puts its name in front.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}; {remedy}")]
pub struct Flaw {
    /// The field as the user wrote it.
    pub field: String,
    /// What is wrong with its value.
    pub problem: String,
    /// What would be right.
    pub remedy: String,
}

impl Flaw {
    /// A flaw of a field.
    pub fn new(field: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> Flaw {
        Flaw { field: field.into(), problem: problem.into(), remedy: remedy.into() }
    }
}

/// Fails where a number that has to be above zero is not.
pub(crate) fn positive(field: &str, value: f64, remedy: &str) -> Result<(), Flaw> {
    if value > 0.0 && value.is_finite() {
        return Ok(());
    }
    Err(Flaw::new(field, format!("{value} is not above 0"), remedy))
}
