//! Reference versions of the allocators: a matrix of requests, every port visited in turn, every
//! arbiter with its pointer or its precedence matrix as in hardware.
#![expect(clippy::needless_range_loop, reason = "ports are what the loops run over")]

use super::{AllocatorKind, ArbiterKind, Request};
use tutti_units::random::{random_bits, scale};

/// Priorities (input, output) of the request in a row (input) and a column (output).
type Matrix = Vec<Vec<Option<(i64, i64)>>>;

pub(super) enum PlainArbiter {
    RoundRobin { pointer: usize },
    Matrix { beats: Vec<Vec<bool>> },
    Tree { top: Box<PlainArbiter>, groups: Vec<PlainArbiter>, group: usize },
}

impl PlainArbiter {
    pub(super) fn new(kind: ArbiterKind, size: usize) -> PlainArbiter {
        let tree = |groups: u32, part| {
            let group = size / groups as usize;
            PlainArbiter::Tree {
                top: Box::new(PlainArbiter::new(part, groups as usize)),
                groups: (0..groups).map(|_| PlainArbiter::new(part, group)).collect(),
                group,
            }
        };
        match kind {
            ArbiterKind::RoundRobin => PlainArbiter::RoundRobin { pointer: 0 },
            ArbiterKind::Matrix => {
                let row = |i: usize| (0..size).map(|j| j < i).collect();
                PlainArbiter::Matrix { beats: (0..size).map(row).collect() }
            }
            ArbiterKind::TreeRoundRobin { groups } => tree(groups, ArbiterKind::RoundRobin),
            ArbiterKind::TreeMatrix { groups } => tree(groups, ArbiterKind::Matrix),
        }
    }

    pub(super) fn choose(&self, requests: &[Option<i64>]) -> Option<usize> {
        let highest = (*requests.iter().max()?)?;
        match self {
            PlainArbiter::RoundRobin { pointer } => (0..requests.len())
                .map(|step| (pointer + step) % requests.len())
                .find(|&i| requests[i] == Some(highest)),
            PlainArbiter::Matrix { beats } => (0..requests.len()).find(|&i| {
                let beaten = |j: usize| requests[j] == Some(highest) && beats[j][i];
                requests[i] == Some(highest) && !(0..requests.len()).any(beaten)
            }),
            PlainArbiter::Tree { top, groups, group } => {
                let winners: Vec<_> = groups
                    .iter()
                    .zip(requests.chunks(*group))
                    .map(|(arbiter, requests)| arbiter.choose(requests))
                    .collect();
                let offers: Vec<_> = winners
                    .iter()
                    .enumerate()
                    .map(|(g, winner)| winner.and_then(|member| requests[g * group + member]))
                    .collect();
                let chosen = top.choose(&offers)?;
                Some(chosen * group + winners[chosen]?)
            }
        }
    }

    pub(super) fn serve(&mut self, size: usize, winner: usize) {
        match self {
            PlainArbiter::RoundRobin { pointer } => *pointer = (winner + 1) % size,
            PlainArbiter::Matrix { beats } => {
                for other in (0..size).filter(|&other| other != winner) {
                    beats[winner][other] = false;
                    beats[other][winner] = true;
                }
            }
            PlainArbiter::Tree { top, groups, group } => {
                groups[winner / *group].serve(*group, winner % *group);
                top.serve(size / *group, winner / *group);
            }
        }
    }
}

pub(super) struct Plain {
    kind: AllocatorKind,
    inputs: usize,
    outputs: usize,
    iterations: u32,
    seed: u64,
    input_arbiters: Vec<PlainArbiter>,
    output_arbiters: Vec<PlainArbiter>,
    /// The first diagonal, the first input, or the number of the allocation.
    turn: usize,
    output_of: Vec<Option<usize>>,
    input_of: Vec<Option<usize>>,
}

