//! Runs of a measurement, from an empty network.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::generator::Generator;
use super::phases::{self, Measurable, Verdict};
use super::tally::Tally;
use super::window::{Acceptance, Offer, WindowTally};
use super::{
    Ending, Load, Measured, Measurement, MeasurementPlan, Phases, Requests, Series, Stalls,
    Traffic, check_pattern,
};
use crate::settings::Settings;
use crate::watchdog::{NetworkWatchdog, Watchdog};
use crate::{FlitError, Network, Wiring};
use tutti_topology::{Distances, Family, UNREACHABLE};
use tutti_units::ids::VertexId;

/// Measures traffic on an empty network, until `stop` is set.
///
/// # Errors
/// When the settings of the measurement are invalid, the traffic does not fit the classes, a packet
/// fits in no buffer, or the run was stopped.
pub fn measure(
    wiring: &Wiring,
    settings: &Settings,
    network: &mut Network,
    traffic: Traffic<'_>,
    measurement: &MeasurementPlan,
    stop: &AtomicBool,
) -> Result<Measurement, FlitError> {
    check(measurement)?;
    check_nodes(wiring)?;
    check_traffic(wiring, settings, traffic)?;
    check_queues(settings, traffic)?;
    let size = (wiring.nodes(), settings.classes.len());
    let end = End::of(traffic, measurement);
    let generator = Generator::new(traffic, size, settings.seed, measurement, end.is_some());
    let nodes = u64::from(wiring.nodes());
    let samples = Samples::new(settings.vcs as usize, measurement.keep_vcs);
    let watchdog = NetworkWatchdog::new(measurement.patience, network);
    let (settings, sent) = (*measurement, Vec::new());
    let queued = 0;
    let mut run =
        Run { network, generator, settings, nodes, watchdog, stop, samples, sent, queued };
    let verdict = match end {
        Some(end) => run.until_last_arrival(end)?.into(),
        None => phases::run(&mut run, &measurement.phases)?,
    };
    Ok(run.report(verdict))
}

/// The end of a window that contains all packets: it ends with the last arrival.
#[derive(Clone, Copy)]
struct End {
    /// The cycle before which all packets must arrive.
    limit: u64,
    /// The shortest window.
    least: u64,
}

impl End {
    /// The end of the window if it starts in cycle 0 and nodes have a number of packets, or it
    /// contains all cycles of a trace.
    fn of(traffic: Traffic<'_>, plan: &MeasurementPlan) -> Option<End> {
        let Phases { warmup, measure, drain } = plan.phases;
        let (limit, batches) = (measure.saturating_add(drain), u64::from(plan.batches));
        let end = match traffic {
            Traffic::Synthetic(_) => return None,
            Traffic::Requests(loads) => {
                loads.iter().all(|load| load.count.is_some()).then_some((limit, batches))
            }
            Traffic::Recorded(trace) => {
                let last = trace.records().last().map_or(0, |record| record.cycle);
                // Packets that wait for others have no cycle by which they must arrive.
                let limit = trace.dependencies().map_or(limit, |_| u64::MAX);
                (last < measure).then_some((limit, measure))
            }
        };
        end.filter(|_| warmup == 0).map(|(limit, least)| End { limit, least })
    }
}

fn check_traffic(
    wiring: &Wiring,
    settings: &Settings,
    traffic: Traffic<'_>,
) -> Result<(), FlitError> {
    let classes = settings.classes.len();
    match traffic {
        Traffic::Synthetic(loads) => {
            if loads.len() != classes {
                let problem = format!("{} loads for {classes} classes", loads.len());
                return Err(FlitError::Clash { what: "loads", problem });
            }
            loads.iter().try_for_each(|load| check_load(wiring, settings, load))
        }
        Traffic::Requests(loads) => {
            let needed: usize = loads.iter().map(Requests::classes).sum();
            if needed != classes {
                let problem = format!("{needed} classes of requests and replies, {classes} given");
                return Err(FlitError::Clash { what: "loads", problem });
            }
            loads.iter().try_for_each(|requests| {
                check_load(wiring, settings, &requests.load)?;
                let reply = requests.reply.as_ref().map_or(1, |reply| reply.size.largest());
                check_packet(settings, reply)?;
                check_limits(requests)
            })
        }
        Traffic::Recorded(trace) => {
            if trace.classes() as usize > classes {
                let last = trace.classes() - 1;
                let problem =
                    format!("class {last} in the trace; expected at most {}", classes - 1);
                return Err(FlitError::Clash { what: "a trace", problem });
            }
            trace.records().iter().try_for_each(|record| check_packet(settings, record.flits))
        }
    }
}

