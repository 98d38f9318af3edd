//! Whether there is room for another job: how many there may be that are not over, and how large what was submitted
//! may be, of one user and of all. Restored with the jobs after a restart.

use super::Driver;
use crate::handle::Refusal;
use crate::request::JobRequest;

impl Driver {
    pub(super) fn room_for(&self, user: &str, request: &JobRequest) -> Result<(), Refusal> {
        let (limits, staged, bytes) = (&self.config.limits, self.staged.submissions(), request.footprint());
        if self.records.all.len() + staged.jobs >= limits.jobs {
            let most = limits.jobs;
            return Err(Refusal::Unavailable(format!(
                "{most} jobs are waiting or running, the maximum of this \
            server; try again later"
            )));
        }
        if self.records.bytes() + staged.bytes + bytes > limits.bytes {
            let most = limits.bytes;
            let message = format!(
                "waiting and running jobs use {most} bytes of memory, the maximum of this server; try \
                again later"
            );
            return Err(Refusal::Unavailable(message));
        }
        let mut own = self.records.of_user(user);
        let fits = own.jobs + staged.jobs < limits.jobs_per_user
            && own.bytes + staged.bytes + bytes <= limits.bytes_per_user;
        if fits {
            return Ok(());
        }
        // Close to the limit it matters whose the staged ones are.
        let staged = self.staged.submissions_of(user);
        (own.jobs, own.bytes) = (own.jobs + staged.jobs, own.bytes + staged.bytes);
        if own.jobs >= limits.jobs_per_user {
            let (has, most) = (own.jobs, limits.jobs_per_user);
            return Err(Refusal::TooMany(format!(
                "{user} has {has} waiting and running jobs, and may have {most}; cancel some, wait, or ask an \
                 admin to raise --user-jobs-max"
            )));
        }
        if own.bytes + bytes > limits.bytes_per_user {
            let (has, most) = (own.bytes, limits.bytes_per_user);
            return Err(Refusal::TooMany(format!(
                "the waiting and running jobs of {user} use {has} of at most {most} bytes, and this one needs \
                 {bytes}; cancel some, wait, put long commands into files, or ask an admin to raise --user-bytes-max"
            )));
        }
        Ok(())
    }
}
