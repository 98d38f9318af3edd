//! Trackable resources: `billing=8,cpu=16,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=2`.

use super::super::super::table::MAX_GPUS;

/// How many GPUs, and of which kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GpuRequest {
    /// How many in all.
    pub(super) count: u32,
    /// The kinds named, separated by `|`; empty where none was.
    pub(super) kind: String,
}

/// One resource of a list: `gres/gpu`, the type after the colon, and how many.
pub(super) struct TresCount<'a> {
    pub(super) name: &'a str,
    pub(super) count: f64,
}

/// The GPUs of a list of resources, or what is wrong with the list. Where a total stands beside the types, it is the
/// same GPUs again.
pub(super) fn gpus(list: &str) -> Result<GpuRequest, String> {
    let entries = list.split(',').map(str::trim).filter(|entry| is_gpu(entry));
    let counts = entries.map(|entry| {
        let (name, count) = entry.split_once('=').ok_or_else(|| format!("{entry:?} has no \"=\""))?;
        let count = count.parse().map_err(|_| format!("{entry:?} has no number after \"=\""))?;
        Ok(TresCount { name: name.trim_start_matches("gres/"), count })
    });
    total(counts.collect::<Result<Vec<_>, String>>()?.into_iter())
}

/// `gres/gpu`, with or without a type, but not `gres/gpumem`.
fn is_gpu(entry: &str) -> bool {
    entry.strip_prefix("gres/gpu").is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '=']))
}

/// The GPUs of these resources, whose names begin with `gpu`.
pub(super) fn total<'a>(counts: impl Iterator<Item = TresCount<'a>>) -> Result<GpuRequest, String> {
    let (mut all, mut typed, mut kinds) = (None, 0.0, Vec::new());
    for TresCount { name, count } in counts {
        if !(0.0..=f64::from(MAX_GPUS)).contains(&count) || count != count.trunc() {
            return Err(format!("{name}={count} is not a whole number from 0 to {MAX_GPUS}"));
        }
        match name.strip_prefix("gpu") {
            Some("") => all = Some(count),
            Some(kind) if kind.starts_with(':') => {
                typed += count;
                kinds.push(kind[1..].replace('|', "_"));
            }
            _ => {}
        }
    }
    let count = all.unwrap_or(typed).min(f64::from(MAX_GPUS)) as u32;
    Ok(GpuRequest { count, kind: kinds.join("|") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u32, kind: &str) -> GpuRequest {
        GpuRequest { count, kind: kind.to_owned() }
    }

    #[test]
    fn totals_are_not_counted_twice() {
        assert_eq!(gpus("billing=8,cpu=16,gres/gpu=4,mem=64G,node=2"), Ok(of(4, "")));
        assert_eq!(gpus("gres/gpu:a100=4,gres/gpu=4"), Ok(of(4, "a100")));
        assert_eq!(gpus("gres/gpu:a100=3,gres/gpu:v100=1,cpu=4"), Ok(of(4, "a100|v100")));
        assert_eq!(gpus("cpu=1,mem=4G,gres/gpumem=80G,gres/gpuutil=7"), Ok(of(0, "")));
        assert_eq!(gpus(""), Ok(of(0, "")));
        assert!(gpus("gres/gpu=-1").is_err() && gpus("gres/gpu").is_err() && gpus("gres/gpu=1e9").is_err());
    }
}