/// Rejects injection queues that are not those of the traffic.
fn check_queues(settings: &Settings, traffic: Traffic<'_>) -> Result<(), FlitError> {
    let classes = settings.classes.len();
    let separate = || (0..=u8::MAX).take(classes).collect();
    let needed: Vec<u8> = match traffic {
        Traffic::Requests(loads) => Requests::queues(loads),
        Traffic::Synthetic(_) | Traffic::Recorded(_) => separate(),
    };
    let queues = if settings.queues.is_empty() { separate() } else { settings.queues.clone() };
    if queues == needed {
        return Ok(());
    }
    let problem = format!("{queues:?} of the classes; expected {needed:?}, those of the traffic");
    Err(FlitError::Clash { what: "queues", problem })
}

fn check_load(wiring: &Wiring, settings: &Settings, load: &Load) -> Result<(), FlitError> {
    check_packet(settings, load.size.largest())?;
    check_pattern(&load.pattern, wiring.nodes())
}

/// Rejects limits with which nodes send nothing.
fn check_limits(requests: &Requests) -> Result<(), FlitError> {
    let zero =
        [("outstanding", requests.outstanding == Some(0)), ("requests", requests.count == Some(0))];
    match zero.into_iter().find(|&(_, is_zero)| is_zero) {
        None => Ok(()),
        Some((what, _)) => {
            Err(FlitError::OutOfRange { what, value: 0, expected: "1 or more".to_owned() })
        }
    }
}

