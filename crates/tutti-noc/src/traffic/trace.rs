//! Recorded traffic: every packet listed.

use std::collections::BTreeMap;

use super::TrafficError;

/// A packet of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The cycle in which it is generated.
    pub cycle: u64,
    /// Its source.
    pub source: u32,
    /// Its destination.
    pub destination: u32,
    /// Its size.
    pub flits: u32,
    /// Its message class.
    pub class: u32,
}

/// Packets in the order of their cycles; packets of one cycle in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Trace {
    records: Vec<Record>,
    dependencies: Option<Dependencies>,
}

const HEADER: &str = "cycle,source,destination,flits";

impl Trace {
    /// Reads a file of comma-separated values with the header `cycle,source,destination,flits`, and
    /// then any of the columns `class`, `id`, `after` and `delay`; without `class`, all packets are
    /// of class 0. Empty lines and lines that start with `#` are ignored. Lines may be in any order.
    ///
    /// `after` lists the ids of packets, separated by spaces. A packet is created after they have
    /// arrived, and `delay` cycles more, but not before its cycle.
    ///
    /// # Errors
    /// When a line cannot be read, names an unknown node or packet, has a packet without flits, or
    /// packets depend on each other in a cycle; the error names the line.
    pub fn parse(text: &str, nodes: u32) -> Result<Trace, TrafficError> {
        let lines = (1..).zip(text.lines().map(str::trim));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let columns = match lines.next() {
            None => return Err(at(1, format!("expected the header `{HEADER}`"))),
            Some((number, line)) => Columns::of(number, line)?,
        };
        let mut found = Vec::new();
        for (number, line) in lines {
            found.push((number, columns.record(number, line, nodes)?, line));
        }
        found.sort_by_key(|(_, record, _)| record.cycle);
        let dependencies = match columns.after {
            Some(_) => Some(columns.dependencies(&found)?),
            None => None,
        };
        Ok(Trace {
            records: found.into_iter().map(|(_, record, _)| record).collect(),
            dependencies,
        })
    }

    /// The packets, by ascending cycle.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// What packets wait for, if the trace states it.
    #[must_use]
    pub fn dependencies(&self) -> Option<&Dependencies> {
        self.dependencies.as_ref()
    }

    /// One more than the highest class.
    #[must_use]
    pub fn classes(&self) -> u32 {
        self.records.iter().map(|record| record.class.saturating_add(1)).max().unwrap_or(0)
    }
}

/// A line of a trace: its number, its packet and its text.
type Line<'a> = (usize, Record, &'a str);

/// The places of columns.
struct Columns {
    count: usize,
    class: Option<usize>,
    id: Option<usize>,
    after: Option<usize>,
    delay: Option<usize>,
}

impl Columns {
    fn of(number: usize, line: &str) -> Result<Columns, TrafficError> {
        let names: Vec<_> = line.split(',').map(str::trim).collect();
        let more = names.get(4..).unwrap_or_default();
        let known = ["class", "id", "after", "delay"];
        let is_known =
            |(place, name): (usize, &&str)| known.contains(name) && !more[..place].contains(name);
        let place = |name| more.iter().position(|&column| column == name).map(|place| place + 4);
        let columns = Columns {
            count: names.len(),
            class: place("class"),
            id: place("id"),
            after: place("after"),
            delay: place("delay"),
        };
        let has_four = names.len() >= 4 && names[..4].join(",") == HEADER;
        let is_complete = columns.id.is_some() == columns.after.is_some()
            && (columns.delay.is_none() || columns.after.is_some());
        if has_four && is_complete && more.iter().enumerate().all(is_known) {
            return Ok(columns);
        }
        let problem = format!(
            "expected the header `{HEADER}`, with `class`, or with `id,after` or `id,after,delay`, \
             not `{line}`"
        );
        Err(at(number, problem))
    }

    fn record(&self, number: usize, line: &str, nodes: u32) -> Result<Record, TrafficError> {
        let fields: Vec<_> = line.split(',').map(str::trim).collect();
        if fields.len() != self.count {
            let (count, given) = (self.count, fields.len());
            return Err(at(
                number,
                format!("expected {count} values, not the {given} of `{line}`"),
            ));
        }
        let node = |column: usize, what: &str| {
            let node = parse_count(number, fields[column], what)?;
            let last = nodes.saturating_sub(1);
            let problem =
                || format!("{what} {node} does not exist: the last of {nodes} nodes is {last}");
            if node < nodes { Ok(node) } else { Err(at(number, problem())) }
        };
        let flits = parse_count(number, fields[3], "flits")?;
        if flits == 0 {
            return Err(at(number, "a packet has at least one flit".to_owned()));
        }
        Ok(Record {
            cycle: parse_count(number, fields[0], "cycle")?,
            source: node(1, "source")?,
            destination: node(2, "destination")?,
            flits,
            class: self.class.map_or(Ok(0), |class| parse_count(number, fields[class], "class"))?,
        })
    }

