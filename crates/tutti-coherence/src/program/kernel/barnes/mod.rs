//! `barnes_like`: gravity by a tree (Barnes and Hut).

mod serial;
mod tree;

use std::rc::Rc;

use super::super::random::Random;
use super::super::sync::TreeBarrier;
use super::super::work;
use super::super::{Array, Core, Kernel, LINE_WORDS, Memory, Program, ProgramError, Scale};
use super::{Barrier, divisible, own, same_bits, threads};

/// Gravity between bodies by the Barnes-Hut method. Each step builds an octree, computes the masses
/// of its cells from the leaves up, computes the force on each body by close bodies and distant
/// cells, and moves the bodies.
///
/// All cores insert their bodies into one tree, with a lock in each cell. Each core computes the
/// masses of the cells that it created, waiting for those below. All cores then read the tree, most
/// often its top, and each moves its bodies. The location of cells depends on the order of
/// insertion; the tree does not. Expected: reads of lines that many caches share; stores to those
/// lines when the next tree is built; locks on the few cells at the top.
pub(super) struct BarnesLike;

/// Steps; the first precedes the region of interest.
const STEPS: u64 = 2;

/// Distance, in sides of a cell, beyond which the cell acts as one mass.
const FAR: f64 = 1.25;

/// Length of a step, and the softening that bounds the force of close bodies.
const STEP: f64 = 1e-3;
const SOFTENING: f64 = 1e-4;

/// The cube that contains all bodies.
const CENTRE: [f64; 3] = [0.5; 3];
const SIDE: f64 = 2.0;

fn bodies(scale: Scale) -> usize {
    match scale {
        Scale::Tiny => 32,
        Scale::Small => 512,
        Scale::Large => 2048,
    }
}

#[derive(Clone, Copy, Debug)]
struct Body {
    at: [f64; 3],
    mass: f64,
    speed: [f64; 3],
}

impl Body {
    /// Returns position and mass.
    fn mass(&self) -> [f64; 4] {
        [self.at[0], self.at[1], self.at[2], self.mass]
    }
}

struct BarnesData {
    bodies: usize,
    barrier: TreeBarrier,
    /// A line each: position and mass.
    places: Array,
    /// A line each, private to the owner.
    speeds: Array,
    /// Two lines each: eight children; centre of mass, mass, lock, last step of the mass.
    cells: Array,
    /// Cells per core; the root belongs to core 0.
    each: usize,
}

impl Kernel for BarnesLike {
    fn name(&self) -> &'static str {
        "barnes_like"
    }

    fn summary(&self) -> &'static str {
        "gravity by a tree: built under locks, read by all cores"
    }

    fn program(&self, cores: u32, scale: Scale, seed: u64) -> Result<Program, ProgramError> {
        let count = bodies(scale);
        divisible(self.name(), scale, cores, count, "one per body")?;
        let input = input(count, seed);
        let (expected, each) = serial::serial(input.clone());
        let line = |words: &[f64]| {
            let mut line = [0.0; LINE_WORDS];
            line[..words.len()].copy_from_slice(words);
            line
        };
        let places: Vec<f64> = input.iter().flat_map(|body| line(&body.mass())).collect();
        let speeds: Vec<f64> = input.iter().flat_map(|body| line(&body.speed)).collect();
        let mut memory = Memory::new();
        let layout = Rc::new(BarnesData {
            bodies: count,
            barrier: TreeBarrier::new(&mut memory, cores),
            places: memory.numbers(&places),
            speeds: memory.numbers(&speeds),
            cells: memory.zeros(2 * LINE_WORDS * each * cores as usize),
            each,
        });
        let threads = threads(cores, |core| run(core, Rc::clone(&layout)));
        let check = Box::new(move |words: &[u64]| {
            let places: Vec<f64> = expected.iter().flat_map(|body| line(&body.mass())).collect();
            let speeds: Vec<f64> = expected.iter().flat_map(|body| line(&body.speed)).collect();
            same_bits("coordinate", &layout.places.numbers(words), &places)?;
            same_bits("speed", &layout.speeds.numbers(words), &speeds)
        });
        Ok(Program { threads, memory: memory.into_words(), check })
    }
}

