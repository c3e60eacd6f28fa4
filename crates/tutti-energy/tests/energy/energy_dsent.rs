//! Compares the scaling laws of routers and links with DSENT, to which they are fitted, for every
//! value of every configuration that was run.

use tutti_energy::{Component, Costs, Interval, RouterHardware, Technology};
use tutti_units::Length;

/// For laws that cover 3 to 15 ports, 16 to 512 bits and 1 to 128 flits of buffer.
const TOLERANCE: f64 = 0.20;

struct Row {
    name: String,
    counts: Vec<u32>,
    figures: Vec<f64>,
}

/// The rows of a table: a name, `counts` counts, and the values.
fn rows(text: &str, counts: usize) -> Vec<Row> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let (numbers, figures) = cells[1..].split_at(counts);
        Row {
            name: cells[0].to_owned(),
            counts: numbers.iter().map(|cell| cell.parse().unwrap()).collect(),
            figures: figures.iter().map(|cell| cell.parse().unwrap()).collect(),
        }
    };
    lines.map(row).collect()
}

fn hold(what: &str, ours: Interval, theirs: f64, tolerance: f64) {
    let off = ours.nominal / theirs - 1.0;
    let value = ours.nominal;
    assert!(off.abs() <= tolerance, "{what}: {value:.4}, DSENT {theirs:.4}, {:.1} %", off * 100.0);
    assert!(ours.low <= theirs && theirs <= ours.high, "{what}: {theirs} outside {ours:?}");
}

#[test]
fn routers_are_those_of_dsent() {
    let rows = rows(include_str!("energy_dsent_routers.csv"), 4);
    assert!(rows.len() > 80);
    for row in rows {
        let technology = Technology::build(&row.name, "dsent_45nm").unwrap();
        let [ports, vcs, flits, bits] = row.counts[..] else { panic!("four counts") };
        let router = RouterHardware::new(ports, vcs, flits, bits).unwrap();
        let costs = Costs::new(&router, &technology);
        let f = &row.figures;
        let mw = |component| costs.leakage_uw(component).times(1e-3);
        let um2 = |component| costs.area_um2(component);
        let pairs = [
            ("write", costs.buffer_write_pj(), f[0]),
            ("read", costs.buffer_read_pj(), f[1]),
            ("crossbar to 1", costs.crossbar_pj(1), f[2]),
            ("crossbar to 2", costs.crossbar_pj(2), f[3]),
            ("crossbar to 3", costs.crossbar_pj(3), f[4]),
            ("switch allocation", costs.switch_allocation_pj(), f[5] + f[6]),
            ("clock", costs.clock_pj_per_cycle(), f[7]),
            ("leakage of buffers", mw(Component::Buffers), f[8]),
            ("leakage of the crossbar", mw(Component::Crossbar), f[9]),
            ("leakage of the allocator", mw(Component::SwitchAllocator), f[10]),
            ("leakage of the clock", mw(Component::Clock), f[11]),
            ("area of buffers", um2(Component::Buffers), f[12]),
            ("area of the crossbar", um2(Component::Crossbar), f[13]),
            ("area of the allocator", um2(Component::SwitchAllocator), f[14]),
            ("area of the clock", um2(Component::Clock), f[15]),
        ];
        for (what, ours, theirs) in pairs {
            let place = format!("{} {:?}: {what}", row.name, row.counts);
            hold(&place, ours, theirs, TOLERANCE);
        }
    }
}

#[test]
fn links_are_those_of_dsent() {
    let rows = rows(include_str!("energy_dsent_links.csv"), 2);
    assert!(rows.len() > 15);
    for row in rows {
        let technology = Technology::build("dsent_45nm", &row.name).unwrap();
        let (length, bits) = (row.counts[0], row.counts[1]);
        let router = RouterHardware::new(5, 4, 12, bits).unwrap();
        let ours = Costs::new(&router, &technology).link_pj(Length::from_um(length.into()));
        hold(&format!("{} over {length} um", row.name), ours, row.figures[0], 0.02);
    }
}
