//! First checks of the fast mesh; `tests/smart_*.rs` hold it to the obvious one.

use super::super::{
    Arrival, Cast, Combine, Fabric, FanIn, FanOut, Flow, Message, NodeSet, Priority, Settings, Tree,
};
use super::Mesh;

fn settings(hops: u32, fan_out: FanOut, fan_in: FanIn) -> Settings {
    Settings { hops_per_cycle: hops, fan_out, fan_in, ..Settings::new(8, 8) }
}

fn until_empty(mesh: &mut Mesh) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    while !mesh.is_empty() {
        mesh.step(&mut arrivals);
        assert_eq!(mesh.stalled_since(), None);
    }
    arrivals
}

fn broadcast(settings: &Settings, source: u32) -> u64 {
    let mut mesh = Mesh::new(settings).unwrap();
    let cast = Cast::Many(NodeSet::all_but(64, source));
    mesh.send(Message { created: 0, source, cast, class: 0, flits: 1, tag: 7 }).unwrap();
    let arrivals = until_empty(&mut mesh);
    assert_eq!(arrivals.len(), 63);
    arrivals.iter().map(|arrival| arrival.arrived).max().unwrap()
}

fn reduction(settings: &Settings, destination: u32) -> (u64, usize, u64) {
    let mut mesh = Mesh::new(settings).unwrap();
    let members = NodeSet::all_but(64, destination);
    let flow = Flow {
        created: 0,
        destination,
        members: members.clone(),
        class: 0,
        combine: Combine::Count,
        held: false,
        tag: 1,
    };
    let id = mesh.open(flow).unwrap();
    for source in members.iter() {
        let cast = Cast::Response(id, 0);
        mesh.send(Message { created: 0, source, cast, class: 0, flits: 1, tag: 0 }).unwrap();
    }
    let arrivals = until_empty(&mut mesh);
    let count: u32 = arrivals.iter().map(|arrival| arrival.responses.unwrap().count).sum();
    assert_eq!(count, 63);
    (arrivals.last().unwrap().arrived, arrivals.len(), mesh.counts().link_hops)
}

#[test]
fn a_single_broadcast_has_its_zero_load_latency() {
    let tree = FanOut::Greedy(Tree::Shared);
    assert_eq!(broadcast(&settings(1, tree, FanIn::Unicasts), 0), 28);
    assert_eq!(broadcast(&settings(8, tree, FanIn::Unicasts), 0), 4);
    assert_eq!(broadcast(&settings(8, tree, FanIn::Unicasts), 27), 4);
    let tree = FanOut::Greedy(Tree::Private);
    assert_eq!(broadcast(&settings(8, tree, FanIn::Unicasts), 0), 4);
    assert_eq!(broadcast(&settings(8, tree, FanIn::Unicasts), 27), 8);
    let complete = FanOut::Complete { interval: 6 };
    assert_eq!(broadcast(&settings(8, complete, FanIn::Unicasts), 0), 2);
    let complete = FanOut::Complete { interval: 3 };
    assert_eq!(broadcast(&settings(8, complete, FanIn::Unicasts), 63), 4);
}

#[test]
fn a_single_reduction_has_its_zero_load_latency() {
    let one = settings(1, FanOut::Unicasts, FanIn::Greedy);
    let (time, responses, _) = reduction(&one, 0);
    assert!(time >= 28 && responses > 1);
    let complete = settings(8, FanOut::Unicasts, FanIn::Complete);
    assert_eq!(reduction(&complete, 0), (4, 1, 63));
    assert_eq!(reduction(&complete, 36), (4, 1, 63));
    let greedy =
        Settings { priority: Priority::Bypass, ..settings(8, FanOut::Unicasts, FanIn::Greedy) };
    assert_eq!(reduction(&greedy, 0).0, 4);
}

#[test]
fn concurrent_traffic_is_delivered() {
    let designs = [
        settings(1, FanOut::Greedy(Tree::Shared), FanIn::Greedy),
        settings(8, FanOut::Greedy(Tree::Shared), FanIn::Complete),
        settings(8, FanOut::Greedy(Tree::Private), FanIn::Greedy),
        settings(8, FanOut::Complete { interval: 5 }, FanIn::Complete),
        settings(4, FanOut::Complete { interval: 9 }, FanIn::Greedy),
        settings(3, FanOut::Unicasts, FanIn::Unicasts),
    ];
    for mut settings in designs {
        for priority in [Priority::Local, Priority::Bypass] {
            settings.priority = priority;
            settings.classes[0].depth = 5;
            let mut mesh = Mesh::new(&settings).unwrap();
            let mut arrivals = Vec::new();
            let mut expected = 0;
            for cycle in 0..200u64 {
                for source in 0..64 {
                    let odd =
                        (cycle * 64 + u64::from(source)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
                    let (cast, flits) = match odd % 64 {
                        0 => (Cast::Many(NodeSet::all_but(64, source)), 1),
                        1..4 => (Cast::One(u32::try_from(odd / 64 % 64).unwrap()), 5),
                        _ => continue,
                    };
                    expected += if flits == 1 { 63 } else { 1 };
                    let message = Message { created: cycle, source, cast, class: 0, flits, tag: 0 };
                    mesh.send(message).unwrap();
                }
                mesh.step(&mut arrivals);
            }
            arrivals.append(&mut until_empty(&mut mesh));
            assert_eq!(arrivals.len(), expected, "{settings:?}");
        }
    }
}
