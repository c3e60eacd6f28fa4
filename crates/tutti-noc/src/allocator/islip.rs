//! iSLIP: outputs grant and inputs accept, round-robin, in iterations.

use std::cmp::Reverse;

use super::Request;
use super::arbiter::cyclic;
use super::stages::{Side, Stages};

#[derive(Clone, Debug)]
pub(super) struct Islip {
    stages: Stages,
    /// The output that each input accepts first.
    accept: Vec<u32>,
    /// The input that each output grants first.
    grant: Vec<u32>,
    inputs: u32,
    outputs: u32,
    iterations: u32,
}

impl Islip {
    pub(super) fn new(inputs: u32, outputs: u32, iterations: u32) -> Islip {
        Islip {
            stages: Stages::new(Side::Output, inputs, outputs),
            accept: vec![0; inputs as usize],
            grant: vec![0; outputs as usize],
            inputs,
            outputs,
            iterations,
        }
    }

    pub(super) fn allocate(&mut self, requests: &[Request], grants: &mut Vec<(u32, u32)>) {
        let before = grants.len();
        for iteration in 0..self.iterations {
            let done = grants.len();
            let claim = |side: Side, &Request { input, output, .. }: &Request| {
                let turn = match side {
                    Side::Input => cyclic(self.accept[input as usize], output, self.outputs),
                    Side::Output => cyclic(self.grant[output as usize], input, self.inputs),
                };
                (0, Reverse((0, turn)))
            };
            self.stages.round(requests, claim, grants);
            if grants.len() == done {
                break;
            }
            // Pointers that later iterations also advance could starve an input.
            if iteration == 0 {
                for &(input, output) in &grants[before..] {
                    self.accept[input as usize] = (output + 1) % self.outputs;
                    self.grant[output as usize] = (input + 1) % self.inputs;
                }
            }
        }
        self.stages.finish(&grants[before..]);
    }
}
