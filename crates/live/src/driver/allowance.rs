//! How much a user may have promised: devices that are kept for deadlines are kept from everybody else, so a user who
//! names long lengths and near deadlines would have the cluster. Beyond the allowance a deadline is only aimed at.

use std::sync::Arc;

use yard_core::job::{JobSpec, Late};

use super::Driver;
use crate::handle::{Refusal, Who};
use crate::request::JobRequest;

impl Driver {
    /// Leaves a job's deadline without a promise where its user has been promised enough, or refuses the job where it
    /// insists on one. Admins have no limit.
    pub(super) fn within_allowance(
        &self,
        who: &Who,
        request: &JobRequest,
        mut spec: JobSpec,
    ) -> Result<JobSpec, Refusal> {
        let (wants, most) = (hours(request), self.config.limits.promised_hours_per_user);
        if who.admin || wants == 0.0 || !self.engine.settings().promises {
            return Ok(spec);
        }
        let has = self.promised_hours(&who.user);
        if has + wants <= most {
            return Ok(spec);
        }
        if request.late == Some(Late::Refuse) {
            return Err(Refusal::TooMany(format!(
                "{} has {has:.1} of at most {most:.0} device-hours promised, and this job needs {wants:.1}; \
                 leave out late: refuse, or ask an admin to raise --user-promised-max",
                who.user
            )));
        }
        spec.rewards = Some(Arc::from([]));
        Ok(spec)
    }

    /// Device-hours that a user's jobs were promised, or will be with what is being submitted.
    fn promised_hours(&self, user: &str) -> f64 {
        let promised = self.records.all.values().filter(|record| record.view.promise.is_some());
        let own = promised.filter(|record| record.view.user == user).map(|record| hours(&record.request));
        own.sum::<f64>() + self.staged.requests_of(user).map(hours).sum::<f64>()
    }
}

/// Device-hours that a promise would keep for a job; 0 where it could have none.
fn hours(request: &JobRequest) -> f64 {
    let seconds = request.duration_s.or(request.time_limit_s).filter(|_| request.deadline.is_some());
    let devices = request.gpus.or(request.min_gpus).unwrap_or(1).max(1);
    seconds.map_or(0.0, |seconds| seconds * f64::from(devices) / 3_600.0)
}
