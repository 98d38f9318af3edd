//! How much memory a request takes while its job is not over, for the sum of what one user may have.

use super::JobRequest;

/// What a text costs beside its bytes: its header, and the least that is allocated.
const TEXT: usize = 56;
/// What a request costs beside its texts.
const REQUEST: usize = 1_024;

impl JobRequest {
    /// About how many bytes it takes in memory.
    pub fn footprint(&self) -> usize {
        let texts = self.command.iter().chain(&self.kinds).chain(self.env.keys()).chain(self.env.values());
        let texts = texts.chain(self.secrets.keys()).map(|text| text.len() + TEXT);
        let paths = [&self.workdir, &self.checkpoint.dir].into_iter().flatten();
        let paths = paths.map(|path| path.as_os_str().len());
        let others = [&self.name, &self.tenant, &self.model, &self.output, &self.error];
        let words = [&self.affinity, &self.anti_affinity, &self.exclusion, &self.checkpoint.signal];
        let others = others.into_iter().chain(words).flatten().map(String::len);
        let after = self.after.len() * size_of::<u64>();
        REQUEST + after + texts.chain(paths).chain(others).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_short_words_cost_more_than_one_long_one() {
        let long = JobRequest { command: vec!["x".repeat(1_000)], ..JobRequest::default() };
        let short = JobRequest { command: vec!["x".into(); 1_000], ..JobRequest::default() };
        assert!(long.footprint() >= 1_000 + REQUEST);
        assert!(short.footprint() > 10 * long.footprint());
    }
}
