//! Maximum matching: shortest augmenting paths until none is left.

use super::Request;

#[derive(Clone, Debug)]
pub(super) struct Maximum {
    inputs: u32,
    /// The input at which the search for augmenting paths starts.
    first: u32,
    /// (input, output) of the requests, ascending.
    edges: Vec<(u32, u32)>,
    output_of: Vec<Option<u32>>,
    input_of: Vec<Option<u32>>,
    /// The input from which an output was reached, in the search for a path.
    from: Vec<Option<u32>>,
    /// Outputs that were reached.
    reached: Vec<u32>,
    /// The queue of inputs of the breadth-first search.
    queue: Vec<u32>,
}

impl Maximum {
    pub(super) fn new(inputs: u32, outputs: u32) -> Maximum {
        Maximum {
            inputs,
            first: 0,
            edges: Vec::new(),
            output_of: vec![None; inputs as usize],
            input_of: vec![None; outputs as usize],
            from: vec![None; outputs as usize],
            reached: Vec::new(),
            queue: Vec::new(),
        }
    }

    pub(super) fn allocate(&mut self, requests: &[Request], grants: &mut Vec<(u32, u32)>) {
        self.edges.clear();
        self.edges.extend(requests.iter().map(|request| (request.input, request.output)));
        self.edges.sort_unstable();
        while let Some(end) = self.path() {
            self.augment(end);
        }
        for &(input, _) in &self.edges {
            if let Some(output) = self.output_of[input as usize].take() {
                self.input_of[output as usize] = None;
                grants.push((input, output));
            }
        }
        self.first = (self.first + 1) % self.inputs;
    }

    /// Searches breadth first from the inputs without a grant, those at and after `first` before
    /// the others, for an output without one.
    fn path(&mut self) -> Option<u32> {
        for output in self.reached.drain(..) {
            self.from[output as usize] = None;
        }
        self.queue.clear();
        let turn = self.edges.partition_point(|&(input, _)| input < self.first);
        let (after, at) = self.edges.split_at(turn);
        for &(input, _) in at.iter().chain(after) {
            if self.output_of[input as usize].is_none() && self.queue.last() != Some(&input) {
                self.queue.push(input);
            }
        }
        let mut next = 0;
        while let Some(&input) = self.queue.get(next) {
            next += 1;
            let start = self.edges.partition_point(|&(other, _)| other < input);
            let own = self.edges[start..].iter().take_while(|(other, _)| *other == input);
            for &(_, output) in own {
                if self.from[output as usize].is_some()
                    || self.output_of[input as usize] == Some(output)
                {
                    continue;
                }
                self.from[output as usize] = Some(input);
                self.reached.push(output);
                match self.input_of[output as usize] {
                    None => return Some(output),
                    Some(holder) => self.queue.push(holder),
                }
            }
        }
        None
    }

    /// Along the path that ends at `output`, every input releases its output and takes the next.
    fn augment(&mut self, mut output: u32) {
        while let Some(input) = self.from[output as usize] {
            self.input_of[output as usize] = Some(input);
            match self.output_of[input as usize].replace(output) {
                None => break,
                Some(before) => output = before,
            }
        }
    }
}
