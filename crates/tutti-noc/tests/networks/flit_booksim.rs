//! The flit network against BookSim 2: recorded runs are replayed, and every packet is injected and
//! arrives in exactly the cycle in which it did there. `data/booksim/README.md` describes the runs.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tutti_noc::allocator::AllocatorKind;
use tutti_noc::oracle::ReferenceNetwork;
use tutti_noc::routing::{Candidate, Compass, DimensionOrder, Routing, RoutingContext};
use tutti_noc::{
    ChannelParameters, Delivery, Head, Network, Order, Priority, Settings, Source, Speculation,
    Wiring,
};
use tutti_units::Time;

/// A packet of a recorded run: when it was created, class, source, destination, flits, when its
/// first flit was injected, when that and its last flit arrived, and the routers it passed.
type Record = [u64; 9];

/// A recorded run.
struct Recording {
    name: String,
    options: BTreeMap<String, String>,
    packets: Vec<Record>,
}

fn recordings() -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/booksim");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|extension| extension == "csv")).collect();
    files.sort();
    files.iter().map(|file| recording(file)).collect()
}

fn recording(file: &Path) -> Recording {
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines = text.lines();
    let options = lines.next().unwrap().trim_start_matches("# ").split(' ');
    let options = options.map(|option| option.split_once('=').unwrap());
    let record = |line: &str| {
        let numbers: Vec<u64> = line.split(',').map(|number| number.parse().unwrap()).collect();
        numbers.try_into().unwrap()
    };
    Recording {
        name: file.file_stem().unwrap().to_string_lossy().into_owned(),
        options: options.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        packets: lines.skip(1).map(record).collect(),
    }
}

impl Recording {
    fn number(&self, option: &str) -> u32 {
        self.options.get(option).map_or(0, |value| value.parse().unwrap())
    }

    fn is_off(&self, option: &str) -> bool {
        self.options.get(option).is_some_and(|value| value == "0")
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::new(self.number("num_vcs"), self.number("vc_buf_size"));
        for (option, value) in &self.options {
            self.set(&mut settings, option, value);
        }
        settings
    }

    fn set(&self, settings: &mut Settings, option: &str, value: &str) {
        let number = || self.number(option);
        let on = self.options[option] == "1";
        match option {
            "num_vcs" | "vc_buf_size" | "k" | "injection_rate" | "packet_size"
            | "packet_size_rate" | "class_priority" | "traffic" => {}
            "seed" | "sample_period" | "pipelined_stages" | "ordered_outputs" => {}
            "spec_check_elig" | "spec_check_cred" | "spec_mask_by_reqs" | "spec_sw_allocator" => {}
            "routing_delay" => settings.routing_delay = number(),
            "credit_delay" => settings.credit_delay = number(),
            "vc_alloc_delay" => settings.vc_delay = number(),
            "sw_alloc_delay" => settings.switch_delay = number(),
            "st_final_delay" => settings.traversal_delay = number(),
            "input_speedup" => settings.input_speedup = number(),
            "output_speedup" => settings.output_speedup = number(),
            "internal_speedup" => settings.internal_speedup = f64::from(number()),
            "output_buffer_size" => settings.output_buffer = Some(number()),
            "wait_for_tail_credit" => settings.wait_for_tail_credit = on,
            "vc_busy_when_full" => settings.busy_when_full = on,
            "vc_prioritize_empty" => settings.prioritize_empty = on,
            "hold_switch_for_packet" => settings.hold_switch = on,
            "speculative" if on => settings.speculation = Some(self.speculation()),
            "vc_allocator" => settings.vc_allocator = allocator(value),
            "sw_allocator" => settings.switch_allocator = allocator(value),
            "classes" => settings.classes = vec![settings.classes[0]; number() as usize],
            "priority" if value == "class" => settings.priority = Priority::Ordered,
            "priority" if value == "age" => settings.priority = Priority::Age,
            _ => panic!("{}: `{option} = {value}` is not known here", self.name),
        }
    }

    fn speculation(&self) -> Speculation {
        Speculation {
            check_vc: !self.is_off("spec_check_elig"),
            check_credit: !self.is_off("spec_check_cred"),
            allocator: self.options.get("spec_sw_allocator").map(|value| allocator(value)),
            yield_to_requests: self.number("spec_mask_by_reqs") > 0,
        }
    }
}

fn allocator(name: &str) -> AllocatorKind {
    if name == "max_size" { AllocatorKind::Maximum } else { name.parse().unwrap() }
}

/// A mesh of k x k routers with ports in BookSim's order: in each dimension up, then down; then the
/// node.
///
/// There the routers at the edge have ports that no packet uses; here they do if the mesh is
/// `closed`, with a router more, which those ports lead to. The numbers of ports count for output
/// speedup alone.
fn mesh(k: u32, closed: bool) -> Wiring {
    let cycle = Time::from_ps(1000);
    let parameters =
        ChannelParameters { latency: 1, credit_latency: 1, flit_time: cycle, length: None };
    let beyond = k * k;
    let mut wiring = Wiring::new(k * k + u32::from(closed), k * k, cycle);
    for step in [1, k] {
        // From the last to the first: so inputs, too, are in the order from above, from below.
        for router in (0..k * k).rev() {
            let at = router / step % k;
            let (above, below) = (router.wrapping_add(step), router.wrapping_sub(step));
            for (edge, to) in [(at + 1 == k, above), (at == 0, below)] {
                if !edge {
                    wiring.connect(router, to, parameters);
                } else if closed {
                    wiring.connect(router, beyond, parameters);
                    wiring.connect(beyond, router, parameters);
                }
            }
        }
    }
    for node in 0..k * k {
        wiring.attach(node, node, parameters, parameters);
    }
    wiring
}