impl Plain {
    pub(super) fn new(
        kind: AllocatorKind,
        arbiter: ArbiterKind,
        [inputs, outputs]: [u32; 2],
        iterations: u32,
        seed: u64,
    ) -> Plain {
        let [inputs, outputs] = [inputs as usize, outputs as usize];
        let iterates = matches!(kind, AllocatorKind::Islip | AllocatorKind::Pim);
        let arbiter = if iterates { ArbiterKind::RoundRobin } else { arbiter };
        Plain {
            kind,
            inputs,
            outputs,
            iterations,
            seed,
            input_arbiters: (0..inputs).map(|_| PlainArbiter::new(arbiter, outputs)).collect(),
            output_arbiters: (0..outputs).map(|_| PlainArbiter::new(arbiter, inputs)).collect(),
            turn: 0,
            output_of: vec![None; inputs],
            input_of: vec![None; outputs],
        }
    }

    pub(super) fn allocate(&mut self, requests: &[Request]) -> Vec<(u32, u32)> {
        if requests.is_empty() {
            return Vec::new();
        }
        let mut matrix: Matrix = vec![vec![None; self.outputs]; self.inputs];
        for request in requests {
            matrix[request.input as usize][request.output as usize] =
                Some((request.input_priority, request.output_priority));
        }
        self.output_of.fill(None);
        self.input_of.fill(None);
        match self.kind {
            AllocatorKind::SeparableInputFirst => self.inputs_first(&matrix),
            AllocatorKind::SeparableOutputFirst => self.outputs_first(&matrix),
            AllocatorKind::Islip | AllocatorKind::Pim => self.iterate(&matrix),
            AllocatorKind::Wavefront => self.sweep(&matrix),
            AllocatorKind::Maximum => self.fill(&matrix),
        }
        let grant = |(input, output): (usize, &Option<usize>)| {
            output.map(|output| (u32::try_from(input).unwrap(), u32::try_from(output).unwrap()))
        };
        self.output_of.iter().enumerate().filter_map(grant).collect()
    }

    fn grant(&mut self, input: usize, output: usize) {
        assert!(self.output_of[input].is_none() && self.input_of[output].is_none());
        self.output_of[input] = Some(output);
        self.input_of[output] = Some(input);
    }

    fn serve(&mut self, input: usize, output: usize) {
        self.input_arbiters[input].serve(self.outputs, output);
        self.output_arbiters[output].serve(self.inputs, input);
    }

    fn inputs_first(&mut self, matrix: &Matrix) {
        let choices: Vec<_> = (0..self.inputs)
            .map(|i| {
                let requests: Vec<_> =
                    matrix[i].iter().map(|r| r.map(|(input, _)| input)).collect();
                self.input_arbiters[i].choose(&requests)
            })
            .collect();
        for output in 0..self.outputs {
            let requests: Vec<_> = (0..self.inputs)
                .map(|i| matrix[i][output].filter(|_| choices[i] == Some(output)).map(|r| r.1))
                .collect();
            if let Some(input) = self.output_arbiters[output].choose(&requests) {
                self.grant(input, output);
                self.serve(input, output);
            }
        }
    }

    fn outputs_first(&mut self, matrix: &Matrix) {
        let choices: Vec<_> = (0..self.outputs)
            .map(|o| {
                let requests: Vec<_> =
                    matrix.iter().map(|row| row[o].map(|(_, output)| output)).collect();
                self.output_arbiters[o].choose(&requests)
            })
            .collect();
        for input in 0..self.inputs {
            let requests: Vec<_> = (0..self.outputs)
                .map(|o| matrix[input][o].filter(|_| choices[o] == Some(input)).map(|r| r.0))
                .collect();
            if let Some(output) = self.input_arbiters[input].choose(&requests) {
                self.grant(input, output);
                self.serve(input, output);
            }
        }
    }

