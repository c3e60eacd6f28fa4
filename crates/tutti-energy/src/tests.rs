use proptest::prelude::*;

use super::*;
use tutti_units::{Length, Time};

/// A technology with round numbers, for sums by hand.
fn round() -> Technology {
    let values = [
        (Parameter::BufferWrite, 1.0),
        (Parameter::BufferWriteDepth, 0.5),
        (Parameter::BufferRead, 2.0),
        (Parameter::BufferReadDepth, 0.25),
        (Parameter::Crossbar, 1.0),
        (Parameter::CrossbarPort, 0.2),
        (Parameter::Branch, 0.5),
        (Parameter::BranchPort, 0.1),
        (Parameter::CrossbarFactor, 2.0),
        (Parameter::Arbiter, 3.0),
        (Parameter::ArbiterBend, 4.0),
        (Parameter::VcAllocatorRatio, 2.0),
        (Parameter::Clock, 5.0),
        (Parameter::ClockSize, 0.1),
        (Parameter::BufferLeakage, 1.0),
        (Parameter::BufferLeakageDepth, 2.0),
        (Parameter::CrossbarLeakage, 1.0),
        (Parameter::CrossbarLeakageCross, 3.0),
        (Parameter::ArbiterLeakage, 1.0),
        (Parameter::ClockLeakage, 10.0),
        (Parameter::ClockLeakageSize, 0.5),
        (Parameter::BufferArea, 1.0),
        (Parameter::BufferAreaDepth, 2.0),
        (Parameter::CrossbarArea, 1.0),
        (Parameter::CrossbarAreaCross, 0.1),
        (Parameter::ArbiterArea, 2.0),
        (Parameter::ClockArea, 7.0),
        (Parameter::ClockAreaSize, 0.1),
        (Parameter::TableRead, 0.75),
        (Parameter::Crossing, 0.5),
        (Parameter::Wire, 0.25),
        (Parameter::Included, 1.0),
        (Parameter::Signal, 0.5),
        (Parameter::WireLeakage, 2.0),
        (Parameter::WireArea, 3.0),
    ];
    let start = Technology::build("dsent_45nm", "dsent_45nm").unwrap();
    let with = |technology: Technology, (parameter, value)| {
        technology.with(parameter, Constant::of(value, "round, for a sum by hand")).unwrap()
    };
    values.into_iter().fold(start, with)
}

/// 5 ports, 4 VCs, 8 flits of 10 bits; two routers, three links of 1 mm and four of 3 mm, 2 ns per
/// cycle.
fn small() -> NetworkHardware {
    let links = vec![
        LinkHardware { length: Length::from_um(1_000), count: 3 },
        LinkHardware { length: Length::from_um(3_000), count: 4 },
    ];
    NetworkHardware::new(RouterHardware::new(5, 4, 8, 10).unwrap(), 2, links, Time::from_ps(2_000))
        .unwrap()
}

fn few() -> EventCounts {
    EventCounts {
        cycles: 100,
        buffer_writes: 7,
        buffer_reads: 6,
        crossbar_traversals: vec![4, 0, 2],
        vc_allocations: 3,
        switch_allocations: 6,
        link_flits: vec![5, 2],
        signal_bit_um: 4_000,
    }
}

fn close(found: f64, expected: f64, tolerance: f64, what: &str) {
    let off = (found - expected).abs();
    assert!(off <= tolerance * expected.abs(), "{what}: {found:e} instead of {expected:e}");
}

#[test]
fn dynamic_energy_is_the_sum_by_hand() {
    let report = energy(&small(), &few(), &round()).unwrap();
    let pj = |component| report.dynamic(component).nominal * 1e12;
    // Writes take 10 (1 + 0.5 * 8) = 50, reads 10 (2 + 0.25 * 8) = 40: 7 * 50 + 6 * 40.
    close(pj(Component::Buffers), 590.0, 1e-12, "buffers");
    // One output takes 2 * 10 (1 + 0.2 * 5) = 40, each further one 2 * 10 (0.5 + 0.1 * 5) = 20: 4 *
    // 40 + 2 * (40 + 2 * 20).
    close(pj(Component::Crossbar), 320.0, 1e-12, "crossbar");
    // Arbitration among 4 VCs takes 3 * 9 / 8, among 5 ports 3 * 16 / 9.
    let switch = 3.375 + 16.0 / 3.0;
    close(pj(Component::SwitchAllocator), 6.0 * switch, 1e-12, "switch allocator");
    close(pj(Component::VcAllocator), 3.0 * 2.0 * switch, 1e-12, "VC allocator");
    // The included length takes 10 * 0.5 = 5, 2 mm more 10 (0.5 + 0.25 * 2) = 10; signals 0.5 per
    // bit and mm.
    close(pj(Component::Links), 5.0 * 5.0 + 2.0 * 10.0 + 4.0 * 0.5, 1e-12, "links");
    // 2 routers, 100 cycles, 5 + 0.1 * 50.
    close(pj(Component::Clock), 2_000.0, 1e-12, "clock");
}

