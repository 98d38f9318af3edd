//! A variable that the operator of an agent gives to all jobs: `NAME=VALUE`, or `NAME` for the agent's own value.

use std::str::FromStr;

use super::env::is_ours;

/// One variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobVariable {
    name: String,
    /// None: as the agent has it.
    value: Option<String>,
}

impl JobVariable {
    /// Its name and its value. `own` looks up the agent's.
    pub fn resolve(&self, own: impl Fn(&str) -> Option<String>) -> Result<(String, String), String> {
        let value = self.value.clone().or_else(|| own(&self.name));
        let missing = || {
            let name = &self.name;
            format!("--job-env {name}: it is not set here; set it, or give a value as {name}=VALUE")
        };
        Ok((self.name.clone(), value.ok_or_else(missing)?))
    }
}

impl FromStr for JobVariable {
    type Err = String;

    fn from_str(text: &str) -> Result<JobVariable, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(plain) {
            return Err(format!("{text:?} is not NAME=VALUE or NAME, such as HTTPS_PROXY"));
        }
        if is_ours(name) {
            return Err(format!(
                "{name} is set for each job; names that start with YARD_ or SLURM_ cannot be set here"
            ));
        }
        Ok(JobVariable { name: name.to_owned(), value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_has_a_value_or_takes_the_agents() {
        let own = |name: &str| (name == "PATH").then(|| "/opt/bin".to_owned());
        let resolve = |text: &str| text.parse::<JobVariable>().and_then(|variable| variable.resolve(own));
        assert_eq!(resolve("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert_eq!(resolve("A="), Ok(("A".into(), String::new())));
        assert_eq!(resolve("PATH"), Ok(("PATH".into(), "/opt/bin".into())));
        assert!(resolve("NOT_SET").unwrap_err().contains("NOT_SET=VALUE"));
        for wrong in ["", "=x", "A B=c", "YARD_TOKEN", "YARD_TOKEN=x", "SLURM_JOB_ID=1"] {
            assert!(resolve(wrong).is_err(), "{wrong}");
        }
    }
}