    /// iSLIP with the pointers of its arbiters, PIM with pointers drawn for every port.
    fn iterate(&mut self, matrix: &Matrix) {
        for iteration in 0..self.iterations {
            if self.kind == AllocatorKind::Pim {
                self.draw_pointers(iteration);
            }
            let free = |i: usize| self.output_of[i].is_none();
            let granted: Vec<_> = (0..self.outputs)
                .map(|o| {
                    let requests: Vec<_> = (0..self.inputs)
                        .map(|i| matrix[i][o].filter(|_| free(i)).map(|_| 0))
                        .collect();
                    let choice = self.output_arbiters[o].choose(&requests);
                    choice.filter(|_| self.input_of[o].is_none())
                })
                .collect();
            for input in 0..self.inputs {
                let requests: Vec<_> =
                    (0..self.outputs).map(|o| (granted[o] == Some(input)).then_some(0)).collect();
                if let Some(output) = self.input_arbiters[input].choose(&requests) {
                    self.grant(input, output);
                    if iteration == 0 {
                        self.serve(input, output);
                    }
                }
            }
        }
        self.turn += 1;
    }

    fn draw_pointers(&mut self, iteration: u32) {
        let seed = random_bits(self.seed, [iteration, 0, 0, 0]);
        let serial = u32::try_from(self.turn).unwrap();
        let draw = |side, port: usize, size: usize| {
            let bits = random_bits(seed, [u32::try_from(port).unwrap(), serial, 0, side]);
            let pointer = usize::try_from(scale(bits, size as u128)).unwrap();
            PlainArbiter::RoundRobin { pointer }
        };
        self.input_arbiters = (0..self.inputs).map(|i| draw(0, i, self.outputs)).collect();
        self.output_arbiters = (0..self.outputs).map(|o| draw(1, o, self.inputs)).collect();
    }

    fn sweep(&mut self, matrix: &Matrix) {
        let size = self.inputs.max(self.outputs);
        let mut levels: Vec<_> = matrix.iter().flatten().flatten().map(|&(i, o)| (o, i)).collect();
        levels.sort_unstable();
        levels.dedup();
        for &(output_priority, input_priority) in levels.iter().rev() {
            for step in 0..size {
                for output in 0..self.outputs {
                    let input = (self.turn + step + size - output) % size;
                    if input < self.inputs
                        && matrix[input][output] == Some((input_priority, output_priority))
                        && self.output_of[input].is_none()
                        && self.input_of[output].is_none()
                    {
                        self.grant(input, output);
                    }
                }
            }
        }
        if !levels.is_empty() {
            self.turn = (self.turn + 1) % size;
        }
    }

    fn fill(&mut self, matrix: &Matrix) {
        while let Some(path) = self.augmenting_path(matrix) {
            for &(input, output) in &path {
                self.output_of[input] = Some(output);
                self.input_of[output] = Some(input);
            }
        }
        self.turn = (self.turn + 1) % self.inputs;
    }

    /// The pairs that a shortest augmenting path would add. The search extends all paths of one
    /// length in order; the first path that ends at a free output wins.
    fn augmenting_path(&self, matrix: &Matrix) -> Option<Vec<(usize, usize)>> {
        let mut seen = vec![false; self.outputs];
        let mut level: Vec<(usize, Vec<(usize, usize)>)> = (0..self.inputs)
            .map(|step| (self.turn + step) % self.inputs)
            .filter(|&input| self.output_of[input].is_none())
            .map(|input| (input, Vec::new()))
            .collect();
        while !level.is_empty() {
            let mut longer = Vec::new();
            for (input, path) in level {
                for output in 0..self.outputs {
                    let held = self.output_of[input] == Some(output);
                    if matrix[input][output].is_none() || held || seen[output] {
                        continue;
                    }
                    seen[output] = true;
                    let mut path = path.clone();
                    path.push((input, output));
                    match self.input_of[output] {
                        None => return Some(path),
                        Some(holder) => longer.push((holder, path)),
                    }
                }
            }
            level = longer;
        }
        None
    }
}