    /// What the packets of sorted lines wait for.
    fn dependencies(&self, lines: &[Line<'_>]) -> Result<Dependencies, TrafficError> {
        let places = self.places(lines)?;
        let mut found = Dependencies {
            waits: Vec::new(),
            delays: Vec::new(),
            dependents: vec![Vec::new(); lines.len()],
        };
        for (place, &(number, _, line)) in (0_u32..).zip(lines) {
            let before = self.before(number, line, &places)?;
            let delay = field(line, self.delay);
            let delay = if delay.is_empty() { 0 } else { parse_count(number, delay, "delay")? };
            if delay > 0 && before.is_empty() {
                return Err(at(number, "a packet with a `delay` waits for no packet".to_owned()));
            }
            found.delays.push(delay);
            found.waits.push(u32::try_from(before.len()).unwrap_or(u32::MAX));
            for earlier in before {
                found.dependents[earlier as usize].push(place);
            }
        }
        match found.in_a_cycle() {
            None => Ok(found),
            Some(place) => {
                let (number, _, line) = lines[place];
                let id = field(line, self.id);
                Err(at(number, format!("packet {id} waits for itself, over `after` of others")))
            }
        }
    }

    /// The places of packets by their ids.
    fn places(&self, lines: &[Line<'_>]) -> Result<BTreeMap<u64, u32>, TrafficError> {
        let mut places = BTreeMap::new();
        for (place, &(number, _, line)) in (0_u32..).zip(lines) {
            let id: u64 = parse_count(number, field(line, self.id), "id")?;
            if places.insert(id, place).is_some() {
                return Err(at(number, format!("packet {id} is listed twice")));
            }
        }
        Ok(places)
    }

    /// The places of the packets that a line waits for, once each.
    fn before(
        &self,
        number: usize,
        line: &str,
        places: &BTreeMap<u64, u32>,
    ) -> Result<Vec<u32>, TrafficError> {
        let mut before = Vec::new();
        for text in field(line, self.after).split_whitespace() {
            let id: u64 = parse_count(number, text, "id in `after`")?;
            let unknown = || at(number, format!("`after` names packet {id}, which is not listed"));
            before.push(*places.get(&id).ok_or_else(unknown)?);
        }
        before.sort_unstable();
        before.dedup();
        Ok(before)
    }
}

/// The text of a column, which may be absent.
fn field(line: &str, column: Option<usize>) -> &str {
    column.and_then(|column| line.split(',').nth(column)).unwrap_or_default().trim()
}

/// What the packets of a trace wait for, by their place in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependencies {
    /// How many packets have to arrive before each is created.
    pub waits: Vec<u32>,
    /// Cycles from the last of these arrivals to the creation.
    pub delays: Vec<u32>,
    /// The packets that wait for each.
    pub dependents: Vec<Vec<u32>>,
}

impl Dependencies {
    /// A packet that waits for itself, directly or over others.
    fn in_a_cycle(&self) -> Option<usize> {
        let mut waits = self.waits.clone();
        let mut free: Vec<usize> = (0..waits.len()).filter(|&place| waits[place] == 0).collect();
        while let Some(place) = free.pop() {
            for &later in &self.dependents[place] {
                waits[later as usize] -= 1;
                if waits[later as usize] == 0 {
                    free.push(later as usize);
                }
            }
        }
        // Follows packets that are left until one repeats: those before it only depend on a cycle.
        let mut place = waits.iter().position(|&left| left > 0)?;
        let mut before = vec![None; waits.len()];
        for earlier in (0..waits.len()).filter(|&earlier| waits[earlier] > 0) {
            for &later in &self.dependents[earlier] {
                before[later as usize] = Some(earlier);
            }
        }
        let mut seen = vec![false; waits.len()];
        while !seen[place] {
            seen[place] = true;
            place = before[place]?;
        }
        Some(place)
    }
}

fn parse_count<T: std::str::FromStr>(
    number: usize,
    text: &str,
    what: &str,
) -> Result<T, TrafficError> {
    let problem = |_| at(number, format!("expected an integer as {what}, not `{text}`"));
    text.parse().map_err(problem)
}

fn at(line: usize, problem: String) -> TrafficError {
    TrafficError::Trace { line, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_sorted_by_cycle_and_keep_their_order_within_one() {
        let text = "# recorded on 4 nodes\ncycle,source,destination,flits,class\n\n7, 1,2, 4,0\n\
                    3,3,0,1,1\r\n7,0,1,4,2\n";
        let trace = Trace::parse(text, 4).unwrap();
        let packet = |cycle, source, destination, flits, class| Record {
            cycle,
            source,
            destination,
            flits,
            class,
        };
        let packets = [packet(3, 3, 0, 1, 1), packet(7, 1, 2, 4, 0), packet(7, 0, 1, 4, 2)];
        assert_eq!(trace.records(), packets);
        assert_eq!(trace.classes(), 3);
    }

    #[test]
    fn a_trace_without_a_class_column_has_one_class() {
        let trace = Trace::parse("cycle,source,destination,flits\n0,0,0,1", 1).unwrap();
        assert_eq!((trace.records()[0].class, trace.classes()), (0, 1));
        assert_eq!(Trace::parse("cycle,source,destination,flits", 1).unwrap(), Trace::default());
    }

    #[test]
    fn a_malformed_line_is_reported_by_number() {
        let message = |text: &str| Trace::parse(text, 4).unwrap_err().to_string();
        let line = |line: &str| message(&format!("cycle,source,destination,flits\n\n{line}"));
        assert_eq!(
            message(""),
            "line 1 of the trace: expected the header `cycle,source,destination,flits`"
        );
        assert_eq!(
            message("#\n1,2,3,4"),
            "line 2 of the trace: expected the header `cycle,source,destination,flits`, with \
             `class`, or with `id,after` or `id,after,delay`, not `1,2,3,4`"
        );
        assert_eq!(line("1,2,3"), "line 3 of the trace: expected 4 values, not the 3 of `1,2,3`");
        assert_eq!(
            line("1,2,x,1"),
            "line 3 of the trace: expected an integer as destination, not `x`"
        );
        assert_eq!(line("-1,2,3,1"), "line 3 of the trace: expected an integer as cycle, not `-1`");
        assert_eq!(
            line("1,4,3,1"),
            "line 3 of the trace: source 4 does not exist: the last of 4 nodes is 3"
        );
        assert_eq!(line("1,2,3,0"), "line 3 of the trace: a packet has at least one flit");
    }

    #[test]
    fn packets_wait_for_others() {
        let text = "cycle,source,destination,flits,id,after,delay\n5,0,1,1,7,,\n0,1,0,1,9,7 7 8,3\n\
                    2,2,0,1,8,7,";
        let trace = Trace::parse(text, 4).unwrap();
        let found = trace.dependencies().unwrap();
        // In the order of cycles: 9, 8, 7.
        assert_eq!(found.waits, [2, 1, 0]);
        assert_eq!(found.delays, [3, 0, 0]);
        assert_eq!(found.dependents, [vec![], vec![0], vec![0, 1]]);
        let none = Trace::parse("cycle,source,destination,flits\n0,0,1,1", 4).unwrap();
        assert_eq!(none.dependencies(), None);
    }

    #[test]
    fn dependencies_that_cannot_be_met_are_refused() {
        let message = |lines: &str| {
            let text = format!("cycle,source,destination,flits,id,after,delay\n{lines}");
            Trace::parse(&text, 4).unwrap_err().to_string()
        };
        for (lines, expected) in [
            ("0,0,1,1,7,8,", "line 2 of the trace: `after` names packet 8, which is not listed"),
            ("0,0,1,1,7,,\n0,0,1,1,7,,", "line 3 of the trace: packet 7 is listed twice"),
            ("0,0,1,1,7,,4", "line 2 of the trace: a packet with a `delay` waits for no packet"),
            ("0,0,1,1,7,x,", "line 2 of the trace: expected an integer as id in `after`, not `x`"),
            ("0,0,1,1,,,", "line 2 of the trace: expected an integer as id, not ``"),
            (
                "0,0,1,1,5,6,\n0,0,1,1,6,7,\n0,0,1,1,7,6,",
                "line 3 of the trace: packet 6 waits for itself, over `after` of others",
            ),
        ] {
            assert_eq!(message(lines), expected);
        }
        for header in ["id", "after", "id,delay", "class,class", "colour"] {
            let text = format!("cycle,source,destination,flits,{header}\n");
            let message = Trace::parse(&text, 4).unwrap_err().to_string();
            assert!(message.contains("expected the header"), "{message}");
        }
    }
}
