//! Slurm's durations: `[days-]hours:minutes:seconds`, or `minutes:seconds`, perhaps with a fraction.

/// The seconds of a duration; none where the text is no duration.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (days.parse::<u32>().ok()?, rest),
        None => (0, text),
    };
    let mut fields = rest.rsplit(':');
    let last = fields.next()?.parse::<f64>().ok().filter(|seconds| (0.0..61.0).contains(seconds))?;
    let minutes = fields.next()?.parse::<u32>().ok()?;
    let hours = fields.next().map_or(Some(0), |hours| hours.parse::<u32>().ok())?;
    let whole = f64::from(days) * 86_400.0 + f64::from(hours) * 3_600.0 + f64::from(minutes) * 60.0;
    fields.next().is_none().then_some(whole + last)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn durations_as_slurm_prints_them() {
        for (text, expected) in [
            ("00:00:00", Some(0.0)),
            ("01:02:03", Some(3723.0)),
            ("2-00:00:01", Some(172_801.0)),
            ("05:07", Some(307.0)),
            ("05:07.250", Some(307.25)),
            ("1-2-3:00:00", None),
            ("01:02:03:04", None),
            ("-1:00", None),
            ("01:75", None),
            ("12", None),
            ("", None),
        ] {
            assert_eq!(seconds(text), expected, "{text:?}");
        }
    }
}
