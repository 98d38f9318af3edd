//! What is wrong with a job file, in the words of the file: the parser speaks of types of this program.

use super::super::amounts;

/// Fields that are listed; a job file has more.
const LISTED: usize = 12;

/// The parser's message in plain words, where there are some.
pub(super) fn plain(text: &str, line: u64, column: u64, message: &str) -> Option<String> {
    let said = message.split(" at line ").next()?;
    if let Some(rest) = said.strip_prefix("unknown field `") {
        let (name, known) = rest.split_once('`')?;
        return Some(unknown_field(name, known));
    }
    let at = usize::try_from(line.checked_sub(1)?).ok()?;
    let here = text.lines().nth(at)?;
    let (start, _) = here.char_indices().nth(usize::try_from(column.checked_sub(1)?).ok()?)?;
    let field = field(text, at, start)?;
    if let Some(rest) = said.strip_prefix("unknown variant `") {
        let (value, known) = rest.split_once('`')?;
        return Some(format!("{field}: {value:?} is not one of {}", names(known).join(", ")));
    }
    let value = here[start..].split([',', '}', ']', '#']).next()?.trim();
    let wanted = match said.strip_prefix("invalid ").unwrap_or(said) {
        "u16" | "u32" | "u64" => "a whole number, 0 or more",
        "i32" => "a whole number",
        "floating point" => "a number",
        "boolean" => "true or false",
        "expected sequence start" => "a list, such as [a, b]",
        "expected mapping start" => {
            return Some(format!("{field}: give NAME: value pairs, such as {{NAME: value}}"));
        }
        _ => return None,
    };
    match (field, amounts::devices(value)) {
        ("gpus" | "min_gpus" | "max_gpus", Err(wrong)) => Some(format!("{field}: {wrong}")),
        _ => Some(format!("{field}: {value:?} is not {wanted}")),
    }
}

fn unknown_field(name: &str, known: &str) -> String {
    let known = names(known);
    let nearest = known.iter().map(|one| (distance(name, one), *one)).min();
    let meant = nearest.filter(|(off, one)| *off <= 2 && *off < one.len() / 2);
    let meant = meant.map_or_else(String::new, |(_, one)| format!("; did you mean {one}?"));
    let fields = match known.len() {
        0 => return format!("unknown field {name}"),
        1..=LISTED => format!("fields: {}", known.join(", ")),
        _ => "job files have the fields that yard submit --dry-run prints".into(),
    };
    format!("unknown field {name}{meant} ({fields})")
}

/// The names after `expected one of`.
fn names(list: &str) -> Vec<&str> {
    let list = list.split_once("one of ").map_or("", |(_, list)| list);
    list.split(", ").map(|name| name.trim_matches('`')).filter(|name| !name.is_empty()).collect()
}

/// The field that a value belongs to: the last name before it in its line, or the first of a line above that ends in one.
fn field(text: &str, at: usize, start: usize) -> Option<&str> {
    let lines: Vec<&str> = text.lines().take(at + 1).collect();
    let here = &lines.last()?[..start];
    if let Some((before, _)) = here.rsplit_once(':') {
        return before.rsplit(['{', ',', ' ']).next().filter(|name| !name.is_empty());
    }
    let above = lines[..at].iter().rev().find_map(|line| line.trim_end().strip_suffix(':'));
    above.map(|name| name.trim_start_matches([' ', '-']))
}

/// Letters to change, to add or to take away until one word is the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn words_are_as_far_apart_as_letters_differ() {
        let pairs = [
            ("time", "time", 0),
            ("tme", "time", 1),
            ("tiem", "time", 2),
            ("", "gpus", 4),
            ("gpu", "gpus", 1),
        ];
        for (a, b, off) in pairs {
            assert_eq!((distance(a, b), distance(b, a)), (off, off), "{a} {b}");
        }
    }
}
