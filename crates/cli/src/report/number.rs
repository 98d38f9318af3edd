//! Numbers for the page: few digits, because a chart cannot show more.

use serde::{Serialize, Serializer};

/// A number that is written with five significant digits, and without a fraction when it is whole.
///
/// The value itself stays exact, so what is computed from it does not depend on how it is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Num(pub(super) f64);

impl Serialize for Num {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let short = five_digits(self.0);
        if short.fract() == 0.0 && short.abs() < 9e15 {
            out.serialize_i64(short as i64)
        } else {
            out.serialize_f64(short)
        }
    }
}

/// Rounds through decimal text, which is equal on every machine; logarithms are not.
fn five_digits(value: f64) -> f64 {
    if value.fract() == 0.0 || !value.is_finite() {
        return value;
    }
    format!("{value:.4e}").parse().expect("a formatted number parses")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_few_digits() {
        let text = |value| serde_json::to_string(&Num(value)).unwrap();
        assert_eq!(text(3.0), "3");
        assert_eq!(text(1_234_567.0), "1234567");
        assert_eq!(text(1.0 / 3.0), "0.33333");
        assert_eq!(text(123_456.789), "123460");
        assert_eq!(text(f64::NAN), "null");
    }
}
