//! Measurements of VCs add up, over VCs, over time, and compared with those of channels.
#![expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tutti_noc::measure::{Load, Measurement, MeasurementPlan, Phases, Traffic, measure};
use tutti_noc::routing;
use tutti_noc::traffic::{PacketSize, Pattern, Process};
use tutti_noc::{ChannelParameters, FlitError, Network, Settings, Wiring};
use tutti_topology::LinkParameters;
use tutti_units::{Bytes, Time, TimePerByte};

const VCS: usize = 3;
const PLAN: MeasurementPlan = MeasurementPlan {
    phases: Phases { warmup: 500, measure: 4_000, drain: 4_000 },
    batches: 10,
    patience: 1_000,
    sample: 50,
    keep_vcs: true,
};

fn measured(rate: f64, plan: MeasurementPlan) -> Result<Measurement, FlitError> {
    let cycle = Time::from_ps(1000);
    let link = LinkParameters::new(TimePerByte::new(1000, 16).unwrap(), cycle);
    let topology = Arc::new(tutti_topology::build("mesh:4x4", &[link]).unwrap());
    let port = ChannelParameters { latency: 1, credit_latency: 1, flit_time: cycle, length: None };
    let wiring = Arc::new(Wiring::of(topology, cycle, Bytes(16), port).unwrap());
    let settings = Settings::new(3, 4);
    let routing = routing::parse("dimension_order", &wiring).unwrap();
    let mut network = Network::new(&wiring, &settings, routing).unwrap();
    let load = Load {
        pattern: Pattern::parse("uniform", 16, None).unwrap(),
        process: Process::bernoulli(rate / 3.0).unwrap(),
        size: PacketSize::fixed(3).unwrap(),
        priority: 0,
    };
    let (loads, stop) = ([load], AtomicBool::new(false));
    measure(&wiring, &settings, &mut network, Traffic::Synthetic(&loads), &plan, &stop)
}

/// Sums of every so many.
fn sums(values: &[u64], each: usize) -> Vec<u64> {
    values.chunks(each).map(|chunk| chunk.iter().sum()).collect()
}

#[test]
fn vc_counts_sum_to_channels_and_samples_to_the_window() {
    let found = measured(0.3, PLAN).unwrap();
    assert!(found.sent.iter().sum::<u64>() > 0);
    assert_eq!(sums(&found.sent_by_vc, VCS), found.sent);
    assert_eq!(sums(&found.buffered_by_vc, VCS), found.buffered);
    let looks = found.buffered.len();
    assert_eq!(looks, 80);
    let occupancy: Vec<u64> = found.series.occupancy.iter().map(|&one| one.into()).collect();
    assert_eq!(sums(&occupancy, occupancy.len() / looks), found.buffered);
    // Over all times the mean of each VC, and what each VC has sent.
    let places = found.occupancy.len();
    for (place, mean) in found.occupancy.iter().enumerate() {
        let all: u64 = occupancy[place..].iter().step_by(places).sum();
        assert!((all as f64 / looks as f64 - mean).abs() < 1e-12);
    }
    let channels = found.sent_by_vc.len();
    for (place, &all) in found.sent_by_vc.iter().enumerate() {
        let sent = found.series.sent[place..].iter().step_by(channels);
        assert_eq!(sent.map(|&one| u64::from(one)).sum::<u64>(), all);
    }
}

#[test]
fn vcs_are_recorded_only_on_request() {
    let found = measured(0.1, MeasurementPlan { keep_vcs: false, ..PLAN }).unwrap();
    assert!(found.series.occupancy.is_empty() && found.series.sent.is_empty());
    assert_eq!(sums(&found.sent_by_vc, VCS), found.sent);
    let blind = measured(0.1, MeasurementPlan { keep_vcs: false, sample: 0, ..PLAN }).unwrap();
    assert!(blind.sent_by_vc.is_empty() && blind.buffered_by_vc.is_empty());
    assert_eq!(blind.all, found.all, "looking changes nothing");
}

#[test]
fn vc_recording_requires_samples_within_the_limit() {
    for sample in [0, 65_536, 1 << 32] {
        let refused = measured(0.1, MeasurementPlan { sample, ..PLAN });
        assert!(
            matches!(refused, Err(FlitError::OutOfRange { what: "sample", .. })),
            "{sample}: {refused:?}"
        );
    }
}

/// A sample every cycle counts exactly; a sample every 50 cycles finds the same shares.
#[test]
fn sampled_stalls_match_counts_of_every_cycle() {
    let plan = MeasurementPlan { keep_vcs: false, ..PLAN };
    let exact = measured(0.4, MeasurementPlan { sample: 1, ..plan }).unwrap().stalls;
    let sampled = measured(0.4, MeasurementPlan { sample: 50, ..plan }).unwrap().stalls;
    let share = |part: u64, all: u64| part as f64 / all as f64;
    assert!(exact.busy > 40 * sampled.busy, "{exact:?}, {sampled:?}");
    for (part, seen) in [
        (exact.no_vc, sampled.no_vc),
        (exact.no_credit, sampled.no_credit),
        (exact.switch, sampled.switch),
        (exact.routing, sampled.routing),
    ] {
        let off = share(part, exact.busy) - share(seen, sampled.busy);
        assert!(off.abs() < 0.05, "{exact:?}, {sampled:?}");
    }
}
