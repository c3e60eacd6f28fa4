//! Bypass: a mesh with selectable links and pieces of bypass wires.
//!
//! A configuration of a [`BypassMesh`], described in [`crate::bypass`]. Only live links are links.
//! They need not connect all nodes: a phase of a schedule may leave out links. Parallel links form
//! a bundle, which routes share.
//!
//! With `distance`, latency and length of the class `bypass` apply per segment.

use super::{Entry, Family, Join, TopologyError, wrong};
use crate::bypass::{BypassMesh, Configuration, Located};
use tutti_units::ids::VertexId;

const NAME: &str = "bypass";

pub(super) const ENTRY: Entry = Entry {
    name: NAME,
    summary: "a mesh with selectable links and pieces of bypass wires along its rows and columns",
    argument: "AxB[,wires=WIRES][,muxes=own|axis|sign|any][,distance]:mesh|A-B|A>B|A=B|A=>B[@WIRE][/OUT/IN][,...]",
    example: "bypass:4x4:mesh,0=>3",
    parse,
};

#[derive(Debug)]
struct Bypass {
    configuration: Configuration,
    by_distance: bool,
}

fn parse(argument: &str) -> Result<Box<dyn Family>, TopologyError> {
    let Some((head, links)) = argument.split_once(':') else {
        let problem = format!(
            "found `{argument}`; expected the size of the mesh, a colon and its live links, such as \
             `4x4:mesh`"
        );
        return Err(wrong(NAME, argument, argument, problem));
    };
    let point = |text: &str, Located { at, error }| {
        let start = text.as_ptr() as usize - argument.as_ptr() as usize;
        let problem = error.to_string();
        TopologyError::Argument {
            family: NAME,
            argument: argument.to_owned(),
            at: start + at,
            problem,
        }
    };
    let (mesh, words) = BypassMesh::parse(head).map_err(|located| point(head, located))?;
    if let Some(word) = words.iter().find(|word| word.trim() != "distance") {
        let problem = format!(
            "found `{}`; expected any of `wires=...`, `muxes=...`, `distance`",
            word.trim()
        );
        return Err(wrong(NAME, argument, word, problem));
    }
    let configuration =
        Configuration::parse(mesh, links).map_err(|located| point(links, located))?;
    if configuration.links().is_empty() {
        let problem = "no link is live; expected at least one, such as `mesh`".to_owned();
        return Err(wrong(NAME, argument, links, problem));
    }
    Ok(Box::new(Bypass { configuration, by_distance: !words.is_empty() }))
}

impl Family for Bypass {
    fn notation(&self) -> String {
        let distance = if self.by_distance { ",distance" } else { "" };
        let mesh = self.configuration.mesh().notation();
        format!("{NAME}:{mesh}{distance}:{}", self.configuration.notation())
    }

    fn size(&self) -> u64 {
        u64::from(self.configuration.mesh().nodes())
    }

    fn link_count(&self) -> u64 {
        self.configuration.links().len() as u64
    }

    fn link_classes(&self) -> Vec<String> {
        vec!["mesh".to_owned(), "bypass".to_owned()]
    }

    fn join(&self, Join { builder, members, links, .. }: Join<'_>) -> Option<VertexId> {
        for link in self.configuration.links() {
            let parameters = if link.is_bypass() {
                let span = if self.by_distance { self.configuration.span(link) } else { 1 };
                links[1].spanning(u64::from(span))
            } else {
                links[0]
            };
            let (from, to) = (link.source as usize, link.destination as usize);
            builder.link(members[from], members[to], parameters);
        }
        None
    }

    fn member_sizes(&self) -> Option<Vec<u32>> {
        let mesh = self.configuration.mesh();
        Some(vec![mesh.columns(), mesh.rows()])
    }

    fn may_be_disconnected(&self) -> bool {
        true
    }

    fn shares_bundles(&self) -> bool {
        true
    }
}