/// Rejects NPUs with several nodes, which patterns do not support, and unreachable nodes.
fn check_nodes(wiring: &Wiring) -> Result<(), FlitError> {
    if wiring.ports() > 1 {
        let problem = format!("{} of them inject for each NPU; expected one", wiring.ports());
        return Err(FlitError::Clash { what: "nodes", problem });
    }
    let Some(graph) = wiring.topology() else { return Ok(()) };
    if !graph.family().is_some_and(Family::may_be_disconnected) {
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

fn check(settings: &MeasurementPlan) -> Result<(), FlitError> {
    let wrong = |what, value, expected: &str| {
        Err(FlitError::OutOfRange { what, value, expected: expected.to_owned() })
    };
    let measure = settings.phases.measure;
    if settings.batches < 2 {
        return wrong("batches", u64::from(settings.batches), "2 or more");
    }
    if !(u64::from(settings.batches)..=1 << 40).contains(&measure) {
        let least = settings.batches;
        let expected = format!("{least} cycles (one for each of the `batches`) to 2^40");
        return Err(FlitError::OutOfRange { what: "measure", value: measure, expected });
    }
    if settings.sample > MOST_UNCOUNTED {
        return wrong("sample", settings.sample, "at most 2^31 cycles, or 0 for never");
    }
    if settings.keep_vcs && !(1..=MOST_SAMPLED).contains(&settings.sample) {
        return wrong("sample", settings.sample, "1 to 65535 cycles, so that VCs can be recorded");
    }
    Watchdog::check(settings.patience)
}

fn check_packet(settings: &Settings, packet: u32) -> Result<(), FlitError> {
    let buffer = settings.least_buffer();
    if settings.cut_through && packet > buffer {
        return Err(FlitError::BufferSmallerThanPacket { buffer, packet });
    }
    Ok(())
}

struct Run<'a> {
    network: &'a mut Network,
    generator: Generator,
    settings: MeasurementPlan,
    nodes: u64,
    watchdog: NetworkWatchdog,
    stop: &'a AtomicBool,
    samples: Samples,
    /// Flits sent over each channel in the window.
    sent: Vec<u64>,
    /// Packets that nodes had not started to inject when the window started.
    queued: u64,
}

impl Measurable for Run<'_> {
    const DRAINS_OVERLOADED: bool = true;

    fn advance(&mut self, end: u64) -> Result<bool, FlitError> {
        while self.network.now() < end {
            let step = self.settings.patience.min(CHECK_INTERVAL);
            self.run_until(end.min(self.network.now() + step))?;
            if self.watchdog.check(self.network).is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn advance_window(&mut self, end: u64, deadlocked: bool) -> Result<bool, FlitError> {
        let (mut deadlocked, interval) = (deadlocked, self.settings.sample);
        let before = self.network.sent();
        (self.queued, _) = self.generator.waiting(self.settings.phases.warmup);
        self.samples.start(self.network);
        while !deadlocked && interval > 0 && self.network.now() + interval <= end {
            deadlocked = self.advance(self.network.now() + interval)?;
            self.samples.take(self.network);
        }
        deadlocked = deadlocked || self.advance(end)?;
        if interval > 0 {
            self.samples.count_sent(self.network);
        }
        self.sent = self.network.sent();
        self.sent.iter_mut().zip(&before).for_each(|(after, before)| *after -= before);
        Ok(deadlocked)
    }

    /// Queues grew if nodes have a packet each, on average, that they have not started to inject,
    /// and fewer flits were accepted than created, beyond the tolerance and chance.
    fn acceptance(&self) -> Acceptance {
        let (packets, flits) = self.generator.waiting(self.settings.phases.end());
        if packets < self.nodes {
            return Acceptance::Accepted;
        }
        let windows = || self.generator.tallies.iter().map(|tally| &tally.window);
        let offer = Offer {
            messages: windows().map(|window| window.created).sum::<u64>() + packets,
            parts: windows().map(|window| window.created_parts).sum::<u64>() + flits,
            accepted: windows().map(WindowTally::accepted_parts).sum(),
            queued: [self.queued, packets],
            nodes: self.nodes,
            tolerated_percent: TOLERATED_PERCENT,
        };
        offer.acceptance()
    }

    fn has_drained(&mut self) -> bool {
        self.generator.has_all(self.settings.phases.end())
    }

    fn drain(&mut self, end: u64) -> Result<bool, FlitError> {
        let step = DRAIN_STEP.min(self.settings.phases.drain);
        while !self.has_drained() && self.network.now() < end {
            if self.advance(self.network.now() + step)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Run<'_> {
    /// Runs until all packets of a trace or batch have arrived, at most to a cycle, and measures
    /// them in a window that ends then. Dependencies of packets have no cycle, so that only a
    /// deadlock of the network holds them up.
    fn until_last_arrival(&mut self, end: End) -> Result<Ending, FlitError> {
        let End { limit, least } = end;
        let sample = self.settings.sample;
        self.samples.start(self.network);
        let mut deadlocked = false;
        while !deadlocked && self.network.now() < limit {
            let now = self.network.now();
            let rest = match now.cmp(&least) {
                std::cmp::Ordering::Less => least - now,
                _ if self.generator.has_packets() => DRAIN_STEP,
                _ => break,
            };
            let to_sample = (now / sample.max(1) + 1) * sample;
            let next = limit.min(now + rest).min(if sample > 0 { to_sample } else { u64::MAX });
            deadlocked = self.advance(next)?;
            if next == to_sample && !deadlocked {
                self.samples.take(self.network);
            }
        }
        if sample > 0 {
            self.samples.count_sent(self.network);
        }
        self.sent = self.network.sent();
        let is_late = self.generator.has_packets();
        let end = if is_late { self.network.now() } else { self.generator.last_arrival + 1 };
        self.settings.phases.measure = end.max(least);
        self.generator.count(&self.settings);
        Ok(match (deadlocked, is_late) {
            (true, _) => Ending::Deadlocked,
            (false, true) => Ending::Saturated,
            (false, false) => Ending::Stable,
        })
    }

    /// Advances to a cycle, or returns an error when the caller stops the run.
    fn run_until(&mut self, end: u64) -> Result<(), FlitError> {
        let step = (NODE_CYCLES_UNSTOPPED / self.nodes).max(1);
        while self.network.now() < end {
            if self.stop.load(Ordering::Relaxed) {
                return Err(FlitError::Stopped);
            }
            let next = end.min(self.network.now() + step);
            self.network.run_until(next, &mut self.generator);
        }
        Ok(())
    }

    fn report(mut self, verdict: Verdict) -> Measurement {
        let phases = self.settings.phases;
        self.generator.count_untaken(phases.warmup, phases.end());
        let (tallies, samples) = (&self.generator.tallies, self.samples);
        let classes: Vec<Measured> = tallies.iter().map(Tally::measured).collect();
        let all = tallies[1..].iter().fold(tallies[0].clone(), Tally::with).measured();
        Measurement {
            ending: verdict.ending,
            long_enough: verdict.long_enough,
            cycles: self.network.now(),
            window: phases.measure,
            all,
            classes,
            round_trips: self.generator.round_trips(),
            last_arrival: self.generator.last_arrival,
            sent: self.sent,
            vc_grants: self.generator.vc_grants,
            occupancy: samples.occupancy(),
            sent_by_vc: samples.sent,
            buffered: samples.buffered,
            buffered_by_vc: samples.buffered_by_vc,
            series: samples.series,
            stalls: samples.stalls,
        }
    }
}

/// The longest interval between samples that store VCs: a VC sends a flit per cycle at most,
/// counted in 16 bits.
const MOST_SAMPLED: u64 = 65_535;

/// The longest interval between counts of sent flits: VCs count modulo 2^32.
const MOST_UNCOUNTED: u64 = 1 << 31;

/// Cycles between checks for deadlock.
const CHECK_INTERVAL: u64 = 256;

/// Nodes times cycles between checks for a request to stop: milliseconds.
const NODE_CYCLES_UNSTOPPED: u64 = 16_384;

/// Cycles between checks whether all packets have arrived.
const DRAIN_STEP: u64 = 64;

/// The fraction of flits that may be missing at the end of a window by chance, or because they are
/// in flight.
const TOLERATED_PERCENT: u64 = 1;

/// Samples of the buffers.
#[derive(Default)]
struct Samples {
    sums: Vec<u64>,
    vcs: usize,
    buffered: Vec<u64>,
    buffered_by_vc: Vec<u64>,
    /// By channel and VC: flits sent in the window, and the count at the last sample.
    sent: Vec<u64>,
    last: Vec<u32>,
    counted: u64,
    keeps: bool,
    series: Series,
    stalls: Stalls,
}

impl Samples {
    fn new(vcs: usize, keeps: bool) -> Samples {
        Samples { vcs, keeps, ..Samples::default() }
    }

    /// The window starts.
    fn start(&mut self, network: &Network) {
        (self.last, self.counted) = (network.sent_by_vc(), network.now());
    }

    fn take(&mut self, network: &Network) {
        let lengths = network.occupancy();
        self.sums.resize(lengths.len(), 0);
        let first = self.buffered_by_vc.len();
        self.buffered_by_vc.resize(first + self.vcs, 0);
        // Most buffers are empty.
        for (vc, &length) in lengths.iter().enumerate().filter(|&(_, &length)| length > 0) {
            self.sums[vc] += u64::from(length);
            self.buffered_by_vc[first + vc % self.vcs] += u64::from(length);
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

    /// Counts the flits that VCs have sent since the last call, which is less than 2^32 cycles ago.
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
        let samples = self.buffered.len() as f64;
        self.sums.iter().map(|&sum| sum as f64 / samples).collect()
    }
}

/// In 16 bits; a check has seen to it that nothing is larger.
fn saturated(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
