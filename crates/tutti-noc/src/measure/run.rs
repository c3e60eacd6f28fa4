//! From an empty network to a measurement.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::generator::Generator;
use super::tally::Tally;
use super::{Ending, Load, Measured, Measurement, MeasurementPlan, Series, Stalls};
use crate::settings::Settings;
use crate::traffic::Trace;
use crate::{FlitError, Network, Wiring};
use tutti_topology::{Distances, Family, UNREACHABLE};
use tutti_units::ids::VertexId;

/// Runs synthetic traffic, a load for each class of the settings.
///
/// # Errors
/// When the plan cannot be, loads and classes differ in number, or a packet fits in no buffer.
pub fn measure(
    wiring: &Wiring,
    settings: &Settings,
    network: &mut Network,
    loads: &[Load],
    plan: &MeasurementPlan,
) -> Result<Measurement, FlitError> {
    measure_until(wiring, settings, network, loads, plan, &AtomicBool::new(false))
}

/// As [`measure`], and ends early when told to.
///
/// # Errors
/// As [`measure`], and when it was stopped.
pub fn measure_until(
    wiring: &Wiring,
    settings: &Settings,
    network: &mut Network,
    loads: &[Load],
    plan: &MeasurementPlan,
    stop: &AtomicBool,
) -> Result<Measurement, FlitError> {
    check(plan)?;
    check_nodes(wiring)?;
    if loads.len() != settings.classes.len() {
        let problem = format!("{} loads for {} classes", loads.len(), settings.classes.len());
        return Err(FlitError::Clash { what: "loads", problem });
    }
    for load in loads {
        fits(settings, load.size.largest())?;
        if load.pattern.nodes() != wiring.nodes() {
            let problem = format!("{} nodes, not {}", load.pattern.nodes(), wiring.nodes());
            return Err(FlitError::Clash { what: "a pattern for another network", problem });
        }
    }
    let (nodes, vcs) = (u64::from(wiring.nodes()), settings.vcs as usize);
    let generator = Generator::synthetic(loads, wiring.nodes(), settings.seed, *plan);
    TrafficRun { network, generator, plan: *plan, nodes, vcs, quiet: 0, stop }.go()
}

/// Runs the packets of a trace; those of its window are measured.
///
/// # Errors
/// When the plan cannot be, the trace has more classes than the settings, or a packet fits in no buffer.
pub fn replay(
    wiring: &Wiring,
    settings: &Settings,
    network: &mut Network,
    trace: &Trace,
    plan: &MeasurementPlan,
) -> Result<Measurement, FlitError> {
    replay_until(wiring, settings, network, trace, plan, &AtomicBool::new(false))
}

/// As [`replay`], and ends early when told to.
///
/// # Errors
/// As [`replay`], and when it was stopped.
pub fn replay_until(
    wiring: &Wiring,
    settings: &Settings,
    network: &mut Network,
    trace: &Trace,
    plan: &MeasurementPlan,
    stop: &AtomicBool,
) -> Result<Measurement, FlitError> {
    check(plan)?;
    check_nodes(wiring)?;
    let classes = settings.classes.len();
    if trace.classes() as usize > classes {
        let problem =
            format!("{} classes in the trace, {classes} in the settings", trace.classes());
        return Err(FlitError::Clash { what: "a trace", problem });
    }
    for record in trace.records() {
        fits(settings, record.flits)?;
    }
    let (nodes, vcs) = (u64::from(wiring.nodes()), settings.vcs as usize);
    let generator = Generator::recorded(trace, wiring.nodes(), classes, *plan);
    TrafficRun { network, generator, plan: *plan, nodes, vcs, quiet: 0, stop }.go()
}

/// Refuses NPUs of several nodes, which patterns do not know, and nodes that some packet would never reach.
fn check_nodes(wiring: &Wiring) -> Result<(), FlitError> {
    if wiring.ports() > 1 {
        let problem = format!("{} of them inject for each NPU; expected one", wiring.ports());
        return Err(FlitError::Clash { what: "nodes", problem });
    }
    let Some(graph) = wiring.topology() else { return Ok(()) };
    if !graph.family().is_some_and(Family::may_lack_ways) {
        return Ok(());
    }
    let distances = Distances::fewest_hops(Arc::clone(graph));
    let pairs = (0..graph.npus()).flat_map(|from| (0..graph.npus()).map(move |to| (from, to)));
    let lost =
        |&(from, to): &(u32, u32)| distances.hops(VertexId(from), VertexId(to)) == UNREACHABLE;
    match pairs.into_iter().find(lost) {
        Some((from, node)) => Err(FlitError::Unreachable { from, node }),
        None => Ok(()),
    }
}

