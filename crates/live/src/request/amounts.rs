//! Amounts as people write them: sizes of memory such as `8GiB` or `512M`, and parts of a whole such as `5%` or `0.05`.
//! Whether an amount makes sense is said by `check`.

use super::check::GPUS_MAX;

/// Memory in MiB: `8GiB`, `8GB`, `8G`, `1.5T`, `500M`, or a plain number of MiB. All units are powers of 1024, as
/// Slurm's and the driver's are.
pub fn memory(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size such as 16G, 8GiB or 500M");
    let upper = text.trim().to_ascii_uppercase();
    let bare = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
    let digits = bare.trim_end_matches(['K', 'M', 'G', 'T']);
    let mib_each = match &bare[digits.len()..] {
        "K" => 1.0 / 1024.0,
        "M" => 1.0,
        "" if bare.len() == upper.len() => 1.0,
        "G" => 1024.0,
        "T" => 1024.0 * 1024.0,
        _ => return Err(wrong()),
    };
    let number: f64 = digits.trim_end().parse().map_err(|_| wrong())?;
    let mib = (number * mib_each).ceil();
    if (0.0..=1e15).contains(&mib) { Ok(mib as u64) } else { Err(wrong()) }
}

/// A number of devices.
pub fn devices(text: &str) -> Result<u32, String> {
    let text = text.trim();
    match text.parse::<u32>() {
        Ok(count) if count <= GPUS_MAX => Ok(count),
        _ if text.parse::<f64>().is_ok_and(|part| part > 0.0 && part < 1.0) => {
            Err(format!("{text} is part of a GPU; use --gpus 1 --gpu-fraction {text}"))
        }
        _ => Err(format!("{text:?} is not a whole number of GPUs from 0 to {GPUS_MAX}, such as 4")),
    }
}

/// A part of a whole: `0.05`, or the same in percent, `5%`.
pub fn part(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let wrong = || format!("{text:?} is not a part such as 0.5 or 50%");
    match text.strip_suffix('%') {
        Some(percent) => percent.trim_end().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    }
    .map_err(|_| wrong())
}

/// A named amount of a host, as `scratch_gb=100`: cores in thousandths (`cores=1.5`), memory in MiB (`memory=64GiB`).
pub fn resource(text: &str) -> Result<(String, u32), String> {
    let wrong = || format!("{text:?} is not NAME=N, as in scratch_gb=100");
    let (name, amount) = text.split_once('=').ok_or_else(wrong)?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Err(format!(
            "{name:?} is not a name: use lower-case letters, digits, dots, dashes and underscores"
        ));
    }
    let amount = match name {
        "cores" => {
            amount.parse::<f64>().ok().filter(|n| *n > 0.0 && *n <= 1e6).map(|n| (n * 1000.0).ceil() as u32)
        }
        "memory" => u32::try_from(memory(amount)?).ok(),
        _ => amount.parse().ok(),
    };
    Ok((name.to_owned(), amount.ok_or_else(wrong)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_resource_has_a_name_and_an_amount() {
        let read = |text| resource(text).map(|(_, amount)| amount);
        assert_eq!(
            (read("cores=1.5"), read("memory=2GiB"), read("scratch_gb=9")),
            (Ok(1500), Ok(2048), Ok(9))
        );
        for bad in ["scratch", "=3", "Scratch=3", "scratch=-1", "cores=0", "memory=much", "a b=1"] {
            assert!(resource(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn memory_has_units_or_is_in_mib() {
        let table = [
            ("8GiB", 8 << 10),
            ("8GB", 8 << 10),
            ("8g", 8 << 10),
            (" 1.5 G ", 1536),
            ("500M", 500),
            ("500MiB", 500),
            ("512", 512),
            ("2T", 2 << 20),
            ("1K", 1),
            ("0", 0),
        ];
        for (text, mib) in table {
            assert_eq!(memory(text), Ok(mib), "{text}");
        }
        for wrong in ["", "G", "8X", "much", "-1G", "nan", "inf", "8GG", "8B", "1e400", "8 iB"] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn parts_are_numbers_or_percent() {
        let table = [("0.5", 0.5), ("50%", 0.5), ("5 %", 0.05), ("1", 1.0), ("170%", 1.7), ("-1", -1.0)];
        for (text, value) in table {
            assert_eq!(part(text), Ok(value), "{text}");
        }
        for wrong in ["", "%", "half", "5%%", "0,5"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn devices_are_counted_in_whole_numbers() {
        assert_eq!((devices("0"), devices(" 8 ")), (Ok(0), Ok(8)));
        for (text, part) in [
            ("-1", "\"-1\" is not a whole number of GPUs from 0"),
            ("many", "such as 4"),
            ("0.5", "--gpus 1 --gpu-fraction 0.5"),
            ("1.5", "not a whole number"),
            ("nan", "not a whole number"),
            ("99999999999", "not a whole number"),
        ] {
            let said = devices(text).unwrap_err();
            assert!(said.contains(part), "{text}: {said}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_a_panic(text in "\\PC{0,12}") {
            let _ = memory(&text);
            let _ = part(&text);
            let _ = devices(&text);
        }

        #[test]
        fn what_is_written_in_mib_is_read_back(mib in 0u64..1 << 40) {
            prop_assert_eq!(memory(&mib.to_string()), Ok(mib));
        }
    }
}
