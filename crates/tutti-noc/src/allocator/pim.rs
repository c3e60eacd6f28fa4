//! Parallel iterative matching: outputs grant and inputs accept, each from a place drawn at random.

use std::cmp::Reverse;

use super::Request;
use super::arbiter::cyclic;
use super::stages::{Side, Stages};
use tutti_units::random::{random_bits, scale, split_words};

#[derive(Clone, Debug)]
pub(super) struct Pim {
    stages: Stages,
    inputs: u32,
    outputs: u32,
    iterations: u32,
    seed: u64,
    /// Allocations so far.
    serial: u64,
}

impl Pim {
    pub(super) fn new(inputs: u32, outputs: u32, iterations: u32, seed: u64) -> Pim {
        let stages = Stages::new(Side::Output, inputs, outputs);
        Pim { stages, inputs, outputs, iterations, seed, serial: 0 }
    }

    pub(super) fn allocate(&mut self, requests: &[Request], grants: &mut Vec<(u32, u32)>) {
        let before = grants.len();
        for iteration in 0..self.iterations {
            let done = grants.len();
            let seed = random_bits(self.seed, [iteration, 0, 0, 0]);
            let claim = |side: Side, request: &Request| {
                let (port, contender) = (side.port(request), side.other().port(request));
                let contenders = match side {
                    Side::Input => self.outputs,
                    Side::Output => self.inputs,
                };
                let first = first(seed, self.serial, side, port, contenders);
                (0, Reverse((0, cyclic(first, contender, contenders))))
            };
            self.stages.round(requests, claim, grants);
            if grants.len() == done {
                break;
            }
        }
        self.stages.finish(&grants[before..]);
        self.serial += 1;
    }
}

/// The random position at which a port starts its search in an iteration of an allocation.
#[expect(clippy::cast_possible_truncation, reason = "below the number of contenders")]
fn first(seed: u64, serial: u64, side: Side, port: u32, contenders: u32) -> u32 {
    let [low, high] = split_words(serial);
    scale(random_bits(seed, [port, low, high, side as u32]), u128::from(contenders)) as u32
}