fn check(plan: &MeasurementPlan) -> Result<(), FlitError> {
    let wrong = |what, value, expected: &str| {
        Err(FlitError::OutOfRange { what, value, expected: expected.to_owned() })
    };
    if plan.batches < 2 {
        return wrong("batches", u64::from(plan.batches), "2 or more");
    }
    if plan.measure < u64::from(plan.batches) || plan.measure > 1 << 40 {
        return wrong("measure", plan.measure, "a cycle for each batch or more, at most 2^40");
    }
    if plan.sample > MOST_UNCOUNTED {
        return wrong("sample", plan.sample, "at most 2^31 cycles, or 0 for never");
    }
    if plan.keep_vcs && !(1..=MOST_SAMPLED).contains(&plan.sample) {
        return wrong("sample", plan.sample, "1 to 65535 cycles, so that VCs can be kept");
    }
    if plan.patience == 0 {
        return wrong("patience", 0, "a cycle or more");
    }
    Ok(())
}

fn fits(settings: &Settings, packet: u32) -> Result<(), FlitError> {
    if settings.cut_through && packet > settings.buffer {
        return Err(FlitError::BufferSmallerThanPacket { buffer: settings.buffer, packet });
    }
    Ok(())
}

struct TrafficRun<'a> {
    network: &'a mut Network,
    generator: Generator,
    plan: MeasurementPlan,
    nodes: u64,
    vcs: usize,
    /// Cycles in which nothing has moved although packets are under way.
    quiet: u64,
    /// Whether to end early.
    stop: &'a AtomicBool,
}

impl TrafficRun<'_> {
    fn go(mut self) -> Result<Measurement, FlitError> {
        let MeasurementPlan { warmup, measure, drain, .. } = self.plan;
        let mut stuck = self.until(warmup);
        let before = self.network.sent();
        let mut looks = Looks::new(self.network, self.vcs, self.plan.keep_vcs);
        let end = warmup + measure;
        while !stuck && self.plan.sample > 0 && self.network.now() + self.plan.sample <= end {
            stuck = self.until(self.network.now() + self.plan.sample);
            looks.look(self.network);
        }
        stuck = stuck || self.until(end);
        if self.plan.sample > 0 {
            looks.count_sent(self.network);
        }
        let mut sent = self.network.sent();
        sent.iter_mut().zip(&before).for_each(|(after, before)| *after -= before);
        if self.is_stopped() {
            return Err(FlitError::Stopped);
        }
        let overloaded = !stuck && self.is_overloaded();
        while !stuck && !self.generator.has_all(end) && self.network.now() < end + drain {
            stuck = self.until(self.network.now() + DRAIN_STEP.min(drain));
        }
        if self.is_stopped() {
            return Err(FlitError::Stopped);
        }
        let drained = self.generator.has_all(end);
        let ending = if stuck {
            Ending::Deadlocked
        } else if drained && !overloaded {
            Ending::Stable
        } else {
            Ending::Saturated
        };
        Ok(self.report(ending, sent, looks))
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Runs until a cycle, until nothing has moved for too long, or until stopped; whether it is over.
    fn until(&mut self, end: u64) -> bool {
        while self.network.now() < end {
            if self.is_stopped() {
                return true;
            }
            let (start, moves) = (self.network.now(), self.network.moves());
            let step = self.plan.patience.min(LOOK);
            self.network.run_until(end.min(start + step), &mut self.generator);
            let stands = self.network.moves() == moves && self.network.under_way() > 0;
            self.quiet = if stands { self.quiet + self.network.now() - start } else { 0 };
            if self.quiet >= self.plan.patience {
                return true;
            }
        }
        false
    }

    /// Whether queues grew: nodes have a packet each, in the mean, that they have not begun to inject,
    /// and more is missing of what was created than may be.
    fn is_overloaded(&self) -> bool {
        let (packets, flits) = self.generator.waiting(self.plan.warmup + self.plan.measure);
        let tallies = &self.generator.tallies;
        let created: u64 = tallies.iter().map(|tally| tally.created_flits).sum::<u64>() + flits;
        let accepted: u64 = tallies.iter().map(Tally::accepted_flits).sum();
        packets >= self.nodes && accepted * 100 < created * (100 - TOLERATED_PERCENT)
    }

    fn report(mut self, ending: Ending, sent: Vec<u64>, looks: Looks) -> Measurement {
        self.generator.count_untaken();
        let tallies = &self.generator.tallies;
        let classes: Vec<Measured> = tallies.iter().map(Tally::measured).collect();
        let all = tallies[1..].iter().fold(tallies[0].clone(), Tally::with).measured();
        Measurement {
            ending,
            cycles: self.network.now(),
            window: self.plan.measure,
            all,
            classes,
            sent,
            vc_grants: self.generator.vc_grants,
            occupancy: looks.occupancy(),
            sent_by_vc: looks.sent,
            buffered: looks.buffered,
            buffered_by_vc: looks.buffered_by_vc,
            series: looks.series,
            stalls: looks.stalls,
        }
    }
}

