//! What the scheduler is told of how long jobs are. The truth stays the truth.

use std::fmt;
use std::str::FromStr;

use yard_core::job::{JobSpec, Length};

use crate::estimates::misjudged;

/// Work of a job of which nobody says how long it takes, in seconds: as the live server has it.
const DURATION_S: f64 = 3_600.0;

/// What is told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ToldLengths {
    /// The truth.
    #[default]
    Known,
    /// Nothing; what is known is how long all jobs were that ended before.
    Unknown,
    /// Nothing; what is known is how long jobs of the same user, name and size were that ended before.
    Predicted,
    /// Up to so many times too much or too little.
    Noisy(f64),
}

impl ToldLengths {
    /// How the scheduler knows lengths.
    pub fn length(self) -> Length {
        match self {
            ToldLengths::Known | ToldLengths::Noisy(_) => Length::Stated,
            ToldLengths::Unknown => Length::Unknown,
            ToldLengths::Predicted => Length::Predicted,
        }
    }

    /// The steps that each job says it has to do; none where it says the truth.
    pub fn said(self, jobs: &[JobSpec], seed: u64) -> Option<Vec<f64>> {
        match self {
            ToldLengths::Known => None,
            ToldLengths::Noisy(most) => Some(misjudged(jobs, most, seed)),
            ToldLengths::Unknown | ToldLengths::Predicted => {
                let fastest = |job: &JobSpec| job.usable().next().map_or(1.0, |way| job.speeds[way as usize]);
                Some(jobs.iter().map(|job| DURATION_S * fastest(job)).collect())
            }
        }
    }
}

impl fmt::Display for ToldLengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToldLengths::Known => write!(f, "known"),
            ToldLengths::Unknown => write!(f, "unknown"),
            ToldLengths::Predicted => write!(f, "predicted"),
            ToldLengths::Noisy(most) => write!(f, "noisy:{most}"),
        }
    }
}

impl FromStr for ToldLengths {
    type Err = String;

    fn from_str(text: &str) -> Result<ToldLengths, String> {
        match text.split_once(':') {
            None if text == "known" => Ok(ToldLengths::Known),
            None if text == "unknown" => Ok(ToldLengths::Unknown),
            None if text == "predicted" => Ok(ToldLengths::Predicted),
            Some(("noisy", most)) => match most.parse::<f64>() {
                Ok(most) if (1.0..=1e6).contains(&most) => Ok(ToldLengths::Noisy(most)),
                _ => Err(format!("{most:?} is not a factor of 1 or more, as in noisy:3")),
            },
            _ => Err(format!("{text:?} is none of known, unknown, predicted and noisy:FACTOR")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        for word in ["known", "unknown", "predicted", "noisy:3", "noisy:1.5"] {
            assert_eq!(word.parse::<ToldLengths>().map(|read| read.to_string()), Ok(word.to_owned()));
        }
        for word in ["noisy", "noisy:0.5", "noisy:x", "noisy:nan", "guess", ""] {
            assert!(word.parse::<ToldLengths>().is_err(), "{word}");
        }
    }
}
