//! Times as people write them: lengths such as `2h` or `1h30m`, Slurm's `1-12:00:00`, and moments such as `18:00`,
//! `6h` from now or `2026-11-20T18:00`. Nothing here reads a clock: now is an argument, and its zone is the user's.

use jiff::civil::{Date, DateTime, Time};
use jiff::{Span, Timestamp, ToSpan, Zoned};

/// The longest length of time that is believed: some thirty years.
const SECONDS_MAX: f64 = 1e9;

/// Numbers from here on are seconds since 1970, not lengths.
const EPOCH_MIN: f64 = 1e9;

/// A length of time in seconds: `90`, `90s`, `6m`, `1.5h`, `2d`, `1h30m`.
pub fn length(text: &str) -> Result<f64, String> {
    let wrong = || format!("{text:?} is not a length of time such as 90s, 6m, 2h, 1h30m or 2d");
    let mut rest = text.trim();
    let mut seconds = 0.0;
    if let Ok(plain) = rest.parse::<f64>() {
        return bounded(plain).ok_or_else(wrong);
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        seconds += number.parse::<f64>().map_err(|_| wrong())? * unit(&tail[..letters]).ok_or_else(wrong)?;
        rest = &tail[letters..];
    }
    bounded(seconds).ok_or_else(wrong)
}

fn bounded(seconds: f64) -> Option<f64> {
    (seconds > 0.0 && seconds <= SECONDS_MAX).then_some(seconds)
}

fn unit(name: &str) -> Option<f64> {
    Some(match name {
        "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    })
}

/// A length as Slurm writes it: `minutes`, `minutes:seconds`, `hours:minutes:seconds`, `days-hours[:minutes[:seconds]]`;
/// none for `UNLIMITED`.
pub fn slurm_length(text: &str) -> Result<Option<f64>, String> {
    if ["unlimited", "infinite", "-1"].contains(&text.to_ascii_lowercase().as_str()) {
        return Ok(None);
    }
    let wrong = || format!("{text:?} is not a time such as 90 (minutes), 12:00:00 or 1-12:00");
    let numbers =
        |text: &str| text.split(':').map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<_>>>();
    let (days, rest) = text.split_once('-').map_or((None, text), |(days, rest)| (Some(days), rest));
    let parts = numbers(rest).ok_or_else(wrong)?;
    let [h, m, s] = match (days, parts.as_slice()) {
        (None, &[m]) => [0, m, 0],
        (None, &[m, s]) => [0, m, s],
        (_, &[h, m, s]) => [h, m, s],
        (Some(_), &[h]) => [h, 0, 0],
        (Some(_), &[h, m]) => [h, m, 0],
        _ => return Err(wrong()),
    };
    let days = days.map_or(Ok(0), |days| days.parse::<u32>().map_err(|_| wrong()))?;
    let seconds = f64::from(days) * 86_400.0 + f64::from(h) * 3600.0 + f64::from(m) * 60.0 + f64::from(s);
    bounded(seconds).map(Some).ok_or_else(wrong)
}

/// A moment as seconds since 1970: `18:00` (the next time it is that late), `6h` (from now), `now+2hours`, `tomorrow`,
/// `2026-11-20`, `2026-11-20T18:00`, the same with a zone, or the seconds themselves.
pub fn moment(text: &str, now: &Zoned) -> Result<f64, String> {
    let text = text.trim();
    let wrong = || {
        format!(
            "{text:?} is not a time such as 18:00, 6h (from now), 2026-11-20T18:00 or 2026-11-20T18:00+01:00"
        )
    };
    if let Ok(number) = text.parse::<f64>() {
        let epoch = (EPOCH_MIN..=1e11).contains(&number);
        return if epoch {
            Ok(number)
        } else {
            Err(format!("{text:?} has no unit; write {text}s or {text}m"))
        };
    }
    if let Ok(exact) = text.parse::<Timestamp>() {
        return Ok(seconds_of(exact));
    }
    named(text, now)
        .or_else(|| civil(text, now))
        .or_else(|| from_now(text, now))
        .map(seconds_of)
        .ok_or_else(wrong)
}

fn seconds_of(moment: Timestamp) -> f64 {
    moment.as_microsecond() as f64 / 1e6
}

/// Words for moments, and times of the day.
fn named(text: &str, now: &Zoned) -> Option<Timestamp> {
    match text.to_ascii_lowercase().as_str() {
        "now" => Some(now.timestamp()),
        "today" | "midnight" => next(Time::midnight(), now),
        "noon" => next(Time::constant(12, 0, 0, 0), now),
        "tomorrow" => next(Time::midnight(), now),
        lower => next(time_of_day(lower)?, now),
    }
}

/// The next time it is that late.
fn next(time: Time, now: &Zoned) -> Option<Timestamp> {
    let at = |date: Date| date.to_datetime(time).to_zoned(now.time_zone().clone()).ok();
    let today = at(now.date())?;
    let then = if today > *now { today } else { at(now.date().tomorrow().ok()?)? };
    Some(then.timestamp())
}

/// `18:00`, `18:00:30`, `6:00pm`.
fn time_of_day(text: &str) -> Option<Time> {
    let (digits, late) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(digits), _) => (digits, Some(0)),
        (_, Some(digits)) => (digits, Some(12)),
        _ => (text, None),
    };
    let parts = digits.split(':').map(|part| part.parse::<i8>().ok()).collect::<Option<Vec<_>>>()?;
    let &[hour, minute, ref second @ ..] = parts.as_slice() else { return None };
    let second = match second {
        [] => 0,
        &[second] => second,
        _ => return None,
    };
    let hour = match late {
        None => hour,
        Some(late) if (1..=12).contains(&hour) => hour % 12 + late,
        Some(_) => return None,
    };
    Time::new(hour, minute, second, 0).ok()
}