async fn run(core: Core, layout: Rc<BarnesData>) {
    let barrier = Barrier::from(layout.barrier);
    let bodies = core.share(layout.bodies);
    for array in [&layout.places, &layout.speeds] {
        own(&core, array, bodies.start * LINE_WORDS..bodies.end * LINE_WORDS).await;
    }
    for step in 1..=STEPS {
        if step == STEPS {
            barrier.begin(&core).await;
        }
        let mut tree = tree::Tree::new(&core, &layout, step);
        if core.id() == 0 {
            tree.root().await;
        }
        barrier.wait(&core).await;
        for body in bodies.clone() {
            tree.insert(body).await;
            core.compute(work::ROUND);
        }
        barrier.wait(&core).await;
        tree.weigh().await;
        barrier.wait(&core).await;
        let mut forces = Vec::new();
        for body in bodies.clone() {
            forces.push(tree.pull(body).await);
            core.compute(work::ROUND);
        }
        barrier.wait(&core).await;
        for (body, force) in bodies.clone().zip(forces) {
            move_on(&core, &layout, body, force).await;
        }
    }
    barrier.end(&core).await;
}

async fn move_on(core: &Core, layout: &BarnesData, number: usize, force: [f64; 3]) {
    let (place, speed) = (number * LINE_WORDS, number * LINE_WORDS);
    let mut body = Body { at: [0.0; 3], mass: 0.0, speed: [0.0; 3] };
    for axis in 0..3 {
        body.at[axis] = core.load_f64(layout.places.at(place + axis)).await;
        body.speed[axis] = core.load_f64(layout.speeds.at(speed + axis)).await;
    }
    advance(&mut body, force);
    for axis in 0..3 {
        core.store_f64(layout.places.at(place + axis), body.at[axis]).await;
        core.store_f64(layout.speeds.at(speed + axis), body.speed[axis]).await;
    }
    core.compute(12 * work::OPERATION + 2 * work::INDEX + work::ROUND);
}

fn advance(body: &mut Body, force: [f64; 3]) {
    for ((at, speed), force) in body.at.iter_mut().zip(&mut body.speed).zip(force) {
        *speed += STEP * force;
        *at += STEP * *speed;
    }
}

/// Returns the octant of a cube that contains a position.
fn octant(at: [f64; 3], centre: [f64; 3]) -> usize {
    (0..3).map(|axis| usize::from(at[axis] >= centre[axis]) << axis).sum()
}

/// Returns centre and half side of an octant.
fn opened(centre: [f64; 3], half: f64, place: usize) -> ([f64; 3], f64) {
    let half = half / 2.0;
    let moved = |axis: usize| centre[axis] + if place >> axis & 1 == 1 { half } else { -half };
    (std::array::from_fn(moved), half)
}

/// A sum of masses.
#[derive(Default)]
struct Sum([f64; 4]);

impl Sum {
    fn add(&mut self, [x, y, z, mass]: [f64; 4]) {
        for (sum, at) in self.0.iter_mut().zip([x, y, z]) {
            *sum += mass * at;
        }
        self.0[3] += mass;
    }

    /// Returns centre of mass and total mass.
    fn mean(&self) -> [f64; 4] {
        let [x, y, z, mass] = self.0;
        [x / mass, y / mass, z / mass, mass]
    }
}

/// Returns whether a cell acts as one mass.
fn is_far(at: [f64; 3], mass: [f64; 4], side: f64) -> bool {
    let squared: f64 = (0..3).map(|axis| (mass[axis] - at[axis]) * (mass[axis] - at[axis])).sum();
    squared > FAR * FAR * side * side
}

/// Adds the force of a mass.
fn interaction(at: [f64; 3], mass: [f64; 4], force: &mut [f64; 3]) {
    let away: [f64; 3] = std::array::from_fn(|axis| mass[axis] - at[axis]);
    let squared = away[0] * away[0] + away[1] * away[1] + away[2] * away[2] + SOFTENING;
    let pull = mass[3] / (squared * libm::sqrt(squared));
    for (force, away) in force.iter_mut().zip(away) {
        *force += pull * away;
    }
}

/// Returns random bodies in a cube, sorted so that neighbours in the list are close to each other
/// and belong to the same core.
fn input(count: usize, seed: u64) -> Vec<Body> {
    let mut random = Random::new(seed, 0);
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    let mass = 1.0 / count as f64;
    let mut body = |_| Body {
        at: std::array::from_fn(|_| random.unit()),
        mass,
        speed: std::array::from_fn(|_| random.between(-0.1, 0.1)),
    };
    let mut bodies: Vec<Body> = (0..count).map(&mut body).collect();
    bodies.sort_by_key(|body| morton_order(body.at));
    bodies
}

/// Returns the Morton order of a position: six interleaved bits per coordinate.
fn morton_order(at: [f64; 3]) -> usize {
    let (mut key, mut centre, mut half) = (0, CENTRE, 0.5);
    for _ in 0..6 {
        let place = octant(at, centre);
        key = key << 3 | place;
        (centre, half) = opened(centre, half, place);
    }
    key
}
