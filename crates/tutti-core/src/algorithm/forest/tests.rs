use super::*;
use crate::algorithm::bound::most_loaded;
use crate::algorithm::{build as build_any, check};
use crate::topology::{self, LinkParameters};
use crate::units::{Time, TimePerByte};

const ALL: [Collective; 3] =
    [Collective::AllGather, Collective::ReduceScatter, Collective::AllReduce];

fn on(notation: &str, rates: &[u64]) -> Routes {
    let link = |&ps: &u64| LinkParameters::new(TimePerByte::new(ps, 1).unwrap(), Time::ZERO);
    let links: Vec<LinkParameters> = rates.iter().map(link).collect();
    Routes::shortest_path(Arc::new(topology::build(notation, &links).unwrap()))
}

/// The limit over the time of the most loaded link, and over that of all slots: what large payloads
/// reach.
fn reached(collective: Collective, routes: &Routes, pieces: Option<u32>) -> (f64, f64) {
    let ranks = routes.topology().npus();
    let request = Request { collective, ranks, argument: None };
    let limit = by_links(collective, ranks, routes.topology()).ps_per_byte();
    let (takes, timetable) = best(&request, routes, pieces);
    let schedule = timetable.lay_out("forest", collective).unwrap();
    let loaded = most_loaded(&schedule, routes).unwrap().ps_per_byte();
    (limit / loaded, limit / takes)
}

#[test]
fn it_comes_close_to_the_limit() {
    for (notation, rates) in [
        ("ring:8", &[1][..]),
        ("torus:4x4", &[1]),
        ("mesh:4x4", &[1]),
        ("torus:2x2x2", &[1]),
        ("switch:8", &[1]),
        ("fully_connected:8", &[1]),
        ("hierarchical:switch:4/switch:4", &[1, 9]),
        ("hierarchical:switch:4/ring:4", &[1, 4]),
        ("hierarchical:fully_connected:4/rail:switch:4", &[1, 3]),
    ] {
        let routes = on(notation, rates);
        for collective in ALL {
            let (reached, slots) = reached(collective, &routes, None);
            assert!(reached > 0.98, "{notation} {collective}: {reached}");
            assert!(slots > 0.95, "{notation} {collective}: {slots}");
        }
    }
}

#[test]
fn it_does_what_it_claims_on_every_kind_of_graph() {
    for (topology, ranks) in [
        ("ring:7", 7),
        ("mesh:3x4", 12),
        ("pieces=3,torus:3x3", 9),
        ("switch:6", 6),
        ("hierarchical:switch:4/ring:3", 12),
        ("hierarchical:ring:3/rail:switch:4", 12),
    ] {
        for collective in ALL {
            let proof = check::performs(&format!("forest:{topology}"), collective, ranks);
            assert!(proof.rendezvous_safe(), "{topology}");
        }
    }
}

#[test]
fn without_a_graph_everything_happens_at_once() {
    for ranks in [2, 3, 8, 13] {
        for collective in ALL {
            assert!(check::critical_path_is_exact("forest", collective, ranks));
        }
    }
}

#[test]
fn what_is_no_number_of_pieces_is_refused() {
    for argument in ["pieces=0,ring:4", "pieces=x", "parts=2,ring:4", "pieces=1025,ring:4"] {
        let notation = format!("forest:{argument}");
        let error = build_any(&notation, Collective::AllReduce, 4).err().unwrap().to_string();
        assert!(error.contains("is no option; expected pieces=K"), "{error}");
    }
}