/// A date, or a date and a time, in the user's zone.
fn civil(text: &str, now: &Zoned) -> Option<Timestamp> {
    let date = || text.parse::<Date>().ok().map(|date| date.to_datetime(Time::midnight()));
    let whole = || text.parse::<DateTime>().ok();
    let looks = text.get(..10).is_some_and(|date| date.bytes().filter(|&byte| byte == b'-').count() == 2);
    let then = looks.then(|| if text.len() == 10 { date() } else { whole() })??;
    Some(then.to_zoned(now.time_zone().clone()).ok()?.timestamp())
}

/// `6h` or `now+6hours`; after `now+` a plain number is seconds.
fn from_now(text: &str, now: &Zoned) -> Option<Timestamp> {
    let text = text.strip_prefix("now+").unwrap_or(text);
    let span: Span =
        0i64.microseconds().checked_add(((length(text).ok()? * 1e6) as i64).microseconds()).ok()?;
    now.timestamp().checked_add(span).ok()
}

#[cfg(test)]
mod tests {
    use jiff::tz::{Offset, TimeZone};
    use proptest::prelude::*;

    use super::*;

    /// A Sunday at 16:00, an hour east of Greenwich.
    fn now() -> Zoned {
        let zone = TimeZone::fixed(Offset::constant(1));
        Timestamp::constant(1_794_754_800, 0).to_zoned(zone)
    }

    #[test]
    fn lengths_have_units_that_add_up() {
        let table = [
            ("90", 90.0),
            ("90s", 90.0),
            ("6m", 360.0),
            ("1.5h", 5400.0),
            ("1h30m", 5400.0),
            ("2d", 172_800.0),
        ];
        for (text, seconds) in table {
            assert_eq!(length(text), Ok(seconds), "{text}");
        }
        for wrong in ["", "0", "-5s", "5x", "h", "1h30", "nan", "inf", "1e300h", "١h", "2 h x"] {
            assert!(length(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn slurm_has_lengths_of_its_own() {
        let table = [
            ("90", 5400.0),
            ("1:30", 90.0),
            ("12:00:00", 43_200.0),
            ("1-12", 129_600.0),
            ("1-12:30", 131_400.0),
            ("1-00:00:01", 86_401.0),
        ];
        for (text, seconds) in table {
            assert_eq!(slurm_length(text), Ok(Some(seconds)), "{text}");
        }
        assert_eq!(slurm_length("UNLIMITED"), Ok(None));
        for wrong in ["", "0", "1-2-3", "1:2:3:4", "x", "1h", "99999999999"] {
            assert!(slurm_length(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn moments_are_counted_in_the_users_zone() {
        let start = seconds_of(now().timestamp());
        assert_eq!(now().hour(), 16);
        let table = [
            ("18:00", 2.0),
            ("18:00:00", 2.0),
            ("6:00pm", 2.0),
            ("15:00", 23.0),
            ("6h", 6.0),
            ("now+6hours", 6.0),
            ("now", 0.0),
            ("tomorrow", 8.0),
            ("midnight", 8.0),
            ("noon", 20.0),
            ("2026-11-15T20:00", 4.0),
            ("2026-11-16", 8.0),
            ("2026-11-15T20:00:00Z", 5.0),
            ("2026-11-15T20:00:00+01:00", 4.0),
            ("1794758400", 1.0),
        ];
        for (text, hours) in table {
            assert_eq!(moment(text, &now()), Ok(start + hours * 3600.0), "{text}");
        }
        for wrong in ["", "soon", "25:00", "18", "18:00:00:00", "13:00pm", "2026-02-30", "2026-11-15T99:00"] {
            assert!(moment(wrong, &now()).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn nothing_written_is_too_strange(text in "[-0-9:.TZhms+ndow]{0,24}|\\PC{0,12}") {
            let _ = length(&text);
            let _ = slurm_length(&text);
            let _ = moment(&text, &now());
        }

        #[test]
        fn lengths_written_in_parts_add_up(h in 0u32..100, m in 0u32..100, s in 1u32..100) {
            let expected = f64::from(h * 3600 + m * 60 + s);
            prop_assert_eq!(length(&format!("{h}h{m}m{s}s")), Ok(expected));
        }
    }
}
