//! Recorded traffic: every packet listed.

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
}

const HEADER: &str = "cycle,source,destination,flits";

impl Trace {
    /// Reads a file of comma-separated values with the header `cycle,source,destination,flits` and,
    /// for message classes, a fifth column `class`; without it, all packets are of class 0. Empty
    /// lines and lines that start with `#` are ignored. Lines may be in any order.
    ///
    /// # Errors
    /// When a line cannot be read, names an unknown node, or has a packet without flits; the error
    /// names the line.
    pub fn parse(text: &str, nodes: u32) -> Result<Trace, TrafficError> {
        let lines = (1..).zip(text.lines().map(str::trim));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let columns = match lines.next() {
            None => return Err(at(1, format!("expected the header `{HEADER}`"))),
            Some((number, line)) => header(number, line)?,
        };
        let mut records = Vec::new();
        for (number, line) in lines {
            records.push(record(number, line, columns, nodes)?);
        }
        records.sort_by_key(|record| record.cycle);
        Ok(Trace { records })
    }

    /// The packets, by ascending cycle.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// One more than the highest class.
    #[must_use]
    pub fn classes(&self) -> u32 {
        self.records.iter().map(|record| record.class.saturating_add(1)).max().unwrap_or(0)
    }
}

/// The number of columns of the header.
fn header(number: usize, line: &str) -> Result<usize, TrafficError> {
    let names: Vec<_> = line.split(',').map(str::trim).collect();
    match names[..] {
        ["cycle", "source", "destination", "flits"] => Ok(4),
        ["cycle", "source", "destination", "flits", "class"] => Ok(5),
        _ => Err(at(
            number,
            format!("expected the header `{HEADER}` or `{HEADER},class`, not `{line}`"),
        )),
    }
}

fn record(number: usize, line: &str, columns: usize, nodes: u32) -> Result<Record, TrafficError> {
    let fields: Vec<_> = line.split(',').map(str::trim).collect();
    if fields.len() != columns {
        let problem = format!("expected {columns} values, not the {} of `{line}`", fields.len());
        return Err(at(number, problem));
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
        class: fields.get(4).map_or(Ok(0), |class| parse_count(number, class, "class"))?,
    })
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
            "line 2 of the trace: expected the header `cycle,source,destination,flits` or \
             `cycle,source,destination,flits,class`, not `1,2,3,4`"
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
}
