//! Energy of SMART meshes, compared with the DSENT values behind the claims of the paper.

#[path = "../../../tutti-noc/tests/networks/common/mod.rs"]
mod common;

use common::{
    broadcast, classes, collective, combining, greedy, reduction, run, slotted, smart, unicast,
};
use tutti_energy::{
    EnergyReport, MeshComponent, MeshHardware, Technology, mesh_energy, mesh_technology,
};
use tutti_noc::smart::{Counts, Fabric, FanIn, Mesh, Priority, Settings, Tree};
use tutti_units::{Length, Time};

fn hardware(settings: &Settings) -> MeshHardware {
    MeshHardware::new(settings, 128, Length::from_um(1000), Time::from_ps(1000)).unwrap()
}

fn cost(settings: &Settings, counts: &Counts) -> EnergyReport<MeshComponent> {
    let (router, link) = mesh_technology(settings);
    mesh_energy(&hardware(settings), counts, &Technology::build(router, link).unwrap())
}

/// The dynamic energy of components in picojoules.
fn dynamic(report: &EnergyReport<MeshComponent>, components: &[MeshComponent]) -> f64 {
    components.iter().map(|&component| report.dynamic(component).nominal * 1e12).sum()
}

fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance * expected, "{found} instead of {expected}");
}

/// Twelve VCs of one flit per port, as in the table of DSENT values.
fn of_twelve(settings: Settings) -> Settings {
    Settings { classes: classes(&[12], 1), ..settings }
}

const STOP: Counts = {
    let none = Counts {
        injected: 0,
        ejected: 0,
        buffer_writes: 0,
        buffer_reads: 0,
        crossings: [0; 5],
        bypasses: 0,
        link_hops: 0,
        input_arbitrations: 0,
        output_arbitrations: 0,
        requests: 0,
        request_hops: 0,
        response_requests: 0,
        response_request_hops: 0,
        table_reads: 0,
        merged: 0,
        responses_buffered: 0,
        table_entries: 0,
        buffered_flows: 0,
        cycles: 0,
    };
    Counts {
        buffer_writes: 1,
        buffer_reads: 1,
        crossings: [1, 0, 0, 0, 0],
        link_hops: 1,
        input_arbitrations: 1,
        output_arbitrations: 1,
        ..none
    }
};

#[test]
fn a_hop_with_a_stop_is_the_sum_of_its_parts() {
    let report = cost(&of_twelve(Settings::new(8, 8)), &STOP);
    // DSENT 0.9: write, read, crossbar, two arbitrations, wire at three times the minimum spacing.
    let parts = [
        (MeshComponent::BufferWrites, 3.79),
        (MeshComponent::BufferReads, 3.41),
        (MeshComponent::Crossbar, 2.13),
        (MeshComponent::Allocation, 0.61 + 0.13),
        (MeshComponent::Links, 3.72),
    ];
    for (component, picojoules) in parts {
        close(dynamic(&report, &[component]), picojoules, 0.05);
    }
    close(report.total_dynamic().nominal * 1e12, 13.8, 0.01);
    assert_eq!(report.total_leakage().nominal.to_bits(), 0.0_f64.to_bits());
}

#[test]
fn a_hop_without_a_stop_is_the_dearer_crossbar_and_the_faster_wire() {
    let passes = Counts {
        buffer_writes: 0,
        buffer_reads: 0,
        input_arbitrations: 0,
        output_arbitrations: 0,
        ..STOP
    };
    let report = cost(&of_twelve(smart(8, 8)), &passes);
    close(dynamic(&report, &[MeshComponent::Crossbar]), 1.58 * 2.13, 0.01);
    close(dynamic(&report, &[MeshComponent::Links]), 4.16, 1e-9);
    close(report.total_dynamic().nominal * 1e12, 7.5, 0.01);
    // A stop adds 7.9 pJ to a hop.
    let stops = cost(&of_twelve(smart(8, 8)), &STOP);
    let more = stops.total_dynamic().nominal - report.total_dynamic().nominal;
    close(more * 1e12, 7.9, 0.01);
}

#[test]
fn requests_are_as_wide_as_what_they_say() {
    assert_eq!(hardware(&Settings::new(8, 8)).request_bits(), (1, 1));
    assert_eq!(hardware(&smart(8, 8)).request_bits(), (4, 4));
    assert_eq!(hardware(&greedy(Tree::Shared)).request_bits(), (5, 5));
    // Preset slots need no multicast bit in requests.
    assert_eq!(hardware(&slotted(6)).request_bits(), (4, 4));
    let complete = combining(FanIn::Complete, Priority::Local);
    assert_eq!(hardware(&complete).request_bits(), (5, 4 + 1 + 6));
    let request = Counts { request_hops: 8, ..Counts::default() };
    let report = cost(&smart(8, 8), &request);
    close(dynamic(&report, &[MeshComponent::Requests]), 0.91, 0.01);
    let request = Counts { response_request_hops: 8, ..Counts::default() };
    close(dynamic(&cost(&complete, &request), &[MeshComponent::Requests]), 2.5, 0.01);
    let read = Counts { table_reads: 10, ..Counts::default() };
    close(dynamic(&cost(&complete, &read), &[MeshComponent::Tables]), 1.0, 1e-9);
}

