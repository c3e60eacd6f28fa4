//! Paths that are preset in certain cycles (SFO_Complete).

use super::Mesh;
use super::grid::{CornerTree, Port};
use super::parts::{Cargo, Flit};
use super::paths::Reached;
use crate::smart::settings::FanOut;

/// A multicast that waits for its slot: its router, input and VC.
type Waiting = (u32, Port, usize);

impl Mesh {
    /// Cycles from slot to slot, if any.
    pub(super) fn interval(&self) -> Option<u64> {
        match self.settings.fan_out {
            FanOut::Complete { interval } => Some(u64::from(interval)),
            _ => None,
        }
    }

    /// Cycles since the start of the slots for straights, if the cycle has preset paths.
    fn phase(&self, cycle: u64) -> Option<u64> {
        let phase = cycle % self.interval()?;
        (phase < u64::from(self.settings.preset_cycles())).then_some(phase)
    }

    /// Whether edges are longer than flits go in a cycle.
    fn is_long(&self) -> bool {
        self.settings.preset_cycles() > 2
    }

    /// Whether an input is reserved for preset paths in a cycle.
    pub(super) fn keeps_input(&self, router: u32, port: Port, cycle: u64) -> bool {
        let Some(phase) = self.phase(cycle) else { return false };
        if self.is_long() {
            return true;
        }
        let trees = self.grid.corner_trees();
        let comes_by = |tree: &CornerTree| {
            tree.corner == router
                || (port == tree.straight.opposite() && self.edge(tree).contains(&router))
        };
        if phase == 0 { trees.iter().any(comes_by) } else { port != Port::Local }
    }

    /// Whether an output is reserved for preset paths in a cycle.
    pub(super) fn keeps_output(&self, router: u32, port: Port, cycle: u64) -> bool {
        let Some(phase) = self.phase(cycle) else { return false };
        if self.is_long() {
            return true;
        }
        let trees = self.grid.corner_trees();
        let goes_on = |tree: &CornerTree| {
            port == tree.straight && (tree.corner == router || self.edge(tree).contains(&router))
        };
        if phase == 0 { trees.iter().any(goes_on) } else { port != Port::Local }
    }

    /// Whether ejection is blocked in a cycle.
    pub(super) fn blocks_ejection(&self, cycle: u64) -> bool {
        self.phase(cycle).is_some()
    }

    /// The routers of a tree's edge but for the corner.
    fn edge(&self, tree: &CornerTree) -> Vec<u32> {
        self.grid.line(tree.corner, tree.straight)
    }

    /// The delay, in cycles, after which a flit has made so many hops.
    fn preset_delay(&self, hops: usize) -> u64 {
        let reach = self.settings.hops_per_cycle as usize;
        u64::try_from(hops.div_ceil(reach)).expect("lines are short").saturating_sub(1)
    }

    /// Sends the multicasts that wait for the slot of this cycle.
    pub(super) fn send_on_preset_paths(&mut self) {
        let Some(phase) = self.phase(self.now) else { return };
        for tree in self.grid.corner_trees() {
            if phase == 0 {
                self.send_straight(&tree);
                continue;
            }
            let edge = self.edge(&tree);
            for (hops, router) in (0..).zip(std::iter::once(tree.corner).chain(edge)) {
                if phase == 1 + self.preset_delay(hops) {
                    self.send_turn(&tree, router);
                }
            }
        }
    }

    fn send_straight(&mut self, tree: &CornerTree) {
        let edge = self.edge(tree);
        let Some(waiting) = self.first(tree, tree.corner, tree.straight) else { return };
        let flit = self.flit_of(waiting);
        let pool = self.pool(flit.class, 1);
        let input = tree.straight.opposite();
        if edge.iter().all(|&router| self.input(router, input).takes(pool, flit.packet, self.now)) {
            self.send_preset(waiting, &flit, tree.straight, &edge, true);
        }
    }

    fn send_turn(&mut self, tree: &CornerTree, router: u32) {
        let line = self.grid.line(router, tree.turn);
        let Some(waiting) = self.first(tree, router, tree.turn) else { return };
        let flit = self.flit_of(waiting);
        let pool = self.pool(flit.class, 2);
        let input = tree.turn.opposite();
        let has_free_vc =
            line.iter().all(|&router| self.input(router, input).takes(pool, flit.packet, self.now));
        if has_free_vc {
            self.send_preset(waiting, &flit, tree.turn, &line, false);
        }
    }

    fn send_preset(
        &mut self,
        (router, input, vc): Waiting,
        flit: &Flit,
        output: Port,
        line: &[u32],
        takes_input: bool,
    ) {
        self.watchdog.moved(self.now);
        self.counts.buffer_reads += 1;
        self.counts.crossings[0] += 1;
        let now = self.now;
        for (place, _) in line.iter().enumerate() {
            let from = if place == 0 { router } else { line[place - 1] };
            let at = now + self.preset_delay(place + 1);
            let input = if place == 0 { input } else { output.opposite() };
            self.audit.crosses(at, from, output);
            if place > 0 || takes_input {
                self.audit.passes(at, from, input, flit);
            }
        }
        let delays: Vec<u64> = (1..=line.len()).map(|hops| now + self.preset_delay(hops)).collect();
        let last = line.len() - 1;
        let route: Vec<Reached> = (0..)
            .zip(line)
            .map(|(place, &router)| Reached {
                router,
                input: output.opposite(),
                on: if place == last { Vec::new() } else { vec![output] },
            })
            .collect();
        self.set_out(flit, router, &route, |place| delays[place], true);
        self.uncover(router, input, vc, output);
    }

    fn flit_of(&self, (router, input, vc): Waiting) -> Flit {
        self.input(router, input).vcs[vc].flits[0].clone()
    }

    /// The oldest multicast of a tree at a router that still requests an output.
    fn first(&self, tree: &CornerTree, router: u32, output: Port) -> Option<Waiting> {
        let mut waiting: Vec<(u64, Port, usize)> = Vec::new();
        for input in Port::ALL {
            for (vc, buffer) in self.input(router, input).vcs.iter().enumerate() {
                let Some(flit) = buffer.flits.front() else { continue };
                let is_on_tree = matches!(flit.cargo, Cargo::Multicast { .. })
                    && self.grid.corner_tree(flit.source) == *tree
                    && flit.stage < 2
                    && !self.grid.is_to_corner(flit, router);
                if is_on_tree && flit.mask.contains(&output) {
                    waiting.push((flit.arrived, input, vc));
                }
            }
        }
        let (_, input, vc) = waiting.into_iter().min()?;
        Some((router, input, vc))
    }
}