/// The longest time between looks if VCs are kept: a VC sends a flit per cycle at most, counted in 16 bits.
const MOST_SAMPLED: u64 = 65_535;

/// Cycles after which what VCs have sent is counted: they count modulo 2^32.
const MOST_UNCOUNTED: u64 = 1 << 31;

/// Between looks at whether anything moves, and whether to go on.
const LOOK: u64 = 256;

/// Between looks at whether all have arrived.
const DRAIN_STEP: u64 = 64;

/// What may be missing at the end of a window by chance, or because it is under way.
const TOLERATED_PERCENT: u64 = 1;

/// What was seen at each look at the buffers.
struct Looks {
    sums: Vec<u64>,
    vcs: usize,
    buffered: Vec<u64>,
    buffered_by_vc: Vec<u64>,
    /// By channel and VC: flits sent in the window, and the count at the last look.
    sent: Vec<u64>,
    last: Vec<u32>,
    counted: u64,
    keeps: bool,
    series: Series,
    stalls: Stalls,
}

impl Looks {
    fn new(network: &Network, vcs: usize, keeps: bool) -> Looks {
        Looks {
            sums: Vec::new(),
            vcs,
            buffered: Vec::new(),
            buffered_by_vc: Vec::new(),
            sent: Vec::new(),
            last: network.sent_by_vc(),
            counted: network.now(),
            keeps,
            series: Series::default(),
            stalls: Stalls::default(),
        }
    }

    fn look(&mut self, network: &Network) {
        let lengths = network.occupancy();
        self.sums.resize(lengths.len(), 0);
        self.sums.iter_mut().zip(&lengths).for_each(|(sum, &length)| *sum += u64::from(length));
        let first = self.buffered_by_vc.len();
        self.buffered_by_vc.resize(first + self.vcs, 0);
        for port in lengths.chunks(self.vcs) {
            let sums = self.buffered_by_vc[first..].iter_mut();
            sums.zip(port).for_each(|(sum, &length)| *sum += u64::from(length));
        }
        self.buffered.push(self.buffered_by_vc[first..].iter().sum());
        network.count_stalls(&mut self.stalls);
        if self.keeps {
            self.series.occupancy.extend(lengths.into_iter().map(saturated));
            let sent = self.count_sent(network);
            self.series.sent.extend(sent.into_iter().map(saturated));
        } else if network.now() - self.counted >= MOST_UNCOUNTED {
            self.count_sent(network);
        }
    }

    /// Counts what VCs have sent since this was asked last, which is less than 2^32 cycles ago.
    fn count_sent(&mut self, network: &Network) -> Vec<u32> {
        self.counted = network.now();
        let mut now = network.sent_by_vc();
        self.sent.resize(now.len(), 0);
        for ((sum, last), now) in self.sent.iter_mut().zip(&mut self.last).zip(&mut now) {
            let sent = now.wrapping_sub(*last);
            *sum += u64::from(sent);
            (*last, *now) = (*now, sent);
        }
        now
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn occupancy(&self) -> Vec<f64> {
        let looks = self.buffered.len() as f64;
        self.sums.iter().map(|&sum| sum as f64 / looks).collect()
    }
}

/// In 16 bits; a check has seen to it that nothing is larger.
fn saturated(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
