//! The tree in shared memory, as one core builds and reads it.

use super::super::super::sync::Spinlock;
use super::super::super::{Core, LINE_WORDS, work};
use super::{BarnesData, CENTRE, SIDE, Sum, interaction, is_far, octant, opened};

/// Cost of a distance and its comparison.
const DISTANCE: u64 = 8 * work::OPERATION + 3 * work::OPERATION + work::BRANCH;

/// Cost of a force beyond the distance.
const PULL: u64 = 9 * work::OPERATION + 2 * work::DIVISION;

/// Cost of an octant and its centre.
const OPEN: u64 = 3 * (work::BRANCH + 2 * work::OPERATION) + work::OPERATION;

const MASS: usize = LINE_WORDS;
const LOCK: usize = LINE_WORDS + 4;
const WEIGHED: usize = LINE_WORDS + 5;
const CELL_WORDS: usize = 2 * LINE_WORDS;

/// A child as a word: 0 is empty, odd a body, even a cell.
#[derive(Clone, Copy)]
enum Child {
    Empty,
    Body(usize),
    Cell(usize),
}

impl Child {
    #[expect(clippy::cast_possible_truncation, reason = "numbers of bodies and cells")]
    fn of(word: u64) -> Child {
        match word {
            0 => Child::Empty,
            body if body % 2 == 1 => Child::Body((body / 2) as usize),
            cell => Child::Cell((cell / 2 - 1) as usize),
        }
    }

    fn word(self) -> u64 {
        match self {
            Child::Empty => 0,
            Child::Body(body) => 2 * body as u64 + 1,
            Child::Cell(cell) => 2 * cell as u64 + 2,
        }
    }
}

