//! Separable allocators: arbiters on one side choose, then arbiters on the other.

use super::stages::{Side, Stages};
use super::{AllocatorError, ArbiterKind, Arbiters, Request};

#[derive(Clone, Debug)]
pub(super) struct Separable {
    stages: Stages,
    inputs: Arbiters,
    outputs: Arbiters,
}

impl Separable {
    pub(super) fn new(
        first: Side,
        arbiter: ArbiterKind,
        inputs: u32,
        outputs: u32,
    ) -> Result<Separable, AllocatorError> {
        Ok(Separable {
            stages: Stages::new(first, inputs, outputs),
            inputs: Arbiters::new(arbiter, inputs, outputs)?,
            outputs: Arbiters::new(arbiter, outputs, inputs)?,
        })
    }

    pub(super) fn allocate(&mut self, requests: &[Request], grants: &mut Vec<(u32, u32)>) {
        let before = grants.len();
        let claim = |side: Side, request: &Request| {
            let arbiters = match side {
                Side::Input => &self.inputs,
                Side::Output => &self.outputs,
            };
            let (port, contender) = (side.port(request), side.other().port(request));
            arbiters.claim(port, contender, side.priority(request))
        };
        self.stages.round(requests, claim, grants);
        // Only a grant advances the arbiters; an unsuccessful choice does not.
        for &(input, output) in &grants[before..] {
            self.inputs.serve(input, output);
            self.outputs.serve(output, input);
        }
        self.stages.finish(&grants[before..]);
    }
}