#[test]
fn leakage_is_the_sum_by_hand() {
    let report = energy(&small(), &few(), &round()).unwrap();
    // 100 cycles of 2 ns: 1 uW is 0.2 pJ.
    let uw = |component| report.leakage(component).nominal * 1e12 / 0.2;
    close(uw(Component::Buffers), 2.0 * 5.0 * 10.0 * 17.0, 1e-12, "buffers");
    close(uw(Component::Crossbar), 2.0 * 5.0 * 10.0 * 16.0, 1e-12, "crossbar");
    // 5 arbiters over 4 and 5 over 5: 5 (12 + 20) = 160 pairs.
    close(uw(Component::SwitchAllocator), 2.0 * 160.0, 1e-12, "switch allocator");
    close(uw(Component::VcAllocator), 2.0 * 320.0, 1e-12, "VC allocator");
    // 2 per bit and mm: 10 bits, 3 * 1 + 4 * 3 mm.
    close(uw(Component::Links), 300.0, 1e-12, "links");
    close(uw(Component::Clock), 2.0 * 35.0, 1e-12, "clock");
    let total = report.total_dynamic().nominal + report.total_leakage().nominal;
    close(report.total().nominal, total, 1e-15, "total");
}

#[test]
fn area_is_the_sum_by_hand() {
    let report = area(&small(), &round());
    let um2 = |component| report.um2(component).nominal;
    close(um2(Component::Buffers), 2.0 * 50.0 * 17.0, 1e-12, "buffers");
    close(um2(Component::Crossbar), 2.0 * 50.0 * 6.0, 1e-12, "crossbar");
    close(um2(Component::SwitchAllocator), 2.0 * 320.0, 1e-12, "switch allocator");
    close(um2(Component::VcAllocator), 2.0 * 640.0, 1e-12, "VC allocator");
    close(um2(Component::Links), 3.0 * 150.0, 1e-12, "links");
    close(um2(Component::Clock), 2.0 * 12.0, 1e-12, "clock");
    let sum: f64 = Component::ALL.iter().map(|component| um2(*component)).sum();
    close(report.total_um2().nominal, sum, 1e-15, "total");
}

#[test]
fn bounds_multiply_and_add() {
    let source = "bounds for a sum by hand";
    let technology = round()
        .with(Parameter::Crossbar, Constant::of(1.0, source).within(0.5, 2.0))
        .unwrap()
        .with(Parameter::CrossbarFactor, Constant::of(2.0, source).within(1.0, 3.0))
        .unwrap();
    let costs = Costs::new(&small().router(), &technology).crossbar_pj(1);
    // 10 (1 + 0.2 * 5) * 2, 10 (0.5 + 1) * 2 and 10 (2 + 1) * 6.
    close(costs.low, 30.0, 1e-12, "low");
    close(costs.nominal, 40.0, 1e-12, "nominal");
    close(costs.high, 180.0, 1e-12, "high");
    assert!(Costs::new(&small().router(), &technology).crossbar_pj(0).high.abs() < 1e-30);
}

#[test]
fn nothing_happens_at_no_cost_and_only_time_leaks() {
    let idle = EventCounts { link_flits: vec![0, 0], ..EventCounts::default() };
    let report = energy(&small(), &idle, &round()).unwrap();
    assert_eq!(report.total(), Interval::default());
    let waiting = EventCounts { cycles: 10, ..idle };
    let report = energy(&small(), &waiting, &round()).unwrap();
    close(report.total_dynamic().nominal, 200e-12, 1e-12, "the clock alone");
    assert!(report.total_leakage().nominal > 0.0);
}

