//! Butterfly (k-ary n-fly): stages of routers that messages traverse in one direction.
//!
//! After Dally and Towles, "Principles and practices of interconnection networks", 2004, chapter 4:
//! n stages of k^(n - 1) routers with k input and k output links. NPU d sends to router floor(d /
//! k) of stage 0 and receives from router floor(d / k) of the last stage. Output p of router a in
//! stage s leads to the router of stage s + 1 whose number is a with its digit n - 2 - s, in base
//! k, replaced by p. So stage s selects digit n - 1 - s of the destination, and each pair of NPUs
//! has one path: destination-tag routing is the shortest path.

use super::{Entry, Family, Join, TopologyError, count, wrong};
use tutti_units::ids::VertexId;

const NAME: &str = "butterfly";
/// More stages than the limit of NPUs allows.
const MOST_STAGES: u64 = 24;

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "k-ary n-fly: stages of routers with links in one direction, one path for each pair",
    argument: "ARITY:STAGES",
    example: "butterfly:2:3",
    parse,
};

#[derive(Debug)]
struct Butterfly {
    /// k.
    arity: u64,
    /// n.
    stages: u32,
}

fn parse(argument: &str) -> Result<Box<dyn Family>, TopologyError> {
    let Some((arity, stages)) = argument.split_once(':') else {
        let problem = format!(
            "found `{argument}`; expected the links in and out of a router, a colon and the stages, \
             such as `2:3`"
        );
        return Err(wrong(NAME, argument, argument, problem));
    };
    let arity = count(NAME, argument, arity, 2)?;
    let given = count(NAME, argument, stages, 1)?;
    match u32::try_from(given) {
        Ok(stages) if given <= MOST_STAGES => Ok(Box::new(Butterfly { arity, stages })),
        _ => {
            let problem = format!("{given} stages are too many: at most {MOST_STAGES}");
            Err(wrong(NAME, argument, stages, problem))
        }
    }
}

impl Butterfly {
    /// k^(n - 1); saturates, so that the caller can reject it.
    fn routers_per_stage(&self) -> u64 {
        self.arity.saturating_pow(self.stages - 1)
    }
}

impl Family for Butterfly {
    fn notation(&self) -> String {
        format!("{NAME}:{}:{}", self.arity, self.stages)
    }

    fn size(&self) -> u64 {
        self.routers_per_stage().saturating_mul(self.arity)
    }

    fn added_vertices(&self) -> u64 {
        self.routers_per_stage().saturating_mul(u64::from(self.stages))
    }

    fn link_count(&self) -> u64 {
        self.size().saturating_mul(u64::from(self.stages) + 1)
    }

    fn link_classes(&self) -> Vec<String> {
        let between = (1..self.stages).map(|stage| format!("stage {} to {stage}", stage - 1));
        std::iter::once("terminal".to_owned()).chain(between).collect()
    }

    fn join(&self, Join { builder, members, links, prefix }: Join<'_>) -> Option<VertexId> {
        let arity = usize::try_from(self.arity).unwrap_or(usize::MAX);
        let per_stage = members.len() / arity;
        let mut stage: Vec<VertexId> = Vec::new();
        // The distance of numbers that differ by one in the digit that the stage selects.
        let mut stride = per_stage;
        for (number, &link) in links.iter().enumerate() {
            let named = (0..per_stage).map(|a| format!("{prefix}stage{number}.router{a}"));
            let next: Vec<VertexId> = named.map(|name| builder.router(name)).collect();
            if stage.is_empty() {
                for (d, &npu) in members.iter().enumerate() {
                    builder.link(npu, next[d / arity], link);
                }
            } else {
                stride /= arity;
                for (a, &router) in stage.iter().enumerate() {
                    let others = a - a / stride % arity * stride;
                    for output in 0..arity {
                        builder.link(router, next[others + output * stride], link);
                    }
                }
            }
            stage = next;
        }
        for (d, &npu) in members.iter().enumerate() {
            builder.link(stage[d / arity], npu, links[0]);
        }
        None
    }

    /// Every path traverses all stages.
    fn diameter(&self) -> Option<u32> {
        Some(self.stages + 1)
    }

    /// Halves of the NPUs by their first digit, if it has an even number of values. A quarter of
    /// the links after stage 0 lead from this half to the other. No cut is smaller: if every NPU
    /// sent one message to each, itself included, every link would carry N of them, and (N / 2)^2
    /// have to cross.
    fn bisection(&self) -> Option<u64> {
        match self.stages {
            1 => Some(self.size() / 2),
            _ => self.arity.is_multiple_of(2).then(|| self.size() / 4),
        }
    }

    /// NPUs are equivalent.
    fn representatives(&self) -> Option<Vec<VertexId>> {
        Some(vec![VertexId(0)])
    }
}

#[cfg(test)]
mod tests;
