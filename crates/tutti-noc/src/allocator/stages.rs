//! Two stages of arbitration: every port of one side selects one of its requests, then every port
//! of the other side selects one of those.

use super::Request;
use super::arbiter::Claim;

/// The side of an allocator on which a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Input,
    Output,
}

impl Side {
    pub(super) fn other(self) -> Side {
        match self {
            Side::Input => Side::Output,
            Side::Output => Side::Input,
        }
    }

    /// The port of a request on this side.
    #[inline]
    pub(super) fn port(self, request: &Request) -> u32 {
        match self {
            Side::Input => request.input,
            Side::Output => request.output,
        }
    }

    /// How urgent a request is to its port on this side.
    #[inline]
    pub(super) fn priority(self, request: &Request) -> i64 {
        match self {
            Side::Input => request.input_priority,
            Side::Output => request.output_priority,
        }
    }
}

/// What the ports of one side have picked so far.
#[derive(Clone, Debug)]
struct Picks {
    side: Side,
    /// The best request of each port, as an index.
    best: Vec<Option<(Claim, usize)>>,
    /// Ports with a request.
    requested: Vec<u32>,
}

impl Picks {
    fn new(side: Side, ports: u32) -> Picks {
        Picks { side, best: vec![None; ports as usize], requested: Vec::new() }
    }

    #[inline]
    fn offer(&mut self, claim: Claim, requests: &[Request], index: usize) {
        let port = self.side.port(&requests[index]);
        match &mut self.best[port as usize] {
            Some((best, _)) if *best >= claim => {}
            Some(pick) => *pick = (claim, index),
            none => {
                *none = Some((claim, index));
                self.requested.push(port);
            }
        }
    }

    /// Returns the selections and clears them.
    #[inline]
    fn take(&mut self, mut each: impl FnMut(usize)) {
        for port in self.requested.drain(..) {
            if let Some((_, index)) = self.best[port as usize].take() {
                each(index);
            }
        }
    }
}

/// Buffers of the two stages, reused by every allocation.
#[derive(Clone, Debug)]
pub(super) struct Stages {
    first: Picks,
    second: Picks,
    matched_inputs: Vec<bool>,
    matched_outputs: Vec<bool>,
}

impl Stages {
    /// Ports of side `first` pick first.
    pub(super) fn new(first: Side, inputs: u32, outputs: u32) -> Stages {
        let picks = |side| match side {
            Side::Input => Picks::new(side, inputs),
            Side::Output => Picks::new(side, outputs),
        };
        Stages {
            first: picks(first),
            second: picks(first.other()),
            matched_inputs: vec![false; inputs as usize],
            matched_outputs: vec![false; outputs as usize],
        }
    }

    /// One round of both stages among the ports without a grant; `claim` compares the requests on a
    /// side. Appends the grants.
    #[inline]
    pub(super) fn round(
        &mut self,
        requests: &[Request],
        claim: impl Fn(Side, &Request) -> Claim,
        grants: &mut Vec<(u32, u32)>,
    ) {
        let Stages { first, second, matched_inputs, matched_outputs } = self;
        for (index, request) in requests.iter().enumerate() {
            if !matched_inputs[request.input as usize] && !matched_outputs[request.output as usize]
            {
                first.offer(claim(first.side, request), requests, index);
            }
        }
        first.take(|index| second.offer(claim(second.side, &requests[index]), requests, index));
        second.take(|index| {
            let Request { input, output, .. } = requests[index];
            matched_inputs[input as usize] = true;
            matched_outputs[output as usize] = true;
            grants.push((input, output));
        });
    }

    /// The allocation that made these grants is over.
    pub(super) fn finish(&mut self, grants: &[(u32, u32)]) {
        for &(input, output) in grants {
            self.matched_inputs[input as usize] = false;
            self.matched_outputs[output as usize] = false;
        }
    }
}
