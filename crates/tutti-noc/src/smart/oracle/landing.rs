//! Flits arrive at routers.

use super::Mesh;
use super::grid::Port;
use super::parts::{Flit, Landing, Rule};

impl Mesh {
    /// Flits that cross in this cycle arrive where they stop, and their copies where they are
    /// retained.
    pub(super) fn land(&mut self) {
        let now = self.now;
        let (mut due, later): (Vec<Landing>, Vec<Landing>) =
            self.landings.drain(..).partition(|landing| landing.at == now);
        self.landings = later;
        due.sort_by_key(|landing| (landing.router, landing.input));
        for Landing { router, input, stops, gone, flit, .. } in due {
            self.come(router, input, stops, &gone, flit);
        }
    }

    /// A flit arrives at an input of a router, where it has a VC.
    pub(super) fn come(
        &mut self,
        router: u32,
        input: Port,
        stops: bool,
        gone: &[Port],
        mut flit: Flit,
    ) {
        self.watchdog.moved(self.now);
        flit.arrived = self.now;
        let mask = self.grid.mask(&flit, router, input, stops).into_iter();
        flit.mask = mask.filter(|output| !gone.contains(output)).collect();
        let combines = flit.combines(Rule::Merge).or(flit.combines(Rule::Table)).is_some();
        self.counts.table_reads += u64::from(combines);
        self.reaches(router, &flit);
        self.counts.buffer_writes += u64::from(flit.mask.is_empty());
        let dropped = flit.mask.is_empty()
            || match (flit.combines(Rule::Merge), flit.combines(Rule::Table)) {
                (Some(flow), _) => self.merge_into_buffered(router, flow, &flit),
                (_, Some(flow)) => self.drop_or_take_over(router, flow, &mut flit),
                _ => false,
            };
        if dropped {
            // A flit that is dropped on injection has no VC.
            if input != Port::Local {
                self.input_mut(router, input).discard(flit.packet);
            }
        } else {
            self.counts.buffer_writes += 1;
            self.counts.responses_buffered += u64::from(combines);
            self.input_mut(router, input).put(flit);
        }
    }
}
