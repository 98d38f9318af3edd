//! Long lists, a page at a time: the server gives so many at once and says whether there are more.

use yard_live::views::{JobList, JobView};

use super::{Answer, Client};

/// Jobs that are asked for at once.
const PAGE: u64 = 5_000;

/// Which jobs, as the server understands it.
#[derive(Clone, Debug, Default)]
pub(crate) struct WhichJobs {
    /// Only those of the user who asks.
    pub(crate) mine: bool,
    /// Also those that are over.
    pub(crate) all: bool,
    /// Only in this state.
    pub(crate) state: Option<String>,
    /// Only this user's.
    pub(crate) user: Option<String>,
    /// Only with a name like this.
    pub(crate) name: Option<String>,
    /// Only with lower numbers.
    pub(crate) before: Option<u64>,
    /// At most so many, the newest; without it all.
    pub(crate) limit: Option<u64>,
}

impl WhichJobs {
    /// Whose jobs are meant: `me` is the user who asks.
    pub(crate) fn of_user(self, user: Option<&str>) -> WhichJobs {
        match user {
            Some("me") => WhichJobs { mine: true, ..self },
            user => WhichJobs { user: user.map(str::to_owned), ..self },
        }
    }

    fn query(&self, before: Option<u64>, limit: u64) -> Vec<(&'static str, String)> {
        let yes = |name, given: bool| given.then(|| (name, "true".to_owned()));
        let text = |name, value: &Option<String>| value.clone().map(|value| (name, value));
        let fields = [
            yes("mine", self.mine),
            yes("all", self.all),
            text("state", &self.state),
            text("user", &self.user),
            text("name", &self.name),
            before.map(|id| ("before", id.to_string())),
            Some(("limit", limit.to_string())),
        ];
        fields.into_iter().flatten().collect()
    }
}

impl Client {
    /// Jobs, the newest last. A job that changes between two pages is listed once.
    pub(crate) fn jobs(&self, which: &WhichJobs) -> Answer<JobList> {
        let mut pages: Vec<Vec<JobView>> = Vec::new();
        let (mut before, mut left) = (which.before, which.limit.unwrap_or(u64::MAX));
        loop {
            let page: JobList = self.get("/v1/jobs", &which.query(before, left.min(PAGE)))?;
            let (more, hidden) = (page.more, page.hidden);
            left = left.saturating_sub(page.jobs.len() as u64);
            // A server that says that there are more and gives none would be asked for ever.
            let goes_on = more && left > 0 && !page.jobs.is_empty();
            before = page.jobs.first().map(|job| job.id);
            pages.push(page.jobs);
            if !goes_on {
                let jobs = pages.into_iter().rev().flatten().collect();
                return Ok(JobList { jobs, more, hidden });
            }
        }
    }
}
