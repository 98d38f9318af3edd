//! Makes a failing scenario short: parts are left out, many at a time at first and then one by one, while it still
//! fails in the same way (delta debugging).

use super::Part;

/// Scenarios tried in search of a shorter one; a failure that needs more is short enough.
const TRIES_MAX: usize = 1_000;

/// As few parts as still fail; none of them can be left out alone.
pub fn shrink(parts: Vec<Part>, fails: &mut dyn FnMut(&[Part]) -> bool) -> Vec<Part> {
    let mut kept = parts;
    let mut size = kept.len().div_ceil(2);
    let mut tries = 0;
    while size > 0 {
        let before = kept.len();
        let mut at = 0;
        while at < kept.len() && tries < TRIES_MAX {
            let shorter = without(&kept, at, size);
            tries += 1;
            if fails(&shorter) {
                kept = shorter;
            } else {
                at += size;
            }
        }
        // Once a part has gone, another may be needed no longer.
        size = if size == 1 && kept.len() < before && tries < TRIES_MAX { 1 } else { size / 2 };
    }
    kept
}

/// All but `size` parts from `at` on; details go with their jobs.
fn without(parts: &[Part], at: usize, size: usize) -> Vec<Part> {
    let left = at..(at + size).min(parts.len());
    let gone = |job: usize| parts[left.clone()].contains(&Part::Job(job));
    let stays = |(at, part): (usize, &Part)| {
        let owner_gone = matches!(part, Part::Detail(job, _) if gone(*job));
        (!left.contains(&at) && !owner_gone).then_some(*part)
    };
    parts.iter().enumerate().filter_map(stays).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_left_and_nothing_else() {
        let parts: Vec<Part> = (0..40).map(Part::Job).chain((0..9).map(Part::Node)).collect();
        let needed = [Part::Job(3), Part::Job(31), Part::Node(8)];
        let mut tries = 0;
        let short = shrink(parts, &mut |parts| {
            tries += 1;
            needed.iter().all(|part| parts.contains(part))
        });
        assert_eq!(short, needed);
        assert!(tries < 120, "{tries} tries");
    }

    #[test]
    fn either_of_two_will_do() {
        let parts: Vec<Part> = (0..10).map(Part::Node).collect();
        let short =
            shrink(parts, &mut |parts| parts.contains(&Part::Node(2)) || parts.contains(&Part::Node(7)));
        assert_eq!(short.len(), 1);
    }
}