#[test]
fn leakage_and_clock_go_with_the_cycles() {
    let cycles = Counts { cycles: 1000, ..Counts::default() };
    let report = cost(&of_twelve(Settings::new(8, 8)), &cycles);
    let microseconds = |component| report.leakage(component).nominal * 1e6;
    // 64 routers for a microsecond: 16.9 mW of buffers, 2.23 of crossbars, 1.69 of allocators, each
    // with its registers; 224 mm of wire.
    close(microseconds(MeshComponent::Buffers), 64.0 * 16.9e-3, 0.1);
    close(microseconds(MeshComponent::Crossbar), 64.0 * 2.23e-3, 0.1);
    close(microseconds(MeshComponent::Allocation), 64.0 * 1.69e-3, 0.1);
    close(dynamic(&report, &[MeshComponent::Clock]), 64.0 * 1000.0 * 0.91, 0.05);
    let repeated = cost(&of_twelve(smart(8, 8)), &cycles);
    close(repeated.leakage(MeshComponent::Links).nominal * 1e6, 224.0 * 0.22e-3, 1e-6);
    close(
        report.total().nominal,
        report.total_dynamic().nominal + report.total_leakage().nominal,
        1e-12,
    );
}

#[test]
fn private_trees_have_buffers_for_each_stage() {
    let router = hardware(&greedy(Tree::Private)).network().router();
    assert_eq!((router.ports(), router.vcs(), router.buffer_flits()), (5, 12, 12));
    let split = Settings { split_vcs: true, ..greedy(Tree::Private) };
    assert_eq!(hardware(&split).network().router().vcs(), 4);
    let deep = Settings { classes: classes(&[4, 2], 5), ..smart(8, 8) };
    let router = hardware(&deep).network().router();
    assert_eq!((router.vcs(), router.buffer_flits()), (6, 30));
}

/// The energy of sequential reductions to every node of a mesh, in picojoules each.
fn reductions(settings: &Settings) -> f64 {
    let settings = of_twelve(settings.clone());
    let mut fabric = Mesh::new(&settings).unwrap();
    for node in 0..64 {
        let now = fabric.now();
        run(&mut fabric, &[(now, reduction(64, node))], now + 1000);
    }
    let report = cost(&settings, &Counts { cycles: 0, ..*fabric.counts() });
    report.total_dynamic().nominal * 1e12 / 64.0
}

#[test]
fn a_reduction_by_tables_takes_less_than_one_hop_by_hop_could() {
    let complete = reductions(&combining(FanIn::Complete, Priority::Local));
    let greedy = reductions(&combining(FanIn::Greedy, Priority::Bypass));
    let merging = reductions(&collective(8, 8));
    let plain = reductions(&smart(8, 8));
    // By hand: 63 hops of 7.5 pJ, stops of 8 pJ at some 20 routers, 16 requests of 2.5 pJ over full
    // rows.
    close(complete, 670.0, 0.15);
    // Merging wherever possible would take 63 hops of 13.8 pJ; this mesh takes more.
    assert!(merging > 63.0 * 13.8, "{merging}");
    assert!(
        complete < greedy && greedy < merging && merging < plain,
        "{complete} {greedy} {merging} {plain}"
    );
}

#[test]
fn nothing_is_counted_twice_or_left_out() {
    // A flit over seven hops of a row: two writes and reads, one stop each, seven links.
    let mut fabric = Mesh::new(&smart(8, 8)).unwrap();
    run(&mut fabric, &[(0, unicast(0, 7))], 100);
    let counts = *fabric.counts();
    let report = cost(&smart(8, 8), &counts);
    let each = |component| dynamic(&report, &[component]);
    close(each(MeshComponent::Links), 7.0 * 4.16, 1e-9);
    // Six bypassed routers, one stop, one NIC.
    let crossing = dynamic(
        &cost(&smart(8, 8), &Counts { crossings: [1, 0, 0, 0, 0], ..Counts::default() }),
        &[MeshComponent::Crossbar],
    );
    close(each(MeshComponent::Crossbar), 8.0 * crossing, 1e-9);
    close(each(MeshComponent::Requests), 7.0 * 4.0 * 0.0285, 1e-9);
    let all: f64 = MeshComponent::ALL.into_iter().map(each).sum();
    close(report.total_dynamic().nominal * 1e12, all, 1e-12);
    // A broadcast has at least 63 hops, and every node a write and a read.
    let mut fabric = Mesh::new(&greedy(Tree::Shared)).unwrap();
    run(&mut fabric, &[(0, broadcast(64, 0))], 100);
    assert_eq!(fabric.counts().link_hops, 63);
    assert_eq!(fabric.counts().buffer_writes, 64);
}
