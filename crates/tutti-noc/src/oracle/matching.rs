//! Allocation from a full request matrix.

use super::count;
use crate::allocator::{Allocator, AllocatorKind, ArbiterKind, Request};
use crate::{FlitError, Settings};

/// A request, and its priorities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// Who of the input it is.
    pub(super) label: u32,
    /// Compared with other requests of the same input.
    pub(super) input_priority: i64,
    /// Compared with other requests for the same output.
    pub(super) output_priority: i64,
}

/// An ask, or none, for each input and output.
pub(super) type Matrix = Vec<Vec<Option<Entry>>>;

/// A matrix without requests.
pub(super) fn no_requests(inputs: usize, outputs: usize) -> Matrix {
    vec![vec![None; outputs]; inputs]
}

/// A matching of inputs to outputs.
#[derive(Clone, Debug)]
pub(super) enum Matching {
    /// The usual one.
    InputFirst(InputFirst),
    /// Any other: the allocators have separate reference versions.
    Other(Allocator),
}

impl Matching {
    pub(super) fn new(
        kind: AllocatorKind,
        router: u32,
        inputs: usize,
        outputs: usize,
        settings: &Settings,
    ) -> Result<Matching, FlitError> {
        if (kind, settings.arbiter) == (AllocatorKind::SeparableInputFirst, ArbiterKind::RoundRobin)
        {
            return Ok(Matching::InputFirst(InputFirst::new(inputs, outputs)));
        }
        let (inputs, outputs) = (count(inputs), count(outputs));
        let seed = settings.seed ^ (u64::from(router) << 32);
        let (arbiter, iterations) = (settings.arbiter, settings.iterations);
        let allocator = Allocator::new(kind, arbiter, inputs, outputs, iterations, seed)?;
        Ok(Matching::Other(allocator))
    }

    /// What each input is granted. Without requests, nothing changes.
    pub(super) fn allocate(&mut self, matrix: &Matrix) -> Vec<Option<usize>> {
        match self {
            Matching::InputFirst(matching) => matching.allocate(matrix),
            Matching::Other(allocator) => allocate_other(allocator, matrix),
        }
    }
}

fn allocate_other(allocator: &mut Allocator, matrix: &Matrix) -> Vec<Option<usize>> {
    let mut requests = Vec::new();
    for (input, row) in matrix.iter().enumerate() {
        for (output, request) in row.iter().enumerate() {
            let Some(Entry { input_priority, output_priority, .. }) = *request else { continue };
            let (input, output) = (count(input), count(output));
            requests.push(Request { input, output, input_priority, output_priority });
        }
    }
    let mut granted = vec![None; matrix.len()];
    if requests.is_empty() {
        return granted;
    }
    let mut grants = Vec::new();
    allocator.allocate(&requests, &mut grants);
    for (input, output) in grants {
        granted[input as usize] = Some(output as usize);
    }
    granted
}

/// Each input chooses an output, then each output one of the inputs that chose it; both in turn.
#[derive(Clone, Debug)]
pub(super) struct InputFirst {
    input_turns: Vec<usize>,
    output_turns: Vec<usize>,
}

impl InputFirst {
    pub(super) fn new(inputs: usize, outputs: usize) -> InputFirst {
        InputFirst { input_turns: vec![0; inputs], output_turns: vec![0; outputs] }
    }

    /// The output granted to each input. A round-robin pointer advances only with a grant.
    pub(super) fn allocate(&mut self, matrix: &Matrix) -> Vec<Option<usize>> {
        let (inputs, outputs) = (self.input_turns.len(), self.output_turns.len());
        let choose = |(row, &turn): (&Vec<Option<Entry>>, &usize)| {
            first(row.iter().map(|request| request.map(|request| request.input_priority)), turn)
        };
        let chosen: Vec<Option<usize>> = matrix.iter().zip(&self.input_turns).map(choose).collect();
        let mut granted = vec![None; inputs];
        for output in 0..outputs {
            let priorities = matrix.iter().zip(&chosen).map(|(row, &chosen)| {
                row[output]
                    .filter(|_| chosen == Some(output))
                    .map(|request| request.output_priority)
            });
            let Some(input) = first(priorities, self.output_turns[output]) else { continue };
            granted[input] = Some(output);
            self.input_turns[input] = (output + 1) % outputs;
            self.output_turns[output] = (input + 1) % inputs;
        }
        granted
    }
}

/// The first requester of the highest priority in round-robin order from `turn`.
pub(super) fn first(priorities: impl Iterator<Item = Option<i64>>, turn: usize) -> Option<usize> {
    let priorities: Vec<Option<i64>> = priorities.collect();
    let highest = priorities.iter().flatten().max()?;
    let size = priorities.len();
    (0..size).map(|step| (turn + step) % size).find(|&at| priorities[at].as_ref() == Some(highest))
}
