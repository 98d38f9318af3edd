//! The shapes of a model: for each kind the counts that are worth having, on one node and over several, each with its
//! fastest split.

use crate::accelerator::Accelerator;
use crate::search::{Layers, SplitCandidate, SplitSearchLimits};
use crate::transformer::Transformer;

/// A number of devices of a kind, and the split to run there.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelShape {
    /// The kind.
    pub kind: String,
    /// How many devices.
    pub devices: u32,
    /// Whether the split allows for devices on several nodes; else all lie on one.
    pub apart: bool,
    /// The fastest split that fits.
    pub candidate: SplitCandidate,
    /// Whether a smaller count of the kind, as spread, is at least as fast.
    pub is_idle: bool,
}

/// A number of devices on which the model does not run.
#[derive(Clone, Debug, PartialEq)]
pub struct KindRefusal {
    /// The kind.
    pub kind: String,
    /// How many devices.
    pub devices: u32,
    /// Memory of a device, in bytes, that would do; none where the model cannot be divided so.
    pub least: Option<f64>,
}

/// All shapes of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShapeList {
    /// In order of preference: most steps a second for each device, then fewer devices.
    pub shapes: Vec<ModelShape>,
    /// Where it does not run, in order of kind and count.
    pub refused: Vec<KindRefusal>,
}

impl ShapeList {
    /// The shapes where no device is idle: more devices of the kind are faster than fewer.
    pub fn useful(&self) -> impl Iterator<Item = &ModelShape> {
        self.shapes.iter().filter(|shape| !shape.is_idle)
    }
}

/// Lists the shapes on kinds, up to so many devices of each.
pub fn list(model: &Transformer, kinds: &[(Accelerator, u32)], limits: &SplitSearchLimits) -> ShapeList {
    let mut list = ShapeList::default();
    for (kind, most) in kinds {
        on_one_node(model, kind, *most, limits, &mut list);
        on_several(model, kind, *most, limits, &mut list);
    }
    let cost = |shape: &ModelShape| shape.candidate.step_s * f64::from(shape.devices);
    list.shapes.sort_by(|a, b| {
        let by_name = || (&a.kind, a.apart).cmp(&(&b.kind, b.apart));
        cost(a).total_cmp(&cost(b)).then(a.devices.cmp(&b.devices)).then_with(by_name)
    });
    list.refused.sort_by(|a, b| (&a.kind, a.devices).cmp(&(&b.kind, b.devices)));
    list
}

/// 1, 2, 4 … and all devices of a node.
fn counts_of_node(per_node: u32, most: u32) -> impl Iterator<Item = u32> {
    let powers = (0..31).map(|power| 1 << power).take_while(move |count| *count < per_node);
    powers.chain([per_node]).filter(move |count| *count <= most)
}

fn on_one_node(
    model: &Transformer,
    kind: &Accelerator,
    most: u32,
    limits: &SplitSearchLimits,
    list: &mut ShapeList,
) {
    let (layers, mut fastest) = (Layers::new(model, kind), f64::INFINITY);
    for devices in counts_of_node(kind.per_node, most) {
        let found = layers.search(devices, limits);
        match found.best {
            Some(candidate) => list.add(kind, devices, false, candidate, &mut fastest),
            None => list.refused.push(KindRefusal { kind: kind.name.clone(), devices, least: found.least }),
        }
    }
}

/// A gang that one node could hold is taken to lie half and half on two; larger ones fill their nodes.
fn on_several(
    model: &Transformer,
    kind: &Accelerator,
    most: u32,
    limits: &SplitSearchLimits,
    list: &mut ShapeList,
) {
    let mut fastest = f64::INFINITY;
    for devices in counts_of_node(kind.per_node, most).filter(|devices| *devices > 1) {
        let halves = kind.in_nodes_of(devices / 2);
        if let Some(candidate) = Layers::new(model, &halves).search(devices, limits).best {
            list.add(kind, devices, true, candidate, &mut fastest);
        }
    }
    let layers = Layers::new(model, kind);
    for devices in (2..).map(|nodes| nodes * kind.per_node).take_while(|devices| *devices <= most) {
        let found = layers.search(devices, limits);
        match found.best {
            Some(candidate) => list.add(kind, devices, true, candidate, &mut fastest),
            None => list.refused.push(KindRefusal { kind: kind.name.clone(), devices, least: found.least }),
        }
    }
}

impl ShapeList {
    fn add(
        &mut self,
        kind: &Accelerator,
        devices: u32,
        apart: bool,
        candidate: SplitCandidate,
        fastest: &mut f64,
    ) {
        let is_idle = candidate.step_s >= *fastest;
        *fastest = fastest.min(candidate.step_s);
        self.shapes.push(ModelShape { kind: kind.name.clone(), devices, apart, candidate, is_idle });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::known;

    fn kinds(names: &[&str], most: u32) -> Vec<(Accelerator, u32)> {
        names.iter().map(|name| (known(name).unwrap(), most)).collect()
    }

    #[test]
    fn runs_whole_split_and_split_deeper_and_is_refused() {
        let model = Transformer::gpt(4096, 32, 32, 64);
        let all = list(
            &model,
            &kinds(&["h200", "a100-80", "v100-32", "v100-16"], 8),
            &SplitSearchLimits::default(),
        );
        let smallest = |kind: &str| {
            let sizes = all.shapes.iter().filter(|shape| shape.kind == kind).map(|shape| shape.devices);
            sizes.min()
        };
        assert_eq!(
            ["h200", "a100-80", "v100-32", "v100-16"].map(smallest),
            [Some(1), Some(2), Some(8), None]
        );
        let refused = all.refused.iter().filter(|refusal| refusal.kind == "v100-16");
        let least: Vec<_> = refused.map(|refusal| (refusal.devices, refusal.least.unwrap() > 16e9)).collect();
        assert_eq!(least, [(1, true), (2, true), (4, true), (8, true)]);
    }

    #[test]
    fn the_order_of_kinds_does_not_matter() {
        let model = Transformer::gpt(2048, 24, 16, 64);
        let forward = list(&model, &kinds(&["a100-80", "h100"], 32), &SplitSearchLimits::default());
        let backward = list(&model, &kinds(&["h100", "a100-80"], 32), &SplitSearchLimits::default());
        assert_eq!(forward, backward);
    }

    #[test]
    fn counts_double_up_to_a_node() {
        let counts = |per_node, most| counts_of_node(per_node, most).collect::<Vec<_>>();
        assert_eq!(counts(8, 64), [1, 2, 4, 8]);
        assert_eq!(counts(6, 64), [1, 2, 4, 6]);
        assert_eq!(counts(8, 3), [1, 2]);
        assert_eq!(counts(1, 64), [1]);
    }
}
