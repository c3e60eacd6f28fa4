//! The wavefront allocator: the request matrix is swept along its diagonals, on which no two
//! requests share a row or a column.

use std::cmp::Reverse;

use super::Request;
use super::arbiter::cyclic;

#[derive(Clone, Debug)]
pub(super) struct Wavefront {
    /// Rows and columns of the matrix, made square.
    size: u32,
    /// The first diagonal: the pairs with this sum, modulo `size`.
    diagonal: u32,
    /// Requests in the order in which the wavefront reaches them.
    order: Vec<(SweepKey, usize)>,
    matched_inputs: Vec<bool>,
    matched_outputs: Vec<bool>,
}

/// Priorities, output first, high before low; then the distance of the diagonal.
type SweepKey = (Reverse<(i64, i64)>, u64);

impl Wavefront {
    pub(super) fn new(inputs: u32, outputs: u32) -> Wavefront {
        Wavefront {
            size: inputs.max(outputs),
            diagonal: 0,
            order: Vec::new(),
            matched_inputs: vec![false; inputs as usize],
            matched_outputs: vec![false; outputs as usize],
        }
    }

    pub(super) fn allocate(&mut self, requests: &[Request], grants: &mut Vec<(u32, u32)>) {
        if requests.is_empty() {
            return;
        }
        let before = grants.len();
        self.order.clear();
        for (index, request) in requests.iter().enumerate() {
            let priority = Reverse((request.output_priority, request.input_priority));
            let diagonal = (request.input + request.output) % self.size;
            let distance = cyclic(self.diagonal, diagonal, self.size);
            self.order.push(((priority, distance), index));
        }
        // Requests on the same wavefront do not contend: their order has no effect.
        self.order.sort_unstable();
        for &(_, index) in &self.order {
            let Request { input, output, .. } = requests[index];
            let row = &mut self.matched_inputs[input as usize];
            let column = &mut self.matched_outputs[output as usize];
            if !*row && !*column {
                (*row, *column) = (true, true);
                grants.push((input, output));
            }
        }
        for &(input, output) in &grants[before..] {
            self.matched_inputs[input as usize] = false;
            self.matched_outputs[output as usize] = false;
        }
        self.diagonal = (self.diagonal + 1) % self.size;
    }
}