/// Dimension order where there is a router more than the mesh has.
#[derive(Debug)]
struct UpDown {
    k: u32,
}

impl Routing for UpDown {
    fn name(&self) -> &'static str {
        "up and down"
    }

    fn route(&self, place: &RoutingContext<'_>, head: &mut Head, candidates: &mut Vec<Candidate>) {
        let (here, there) = (place.router, head.destination);
        let port = if here % self.k != there % self.k {
            u32::from(here % self.k > there % self.k)
        } else if here != there {
            2 + u32::from(here > there)
        } else {
            4
        };
        candidates.push(Candidate { port, vcs: place.vcs, priority: 0 });
    }
}

/// Plays recorded packets back.
struct Replay {
    /// By node and class.
    queues: BTreeMap<(u64, u64), VecDeque<Record>>,
    arrived: Vec<Delivery>,
}

impl Source for Replay {
    fn next_at(&mut self, node: u32, class: u8) -> Option<u64> {
        self.queues.get(&(node.into(), class.into()))?.front().map(|packet| packet[0])
    }

    fn take(&mut self, node: u32, class: u8, _: u64) -> Order {
        let packet = self.queues.get_mut(&(node.into(), class.into())).unwrap();
        let packet = packet.pop_front().unwrap();
        let [destination, flits] =
            [packet[3], packet[4]].map(|number| u32::try_from(number).unwrap());
        Order { created: packet[0], destination, flits, class, priority: i64::from(class), tag: 0 }
    }

    fn delivered(&mut self, delivery: &Delivery) {
        self.arrived.push(*delivery);
    }

    fn refilled(&mut self, _queues: &mut Vec<(u32, u8)>) {}
}

/// The obvious network, or the fast one.
enum Either {
    Slow(Box<ReferenceNetwork>),
    Fast(Box<Network>),
}

impl Either {
    fn step(&mut self, source: &mut Replay) {
        match self {
            Either::Slow(network) => {
                network.step(source);
                network.audit().unwrap();
            }
            Either::Fast(network) => network.step(source),
        }
    }
}

fn replay(recording: &Recording, fast: bool) -> Replay {
    let k = recording.number("k");
    let closed = recording.number("output_speedup") > 1
        || ["wavefront", "max_size"]
            .iter()
            .any(|kind| recording.options.values().any(|v| v == kind));
    let wiring = mesh(k, closed);
    let routing: Arc<dyn Routing> = if closed {
        Arc::new(UpDown { k })
    } else {
        Arc::new(DimensionOrder::new(Compass::of(&wiring, &[k, k], false).unwrap(), false))
    };
    let mut queues = BTreeMap::<_, VecDeque<_>>::new();
    for packet in &recording.packets {
        queues.entry((packet[2], packet[1])).or_default().push_back(*packet);
    }
    let mut replay = Replay { queues, arrived: Vec::new() };
    let settings = recording.settings();
    let mut network = if fast {
        Either::Fast(Box::new(Network::new(&wiring, &settings, routing).unwrap()))
    } else {
        Either::Slow(Box::new(ReferenceNetwork::new(&wiring, &settings, routing).unwrap()))
    };
    for _ in 0..100_000 {
        if replay.arrived.len() == recording.packets.len() {
            break;
        }
        network.step(&mut replay);
    }
    replay
}

fn records(arrived: &[Delivery]) -> Vec<Record> {
    let record = |delivery: &Delivery| {
        let (source, destination) = (delivery.source.into(), delivery.destination.into());
        let (flits, hops) = (delivery.flits.into(), delivery.hops.into());
        let (injected, head, tail) = (delivery.injected, delivery.head_arrived, delivery.arrived);
        [
            delivery.created,
            delivery.class.into(),
            source,
            destination,
            flits,
            injected,
            head,
            tail,
            hops,
        ]
    };
    let mut records: Vec<Record> = arrived.iter().map(record).collect();
    records.sort_unstable();
    records
}

#[test]
fn every_packet_arrives_in_the_same_cycle_as_in_booksim() {
    let mut complaints = String::new();
    let twice = recordings().into_iter().zip(recordings());
    for (mut recording, fast) in twice.flat_map(|(a, b)| [(a, false), (b, true)]) {
        let arrived = records(&replay(&recording, fast).arrived);
        recording.packets.sort_unstable();
        let count = recording.packets.len();
        let pairs = arrived.iter().zip(&recording.packets);
        let wrong: Vec<_> = pairs.filter(|(here, there)| here != there).collect();
        if !wrong.is_empty() || arrived.len() != count {
            let (name, first) = (&recording.name, wrong.first());
            let (wrong, came) = (wrong.len(), arrived.len());
            writeln!(complaints, "{name}: {wrong} of {count} differ, {came} came: {first:?}")
                .unwrap();
        }
    }
    assert!(complaints.is_empty(), "{complaints}");
}
