//! Free devices by kind, for policies that must say who could start together. Counting only: a placer
//! may still find that devices lie too far apart.

use yard_core::ids::KindId;
use yard_core::job::Shape;
use yard_core::view::View;

/// How many devices of each kind.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KindCounts(Vec<u32>);

impl KindCounts {
    /// The devices promised to nobody.
    pub(crate) fn free(view: &View) -> KindCounts {
        KindCounts(view.kinds.ids().map(|kind| view.nodes.free(kind)).collect())
    }

    /// The devices of all nodes that are up.
    pub(crate) fn up(view: &View) -> KindCounts {
        KindCounts(view.kinds.ids().map(|kind| view.capacity(kind)).collect())
    }

    /// How many of one kind.
    pub(crate) fn of(&self, kind: KindId) -> u32 {
        self.0.get(kind.index()).copied().unwrap_or(0)
    }

    /// How many of all kinds.
    pub(crate) fn total(&self) -> u32 {
        self.0.iter().sum()
    }

    /// Whether a shape could be had.
    pub(crate) fn fits(&self, shape: &Shape) -> bool {
        let asked = |kind| shape.needs.iter().filter(|need| need.kind == kind).map(|need| need.devices).sum();
        shape.needs.iter().all(|need| self.of(need.kind) >= asked(need.kind))
    }

    /// The first of these shapes that could be had.
    pub(crate) fn first_fit(&self, shapes: &[Shape]) -> Option<u16> {
        shapes.iter().position(|shape| self.fits(shape)).map(|at| at as u16)
    }

    /// Takes a shape's devices out, all that are there.
    pub(crate) fn take(&mut self, shape: &Shape) {
        for need in &shape.needs {
            if let Some(count) = self.0.get_mut(need.kind.index()) {
                *count = count.saturating_sub(need.devices);
            }
        }
    }

    /// Puts a shape's devices in.
    pub(crate) fn give(&mut self, shape: &Shape) {
        for need in &shape.needs {
            let at = need.kind.index();
            if self.0.len() <= at {
                self.0.resize(at + 1, 0);
            }
            self.0[at] = self.0[at].saturating_add(need.devices);
        }
    }
}

#[cfg(test)]
mod tests {
    use yard_core::job::Need;

    use super::*;

    #[test]
    fn needs_of_one_kind_add_up() {
        let mut counts = KindCounts(vec![3]);
        let twice = Shape { needs: vec![Need { kind: KindId(0), devices: 2 }; 2], ..Shape::of(KindId(0), 0) };
        assert!(!counts.fits(&twice));
        assert!(!counts.fits(&Shape::of(KindId(7), 1)));
        assert_eq!(counts.first_fit(&[twice, Shape::of(KindId(0), 3)]), Some(1));
        counts.take(&Shape::of(KindId(0), 3));
        assert_eq!(counts, KindCounts(vec![0]));
    }
}
