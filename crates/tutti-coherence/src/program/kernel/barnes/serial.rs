//! The same steps on one core, with a private tree.

use super::{Body, CENTRE, SIDE, STEPS, Sum, advance, interaction, is_far, octant, opened};

/// A node of the octree.
enum Node {
    Empty,
    Leaf(usize),
    Cell(Box<Cell>),
}

struct Cell {
    children: [Node; 8],
    /// Centre of mass, and mass.
    mass: [f64; 4],
}

impl Cell {
    fn new() -> Box<Cell> {
        Box::new(Cell { children: std::array::from_fn(|_| Node::Empty), mass: [0.0; 4] })
    }

    fn insert(&mut self, bodies: &[Body], body: usize, centre: [f64; 3], half: f64) {
        let place = octant(bodies[body].at, centre);
        let (inner, half) = opened(centre, half, place);
        let child = &mut self.children[place];
        if let Node::Leaf(other) = *child {
            let mut cell = Cell::new();
            cell.insert(bodies, other, inner, half);
            *child = Node::Cell(cell);
        }
        match child {
            Node::Cell(cell) => cell.insert(bodies, body, inner, half),
            _ => *child = Node::Leaf(body),
        }
    }

    fn weigh(&mut self, bodies: &[Body]) {
        let mut sum = Sum::default();
        for child in &mut self.children {
            match child {
                Node::Empty => {}
                Node::Leaf(body) => sum.add(bodies[*body].mass()),
                Node::Cell(cell) => {
                    cell.weigh(bodies);
                    sum.add(cell.mass);
                }
            }
        }
        self.mass = sum.mean();
    }

    fn pull(&self, bodies: &[Body], body: usize, side: f64, force: &mut [f64; 3]) {
        if is_far(bodies[body].at, self.mass, side) {
            interaction(bodies[body].at, self.mass, force);
            return;
        }
        for child in &self.children {
            match child {
                Node::Leaf(other) if *other != body => {
                    interaction(bodies[body].at, bodies[*other].mass(), force);
                }
                Node::Cell(cell) => cell.pull(bodies, body, side / 2.0, force),
                _ => {}
            }
        }
    }

    fn cells(&self) -> usize {
        let below = self.children.iter().map(|child| match child {
            Node::Cell(cell) => cell.cells(),
            _ => 0,
        });
        1 + below.sum::<usize>()
    }
}

/// Returns the bodies after all steps, and the maximum number of cells of a step.
pub(super) fn serial(mut bodies: Vec<Body>) -> (Vec<Body>, usize) {
    let mut most = 0;
    for _ in 0..STEPS {
        let mut root = Cell::new();
        (0..bodies.len()).for_each(|body| root.insert(&bodies, body, CENTRE, SIDE / 2.0));
        root.weigh(&bodies);
        most = most.max(root.cells());
        let force = |body| {
            let mut force = [0.0; 3];
            root.pull(&bodies, body, SIDE, &mut force);
            force
        };
        let forces: Vec<[f64; 3]> = (0..bodies.len()).map(force).collect();
        for (body, force) in bodies.iter_mut().zip(forces) {
            advance(body, force);
        }
    }
    (bodies, most)
}

#[cfg(test)]
mod tests {
    use super::super::input;
    use super::*;

    #[test]
    fn forces_come_close_to_the_sum_over_all_pairs() {
        let bodies = input(200, 7);
        let mut root = Cell::new();
        (0..200).for_each(|body| root.insert(&bodies, body, CENTRE, SIDE / 2.0));
        root.weigh(&bodies);
        let (mut error, mut size) = (0.0, 0.0);
        for body in 0..200 {
            let (mut tree, mut all) = ([0.0; 3], [0.0; 3]);
            root.pull(&bodies, body, SIDE, &mut tree);
            for other in (0..200).filter(|&other| other != body) {
                interaction(bodies[body].at, bodies[other].mass(), &mut all);
            }
            for axis in 0..3 {
                error += (tree[axis] - all[axis]) * (tree[axis] - all[axis]);
                size += all[axis] * all[axis];
            }
        }
        let relative = libm::sqrt(error / size);
        assert!(relative > 0.0 && relative < 0.03, "{relative}");
    }

    #[test]
    fn bodies_stay_in_the_cube_and_the_mass_in_the_root() {
        let (bodies, most) = serial(input(100, 2));
        assert!(bodies.iter().all(|body| body.at.iter().all(|x| (x - 0.5).abs() < SIDE / 2.0)));
        assert!((20..200).contains(&most), "{most}");
        let mut root = Cell::new();
        (0..100).for_each(|body| root.insert(&bodies, body, CENTRE, SIDE / 2.0));
        root.weigh(&bodies);
        let mass: f64 = bodies.iter().map(|body| body.mass).sum();
        assert!((root.mass[3] - mass).abs() < 1e-12);
    }
}
