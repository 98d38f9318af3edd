//! Who a cluster runs jobs for: everybody, or one user alone where the backend cannot run others' jobs.

use super::Driver;
use crate::handle::Refusal;

impl Driver {
    /// Refuses jobs of users whom nobody here would run them for.
    pub(super) fn serves(&self, user: &str) -> Result<(), Refusal> {
        match &self.backend.abilities().only {
            Some(only) if only.user != user => Err(Refusal::Forbidden(format!(
                "This cluster runs only jobs of {}: {}",
                only.user, only.because
            ))),
            _ => Ok(()),
        }
    }
}