#[test]
fn leakage_goes_with_cycles_and_with_their_time() {
    let technology = Technology::build("dsent_45nm", "dsent_45nm").unwrap();
    let leak = |cycles, ps| {
        let router = RouterHardware::new(5, 4, 12, 128).unwrap();
        let network = NetworkHardware::new(router, 64, vec![], Time::from_ps(ps)).unwrap();
        let events = EventCounts { cycles, ..EventCounts::default() };
        energy(&network, &events, &technology).unwrap().total_leakage().nominal
    };
    close(leak(3_000, 1_000), 3.0 * leak(1_000, 1_000), 1e-12, "cycles");
    close(leak(1_000, 500), 0.5 * leak(1_000, 1_000), 1e-12, "time of a cycle");
    assert!(leak(0, 1_000).abs() < 1e-30);
}

fn counts() -> impl Strategy<Value = EventCounts> {
    let small = || 0_u64..1_000_000;
    let lists = (prop::collection::vec(small(), 0..5), prop::collection::vec(small(), 2));
    let plain = (small(), small(), small(), small(), small(), small());
    (lists, plain).prop_map(|((crossbar_traversals, link_flits), plain)| EventCounts {
        cycles: plain.0,
        buffer_writes: plain.1,
        buffer_reads: plain.2,
        crossbar_traversals,
        vc_allocations: plain.3,
        switch_allocations: plain.4,
        link_flits,
        signal_bit_um: plain.5,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn the_energy_of_a_sum_is_the_sum_of_energies(one in counts(), other in counts()) {
        let technology = Technology::build("aries_45nm", "muchisim_interposer").unwrap();
        let of = |events: &EventCounts| energy(&small(), events, &technology).unwrap();
        let (both, parts) = (of(&one.plus(&other).unwrap()), of(&one) + of(&other));
        for component in Component::ALL {
            for (found, expected) in [
                (both.dynamic(component), parts.dynamic(component)),
                (both.leakage(component), parts.leakage(component)),
            ] {
                close(found.low, expected.low, 1e-12, component.name());
                close(found.nominal, expected.nominal, 1e-12, component.name());
                close(found.high, expected.high, 1e-12, component.name());
            }
        }
        prop_assert_eq!(one.plus(&other).unwrap(), other.plus(&one).unwrap());
    }

    #[test]
    fn a_larger_router_and_a_longer_link_never_cost_less(
        router in 0..ROUTERS.len(),
        link in 0..LINKS.len(),
        size in (1_u32..20, 1_u32..20, 1_u32..200, 1_u32..600),
        more in (0_u32..5, 0_u32..5, 0_u32..50, 0_u32..100),
        length in 0_u64..40_000,
    ) {
        let technology = Technology::build(ROUTERS[router].name, LINKS[link].name).unwrap();
        let make = |router: RouterHardware, length| {
            let links = vec![LinkHardware { length: Length::from_um(length), count: 1 }; 2];
            NetworkHardware::new(router, 1, links, Time::from_ps(1_000)).unwrap()
        };
        let (ports, vcs, flits, bits) = size;
        let router = RouterHardware::new(ports, vcs, flits, bits).unwrap();
        let larger =
            RouterHardware::new(ports + more.0, vcs + more.1, flits + more.2, bits + more.3).unwrap();
        let events = EventCounts { crossbar_traversals: vec![4], ..few() };
        let of = |network: &NetworkHardware| {
            let report = energy(network, &events, &technology).unwrap();
            let area = area(network, &technology);
            Component::ALL.map(|c| (report.dynamic(c), report.leakage(c), area.um2(c)))
        };
        let larger_costs = of(&make(larger, length + u64::from(more.3)));
        for (less, more) in of(&make(router, length)).into_iter().zip(larger_costs) {
            for (less, more) in [(less.0, more.0), (less.1, more.1), (less.2, more.2)] {
                prop_assert!(less.nominal <= more.nominal * (1.0 + 1e-12));
                prop_assert!(less.low <= less.nominal && less.nominal <= less.high);
            }
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let text = |error: EnergyError| error.to_string();
    assert_eq!(
        text(RouterHardware::new(5, 4, 0, 128).unwrap_err()),
        "a router with buffer_flits = 0: expected at least 1"
    );
    let router = RouterHardware::new(5, 4, 12, 128).unwrap();
    let stopped = NetworkHardware::new(router, 64, vec![], Time::ZERO).unwrap_err();
    assert!(text(stopped).starts_with("a cycle of 0 ps"));
    let (network, technology) = (small(), round());
    let other_links = EventCounts { link_flits: vec![1], ..few() };
    let error = energy(&network, &other_links, &technology).unwrap_err();
    assert_eq!(error, EnergyError::WrongLinks { given: 1, expected: 2 });
    assert_eq!(few().plus(&other_links).unwrap_err(), error);
    let wide = EventCounts { crossbar_traversals: vec![0, 0, 0, 0, 0, 1], ..few() };
    let error = energy(&network, &wide, &technology).unwrap_err();
    assert_eq!(error, EnergyError::TooManyOutputs { outputs: 6, ports: 5 });
    // Zeros beyond the last output are ignored.
    let zeros = EventCounts { crossbar_traversals: vec![1, 0, 0, 0, 0, 0, 0], ..few() };
    assert!(energy(&network, &zeros, &technology).is_ok());
    let full = EventCounts { buffer_reads: u64::MAX, ..few() };
    assert_eq!(few().plus(&full), Err(EnergyError::TooMany { count: "buffer_reads" }));
}

#[test]
fn constants_that_cannot_be_are_refused() {
    let with = |constant: Constant| round().with(Parameter::Wire, constant).unwrap_err();
    for value in [-0.1, f64::NAN, f64::INFINITY] {
        let error = with(Constant::of(value, "somewhere"));
        assert!(matches!(error, EnergyError::Value { parameter: "wire_pj_per_bit_mm", .. }));
        assert!(error.to_string().contains(&format!("is {value}: expected")), "{error}");
    }
    for (low, high) in [(1.1, 2.0), (0.5, 0.9), (-0.1, 1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)]
    {
        let error = with(Constant::of(1.0, "somewhere").within(low, high));
        assert!(matches!(error, EnergyError::Bounds { .. }), "{low} {high}");
    }
    let error = with(Constant::of(1.0, "  "));
    assert_eq!(error, EnergyError::NoSource { parameter: "wire_pj_per_bit_mm" });
}

/// One flit of 128 bits on the baseline routers of SMART and on SMART: 5 ports, wires at three
/// times the minimum spacing.
mod published {
    use super::*;

    fn costs_of(technology: &Technology, flits: u32, vcs: u32) -> Costs<'_> {
        Costs::new(&RouterHardware::new(5, vcs, flits, 128).unwrap(), technology)
    }

    const MM: Length = Length::from_um(1_000);

    /// DSENT 0.9 in 45 nm as first recorded for SMART, whose buffers have 8, 12, 16 and 24 flits.
    #[test]
    fn buffers_of_smart() {
        let technology = Technology::build("dsent_45nm", "dsent_45nm_spaced").unwrap();
        for (flits, write, read) in
            [(8, 3.32, 2.56), (12, 3.79, 3.41), (16, 4.76, 4.17), (24, 6.13, 5.76)]
        {
            let costs = costs_of(&technology, flits, 12);
            close(costs.buffer_write_pj().nominal, write, 0.09, "write");
            close(costs.buffer_read_pj().nominal, read, 0.04, "read");
        }
    }

    /// A baseline hop with a stop, 12 buffers and 12 VCs: 3.79 + 3.41 + 2.13 + 0.74 + 3.72 = 13.8
    /// pJ. A SMART hop without a stop: 1.58 * 2.13 + 4.16 = 7.5 pJ.
    #[test]
    fn a_hop_with_and_without_a_stop() {
        let technology = Technology::build("dsent_45nm", "dsent_45nm_spaced").unwrap();
        let costs = costs_of(&technology, 12, 12);
        let stop = costs.buffer_write_pj() + costs.buffer_read_pj() + costs.switch_allocation_pj();
        let hop = stop + costs.crossbar_pj(1) + costs.link_pj(MM);
        close(hop.nominal, 13.8, 0.01, "hop");
        let technology = Technology::build("smart_45nm", "smart_45nm").unwrap();
        let costs = costs_of(&technology, 12, 12);
        close((costs.crossbar_pj(1) + costs.link_pj(MM)).nominal, 7.5, 0.01, "bypass");
    }

    /// 63 responses to one node, SFI_Complete: 63 * 7.5 + 20 stops * 8 + 16 requests * 2.5 pJ =
    /// 0.67 nJ.
    #[test]
    fn an_acknowledged_broadcast_of_smart() {
        let technology = Technology::build("smart_45nm", "smart_45nm").unwrap();
        let links = vec![LinkHardware { length: MM, count: 224 }];
        let router = RouterHardware::new(5, 12, 12, 128).unwrap();
        let network = NetworkHardware::new(router, 64, links, Time::from_ps(1_000)).unwrap();
        let events = EventCounts {
            buffer_writes: 20,
            buffer_reads: 20,
            crossbar_traversals: vec![63],
            switch_allocations: 20,
            link_flits: vec![63],
            signal_bit_um: 16 * 11 * 8_000,
            ..EventCounts::default()
        };
        let total = energy(&network, &events, &technology).unwrap().total_dynamic();
        close(total.nominal, 0.67e-9, 0.01, "63 to 1");
    }

    /// Ports 5, 7 and 15: 2.13, 2.79, 5.62 pJ in 45 nm and 1.17, 1.53, 3.09 pJ in 32 nm; switch allocation
    /// 0.22, 0.35 and 0.86 pJ.
    #[test]
    fn crossbars_and_allocators_by_ports() {
        for (name, pj) in [("dsent_45nm", [2.13, 2.79, 5.62]), ("dsent_32nm", [1.17, 1.53, 3.09])] {
            let technology = Technology::build(name, "dsent_45nm").unwrap();
            for (ports, pj) in [5, 7, 15].into_iter().zip(pj) {
                let router = RouterHardware::new(ports, 4, 128, 128).unwrap();
                close(Costs::new(&router, &technology).crossbar_pj(1).nominal, pj, 0.02, name);
            }
        }
        let technology = Technology::build("dsent_45nm", "dsent_45nm").unwrap();
        for (ports, pj) in [(5, 0.22), (7, 0.35), (15, 0.86)] {
            let router = RouterHardware::new(ports, 4, 128, 128).unwrap();
            let found = Costs::new(&router, &technology).switch_allocation_pj();
            close(found.nominal, pj, 0.05, "switch allocation");
        }
    }

    /// A router of ARIES takes 0.40 + 0.017 + 0.002 pJ per buffered bit.
    #[test]
    fn a_router_of_aries() {
        let technology = Technology::build("aries_45nm", "muchisim_interposer").unwrap();
        let costs = costs_of(&technology, 128, 4);
        let stop = costs.buffer_write_pj() + costs.buffer_read_pj();
        let all = stop + costs.crossbar_pj(1) + costs.switch_allocation_pj();
        close(all.nominal / 128.0, 0.419, 0.01, "router");
        for (ports, pj) in [(5, 5.1), (7, 5.4), (15, 6.7)] {
            let router = RouterHardware::new(ports, 4, 128, 128).unwrap();
            let found = Costs::new(&router, &technology).clock_pj_per_cycle();
            close(found.nominal, pj, 0.01, "clock");
        }
        // A hop of up to 5 mm costs 0.5 pJ/bit, a hop of 10 mm 0.12 pJ/bit/mm more.
        close(costs.link_pj(Length::from_um(5_000)).nominal, 64.0, 1e-12, "a hop");
        close(costs.link_pj(Length::from_um(10_000)).nominal, 128.0 * 1.1, 1e-12, "two tiles");
    }

    /// ARIES, section V-D: 17806 + 4589 + 9066 + 98740 um2, and 8.3 mm2 for 64 of them.
    #[test]
    fn the_area_of_aries() {
        let technology = Technology::build("aries_45nm", "muchisim_interposer").unwrap();
        let router = RouterHardware::new(5, 4, 128, 128).unwrap();
        let network = NetworkHardware::new(router, 64, vec![], Time::from_ps(1_000)).unwrap();
        let report = area(&network, &technology);
        let each = |component| report.um2(component).nominal / 64.0;
        close(each(Component::Crossbar), 17806.0, 1e-9, "crossbar");
        close(each(Component::SwitchAllocator), 4589.0, 1e-9, "switch allocator");
        close(each(Component::VcAllocator), 9066.0, 1e-9, "VC allocator");
        close(each(Component::Buffers), 98740.0, 1e-9, "buffers");
        close(report.total_um2().nominal * 1e-6, 8.3, 0.01, "all 64, in mm2");
    }

    /// Low-swing repeated links in 45 nm SOI, measured at 40.4 fJ/bit/mm; 5.17 pJ in DSENT for 128
    /// bits.
    #[test]
    fn wires_compared_with_silicon() {
        let model = Technology::build("dsent_45nm", "dsent_45nm").unwrap();
        let silicon = Technology::build("dsent_45nm", "low_swing_45nm").unwrap();
        close(costs_of(&model, 12, 4).link_pj(MM).nominal, 5.17, 0.01, "DSENT");
        close(costs_of(&silicon, 12, 4).link_pj(MM).nominal, 5.17, 0.01, "silicon");
    }
}
