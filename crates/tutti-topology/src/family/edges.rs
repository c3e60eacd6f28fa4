//! Edges: a graph as a list, `0-1` for a cable and `0>1` for a link in one direction.

use super::{Entry, Family, Join, TopologyError, count, wrong};
use tutti_units::ids::VertexId;

const NAME: &str = "edges";

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "a list of cables (a-b) and one-directional links (a>b) between NPUs",
    argument: "A-B[,C>D...]",
    example: "edges:0-1,1-2,2-3,3>0",
    parse,
};

#[derive(Debug)]
struct Edges {
    members: u64,
    edges: Vec<Edge>,
}

#[derive(Debug)]
struct Edge {
    from: u64,
    to: u64,
    cable: bool,
}

fn parse(argument: &str) -> Result<Box<dyn Family>, TopologyError> {
    let mut edges = Vec::new();
    for part in argument.split(',') {
        let Some(position) = part.find(['-', '>']) else {
            let problem = format!("found `{part}`; expected a cable `0-1` or a link `0>1`");
            return Err(wrong(NAME, argument, part, problem));
        };
        let (from, to) = (&part[..position], &part[position + 1..]);
        edges.push(Edge {
            from: count(NAME, argument, from, 0)?,
            to: count(NAME, argument, to, 0)?,
            cable: part.as_bytes()[position] == b'-',
        });
    }
    let members = edges.iter().map(|edge| edge.from.max(edge.to) + 1).max().unwrap_or(0);
    Ok(Box::new(Edges { members, edges }))
}

impl Family for Edges {
    fn notation(&self) -> String {
        let edge = |edge: &Edge| {
            let sign = if edge.cable { '-' } else { '>' };
            format!("{}{sign}{}", edge.from, edge.to)
        };
        format!("{NAME}:{}", self.edges.iter().map(edge).collect::<Vec<_>>().join(","))
    }

    fn size(&self) -> u64 {
        self.members
    }

    fn link_count(&self) -> u64 {
        self.edges.iter().map(|edge| if edge.cable { 2 } else { 1 }).sum()
    }

    fn join(&self, Join { builder, members, links, .. }: Join<'_>) -> Option<VertexId> {
        let member = |index: u64| usize::try_from(index).ok().and_then(|index| members.get(index));
        for edge in &self.edges {
            if let (Some(&from), Some(&to)) = (member(edge.from), member(edge.to)) {
                builder.link(from, to, links[0]);
                if edge.cable {
                    builder.link(to, from, links[0]);
                }
            }
        }
        None
    }
}
