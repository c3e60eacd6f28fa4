//! The tables of persistent requests at the nodes.

/// An active persistent request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    line: u32,
    write: bool,
    serial: u64,
}

/// The table of a node: the active request of each core. For each line, the request of the
/// lowest-numbered core has priority.
#[derive(Clone, Debug)]
pub(super) struct Table {
    active: Vec<Option<Entry>>,
    count: u32,
    /// By core, the last deactivated request. An activation that arrives after its deactivation is
    /// ignored.
    deactivated: Vec<u64>,
    /// The requests that were active when the node's last one completed. The node sends no further
    /// request for the line until they are deactivated, so the lowest core cannot starve the
    /// others.
    marked: Vec<(u32, u64)>,
}

impl Table {
    pub(super) fn new(nodes: u32) -> Table {
        let nodes = nodes as usize;
        Table {
            active: vec![None; nodes],
            count: 0,
            deactivated: vec![0; nodes],
            marked: Vec::new(),
        }
    }

    /// Returns the core with priority for a line, and whether it writes.
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
        if serial <= self.deactivated[core as usize] {
            return;
        }
        let entry = &mut self.active[core as usize];
        self.count += u32::from(entry.is_none());
        *entry = Some(Entry { line, write, serial });
    }

    pub(super) fn deactivate(&mut self, core: u32, serial: u64) {
        let deactivated = &mut self.deactivated[core as usize];
        *deactivated = serial.max(*deactivated);
        let entry = &mut self.active[core as usize];
        if entry.is_some_and(|entry| entry.serial <= serial) {
            *entry = None;
            self.count -= 1;
        }
    }

    /// Marks the other active requests of the line, when the node's request completes.
    pub(super) fn mark(&mut self, line: u32) {
        let entries = (0..).zip(&self.active);
        let others = entries.filter_map(|(core, entry)| entry.map(|entry| (core, entry)));
        let others = others.filter(|(_, entry)| entry.line == line);
        let others: Vec<(u32, u64)> = others.map(|(core, entry)| (core, entry.serial)).collect();
        self.marked.extend(others);
    }

    /// Returns whether the node may send a persistent request for a line.
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
    fn the_lowest_core_has_priority_until_it_deactivates() {
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
    fn an_activation_that_arrives_after_its_deactivation_is_ignored() {
        let mut table = Table::new(2);
        table.deactivate(1, 5);
        table.activate(1, 7, true, 5);
        assert_eq!(table.first(7), None);
        table.activate(1, 7, true, 6);
        table.deactivate(1, 5);
        assert_eq!(table.first(7), Some((1, true)));
    }

    #[test]
    fn a_node_waits_for_the_requests_that_it_marked() {
        let mut table = Table::new(4);
        table.activate(2, 7, true, 10);
        table.activate(3, 9, true, 11);
        table.mark(7);
        assert!(!table.may_activate(7) && table.may_activate(9));
        table.deactivate(2, 10);
        assert!(table.may_activate(7));
    }
}