/// The tree of a step.
pub(super) struct Tree<'a> {
    core: &'a Core,
    layout: &'a BarnesData,
    step: u64,
    /// Cells that this core created, each before the cells below it.
    created: Vec<usize>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(core: &'a Core, layout: &'a BarnesData, step: u64) -> Tree<'a> {
        Tree { core, layout, step, created: Vec::new() }
    }

    fn word(&self, cell: usize, word: usize) -> u64 {
        self.layout.cells.at(cell * CELL_WORDS + word)
    }

    /// Creates the root: the first cell of core 0.
    pub(super) async fn root(&mut self) {
        self.create().await;
    }

    /// Creates an empty cell.
    async fn create(&mut self) -> usize {
        let cell = self.core.id() as usize * self.layout.each + self.created.len();
        for place in 0..8 {
            self.core.store(self.word(cell, place), 0).await;
        }
        self.core.compute(work::OPERATION + work::INDEX);
        self.created.push(cell);
        cell
    }

    async fn place(&self, body: usize) -> [f64; 3] {
        let mut at = [0.0; 3];
        for (axis, at) in at.iter_mut().enumerate() {
            *at = self.core.load_f64(self.layout.places.at(body * LINE_WORDS + axis)).await;
        }
        self.core.compute(work::INDEX);
        at
    }

    /// Inserts a body into an empty child, or in place of another body, with cells down to the
    /// level at which the two separate.
    pub(super) async fn insert(&mut self, body: usize) {
        let at = self.place(body).await;
        let (mut cell, mut centre, mut half) = (0, CENTRE, SIDE / 2.0);
        loop {
            let place = octant(at, centre);
            let word = self.word(cell, place);
            self.core.compute(OPEN + work::BRANCH + work::INDEX);
            let mut child = Child::of(self.core.load(word).await);
            if !matches!(child, Child::Cell(_)) {
                let lock = Spinlock::at(self.word(cell, LOCK));
                lock.lock(self.core).await;
                // Another core may have changed the child before the lock.
                child = Child::of(self.core.load(word).await);
                self.core.compute(work::BRANCH);
                let new = match child {
                    Child::Empty => Some(Child::Body(body)),
                    Child::Body(other) => {
                        let (centre, half) = opened(centre, half, place);
                        Some(self.part(body, at, other, centre, half).await)
                    }
                    Child::Cell(_) => None,
                };
                if let Some(new) = new {
                    self.core.store(word, new.word()).await;
                }
                lock.unlock(self.core).await;
                if new.is_some() {
                    return;
                }
            }
            if let Child::Cell(next) = child {
                cell = next;
            }
            (centre, half) = opened(centre, half, place);
        }
    }

    /// Creates a chain of cells down to the level at which two bodies separate.
    async fn part(
        &mut self,
        body: usize,
        at: [f64; 3],
        other: usize,
        mut centre: [f64; 3],
        mut half: f64,
    ) -> Child {
        let other_at = self.place(other).await;
        let top = self.create().await;
        let mut cell = top;
        loop {
            let (one, two) = (octant(at, centre), octant(other_at, centre));
            self.core.compute(2 * OPEN + work::BRANCH);
            if one != two {
                self.core.store(self.word(cell, one), Child::Body(body).word()).await;
                self.core.store(self.word(cell, two), Child::Body(other).word()).await;
                return Child::Cell(top);
            }
            let next = self.create().await;
            self.core.store(self.word(cell, one), Child::Cell(next).word()).await;
            cell = next;
            (centre, half) = opened(centre, half, one);
        }
    }

    /// Computes the masses of the cells that this core created, the last first. A cell below may
    /// belong to another core. It was created later than the one above it, so the most recent cell
    /// without a mass never waits: no deadlock.
    pub(super) async fn weigh(&self) {
        for &cell in self.created.iter().rev() {
            let mut sum = Sum::default();
            for place in 0..8 {
                let child = Child::of(self.core.load(self.word(cell, place)).await);
                self.core.compute(work::BRANCH + work::ROUND);
                let mass = match child {
                    Child::Empty => continue,
                    Child::Body(body) => self.mass_of(body).await,
                    Child::Cell(below) => {
                        self.weighed(below).await;
                        self.mass(below).await
                    }
                };
                sum.add(mass);
                self.core.compute(7 * work::OPERATION);
            }
            for (word, value) in sum.mean().into_iter().enumerate() {
                self.core.store_f64(self.word(cell, MASS + word), value).await;
            }
            self.core.compute(3 * work::DIVISION + work::ROUND);
            self.core.store(self.word(cell, WEIGHED), self.step).await;
        }
    }

    /// Waits until a cell has its mass of this step.
    async fn weighed(&self, cell: usize) {
        let mut step = self.core.load(self.word(cell, WEIGHED)).await;
        self.core.compute(work::BRANCH);
        while step != self.step {
            step = self.core.spin_while(self.word(cell, WEIGHED), step).await;
            self.core.compute(work::BRANCH);
        }
    }

    async fn mass(&self, cell: usize) -> [f64; 4] {
        let mut mass = [0.0; 4];
        for (word, mass) in mass.iter_mut().enumerate() {
            *mass = self.core.load_f64(self.word(cell, MASS + word)).await;
        }
        self.core.compute(work::INDEX);
        mass
    }

    async fn mass_of(&self, body: usize) -> [f64; 4] {
        let [x, y, z] = self.place(body).await;
        [x, y, z, self.core.load_f64(self.layout.places.at(body * LINE_WORDS + 3)).await]
    }

    /// Returns the force on a body.
    pub(super) async fn pull(&self, body: usize) -> [f64; 3] {
        let at = self.place(body).await;
        let mut force = [0.0; 3];
        let mut stack = vec![(Child::Cell(0), SIDE)];
        while let Some((node, side)) = stack.pop() {
            self.core.compute(work::STACK + work::BRANCH);
            match node {
                Child::Body(other) if other != body => {
                    interaction(at, self.mass_of(other).await, &mut force);
                    self.core.compute(DISTANCE + PULL);
                }
                Child::Cell(cell) => {
                    let mass = self.mass(cell).await;
                    self.core.compute(DISTANCE);
                    if is_far(at, mass, side) {
                        interaction(at, mass, &mut force);
                        self.core.compute(PULL);
                    } else {
                        self.open(cell, side / 2.0, &mut stack).await;
                    }
                }
                _ => {}
            }
        }
        force
    }

    /// Pushes the children of a cell onto the stack, so that the first is popped first.
    async fn open(&self, cell: usize, side: f64, stack: &mut Vec<(Child, f64)>) {
        for place in (0..8).rev() {
            let child = Child::of(self.core.load(self.word(cell, place)).await);
            self.core.compute(work::BRANCH + work::ROUND);
            if !matches!(child, Child::Empty) {
                stack.push((child, side));
                self.core.compute(work::STACK);
            }
        }
    }
}
