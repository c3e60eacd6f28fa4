//! Persistent requests: what each node knows of them.

/// A persistent request that is active.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    line: u32,
    write: bool,
    serial: u64,
}

/// The table of a node: for each core its request, if one is active. Of those for a line the one of the
/// lowest core goes first.
#[derive(Clone, Debug)]
pub(super) struct Table {
    active: Vec<Option<Entry>>,
    count: u32,
    /// By core, the last request that is over: one that comes after its end is not active.
    over: Vec<u64>,
    /// Those that were active when the node's own was done: it sends no further one for the line before
    /// they are over, so that the lowest core does not keep the others waiting forever.
    marked: Vec<(u32, u64)>,
}

impl Table {
    pub(super) fn new(nodes: u32) -> Table {
        let nodes = nodes as usize;
        Table { active: vec![None; nodes], count: 0, over: vec![0; nodes], marked: Vec::new() }
    }

    /// Whose request of a line goes first, and whether it is to write.
    #[inline]
    pub(super) fn first(&self, line: u32) -> Option<(u32, bool)> {
        if self.count == 0 {
            return None;
        }
        (0..).zip(&self.active).find_map(|(core, entry)| {
            entry.filter(|entry| entry.line == line).map(|entry| (core, entry.write))
        })
    }

    pub(super) fn activate(&mut self, core: u32, line: u32, write: bool, serial: u64) {
        if serial <= self.over[core as usize] {
            return;
        }
        let entry = &mut self.active[core as usize];
        self.count += u32::from(entry.is_none());
        *entry = Some(Entry { line, write, serial });
    }

    pub(super) fn deactivate(&mut self, core: u32, serial: u64) {
        let over = &mut self.over[core as usize];
        *over = serial.max(*over);
        let entry = &mut self.active[core as usize];
        if entry.is_some_and(|entry| entry.serial <= serial) {
            *entry = None;
            self.count -= 1;
        }
    }

    /// The node's own request is done: marks the others of the line.
    pub(super) fn mark(&mut self, line: u32) {
        let entries = (0..).zip(&self.active);
        let others = entries.filter_map(|(core, entry)| entry.map(|entry| (core, entry)));
        let others = others.filter(|(_, entry)| entry.line == line);
        let others: Vec<(u32, u64)> = others.map(|(core, entry)| (core, entry.serial)).collect();
        self.marked.extend(others);
    }

    /// Whether the node may send a persistent request for a line.
    pub(super) fn may_activate(&mut self, line: u32) -> bool {
        let active = &self.active;
        self.marked.retain(|&(core, serial)| {
            active[core as usize].is_some_and(|entry| entry.serial == serial)
        });
        let of_line =
            |&(core, _): &(u32, u64)| active[core as usize].is_some_and(|entry| entry.line == line);
        !self.marked.iter().any(of_line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_core_of_the_line_goes_first_until_it_is_done() {
        let mut table = Table::new(4);
        assert_eq!(table.first(7), None);
        table.activate(3, 7, true, 10);
        table.activate(1, 7, false, 11);
        table.activate(0, 8, true, 12);
        assert_eq!(table.first(7), Some((1, false)));
        table.deactivate(1, 11);
        assert_eq!((table.first(7), table.first(8)), (Some((3, true)), Some((0, true))));
    }

    #[test]
    fn an_activation_that_comes_after_its_end_is_not_active() {
        let mut table = Table::new(2);
        table.deactivate(1, 5);
        table.activate(1, 7, true, 5);
        assert_eq!(table.first(7), None);
        table.activate(1, 7, true, 6);
        table.deactivate(1, 5);
        assert_eq!(table.first(7), Some((1, true)));
    }

    #[test]
    fn a_node_waits_for_those_that_waited_for_it() {
        let mut table = Table::new(4);
        table.activate(2, 7, true, 10);
        table.activate(3, 9, true, 11);
        table.mark(7);
        assert!(!table.may_activate(7) && table.may_activate(9));
        table.deactivate(2, 10);
        assert!(table.may_activate(7));
    }
}
