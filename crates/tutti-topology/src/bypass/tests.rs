use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

fn mesh(side: u32, wires: u32, muxes: Muxes) -> BypassMesh {
    BypassMesh::new(side, side, wires, muxes).unwrap()
}

fn four(text: &str) -> Configuration {
    Configuration::parse(mesh(4, 1, Muxes::Any), text).unwrap()
}

fn refused(mesh: BypassMesh, text: &str) -> (usize, String) {
    let Located { at, error } = Configuration::parse(mesh, text).unwrap_err();
    (at, error.to_string())
}

/// The rings of the paper's hierarchical example, in both directions: 4-rings in every 2x2
/// quadrant, and rings of the mirror images across quadrants, such as {1, 2, 14, 13}.
///
/// Counted by hand: the quadrants take 4 x 8 mesh links, and edges such as 1-2 the other 16. The
/// edges 0-3, 4-7, ... of four rows and 0-12, 1-13, ... of four columns each take a full wire in
/// both directions: 8 x 2 x 3 = 48 segments.
fn hierarchical_rings() -> Vec<LinkRequest> {
    let quadrant = [[0, 1, 5, 4], [2, 3, 7, 6], [8, 9, 13, 12], [10, 11, 15, 14]];
    let mirrored = [[1, 2, 14, 13], [0, 3, 15, 12], [5, 6, 10, 9], [4, 7, 11, 8]];
    let ring = |ring: [u32; 4]| (0..4).map(move |at| (ring[at], ring[(at + 1) % 4]));
    let edges = quadrant.into_iter().chain(mirrored).flat_map(ring);
    let both = edges.flat_map(|(a, b)| [(a, b), (b, a)]);
    both.map(|(source, destination)| {
        let far = source.abs_diff(destination) != 1 && source.abs_diff(destination) != 4;
        let kind = if far { Kind::Bypass { wire: None, ports: None } } else { Kind::Mesh };
        LinkRequest { source, destination, kind }
    })
    .collect()
}

#[test]
fn the_hierarchical_rings_of_the_paper_take_everything() {
    let mesh = mesh(4, 1, Muxes::Any);
    let mesh_with = |muxes| BypassMesh::new(4, 4, 1, muxes).unwrap();
    let rings = Configuration::new(mesh, &hierarchical_rings()).unwrap();
    assert_eq!((rings.used_mesh_links(), mesh.total_mesh_links()), (48, 48));
    assert_eq!((rings.used_bypass_segments(), mesh.total_bypass_segments()), (48, 48));
    // All 96 segments, and 4 inputs and 4 outputs at all 16 nodes.
    assert_eq!(rings.idle_ports(), []);
    assert_eq!(rings.links().len(), 16 * 4);
    assert_eq!(rings.notation(), "mesh,0=3,0=12,1=13,2=14,3=15,4=7,8=11,12=15");
    // Edges with the same sign at a corner need ports of any kind.
    let fits = |muxes| Configuration::new(mesh_with(muxes), &hierarchical_rings()).is_ok();
    assert_eq!(Muxes::ALL.map(fits), [false, true, false, true]);
}

#[test]
fn a_piece_of_full_length_per_line_makes_a_torus() {
    let rows = (0..4).map(|row| format!("{}={}", 4 * row, 4 * row + 3));
    let columns = (0..4).map(|column| format!("{column}={}", column + 12));
    let text = format!("mesh,{}", rows.chain(columns).collect::<Vec<_>>().join(","));
    let torus = Configuration::parse(mesh(4, 1, Muxes::Axis), &text).unwrap();
    let wrap = torus.links().iter().find(|link| link.is_bypass()).unwrap();
    assert_eq!((wrap.source, wrap.destination), (0, 3));
    // An eastward piece may use the west output port, which has no neighbour, and the east input
    // port.
    assert_eq!((wrap.output, wrap.input), (Port::West, Port::East));
}

#[test]
fn rows_and_columns_may_have_different_lengths() {
    let wide = BypassMesh::parse("6x3,wires=2").unwrap().0;
    assert_eq!((wide.columns(), wide.rows(), wide.nodes()), (6, 3, 18));
    assert_eq!(wide.notation(), "6x3,wires=2");
    // Rows of 5 segments and columns of 2, in two directions.
    assert_eq!(wide.total_mesh_links(), 2 * (3 * 5 + 6 * 2));
    assert_eq!(wide.total_bypass_segments(), 2 * wide.total_mesh_links());
    assert_eq!(wide.mesh_links().count() as u64, wide.total_mesh_links());
    assert_eq!(wide.displacement(6, 11), Some((Port::East, 5)));
    assert_eq!(wide.displacement(17, 5), Some((Port::North, 2)));
    // All wires of all lines at full length, in both directions.
    let rows = (0..3).map(|row| format!("{}={}", 6 * row, 6 * row + 5));
    let columns = (0..6).map(|column| format!("{column}={}", column + 12));
    let text = rows.chain(columns).collect::<Vec<_>>().join(",");
    let long = Configuration::parse(wide, &text).unwrap();
    assert_eq!(long.used_bypass_segments(), wide.total_mesh_links());
    let (at, text) = refused(wide, "0=>3,1=>4,2=>5,0=>18");
    assert_eq!((at, text.as_str()), (15, "node 18 does not exist on 6x3; expected at most 17"));
    let (_, text) = refused(wide, "0=>3,1=>4,2=>5");
    assert!(text.starts_with("2=>5 needs segment 2 of row 0 going east"), "{text}");
}

#[test]
fn idle_ports_get_their_mesh_links_back() {
    let empty = four("");
    assert_eq!(empty.idle_ports().len(), 16 * 8);
    assert_eq!(empty.filled(), four("mesh"));
    // 1=>3 takes the east output of node 1 unless another port is requested, so 1>2 stays idle.
    let one = four("1=>3");
    assert_eq!(one.links()[0].output, Port::East);
    assert_eq!(one.filled().used_mesh_links(), 46);
    let other = four("1=>3/north/north").filled();
    assert_eq!(other.used_mesh_links(), 48);
    assert_eq!(other.notation(), "mesh,1=>3/north/north");
}

#[test]
fn pieces_take_the_ports_that_mesh_links_leave() {
    // Node 5 sends on two pieces and two mesh links, whose ports are fixed.
    let links = four("5>6,5>4,5=>13,5=>7");
    let outputs: BTreeMap<u32, Port> =
        links.links().iter().map(|link| (link.destination, link.output)).collect();
    assert_eq!((outputs[&6], outputs[&4]), (Port::East, Port::West));
    assert_eq!((outputs[&7], outputs[&13]), (Port::South, Port::North));
    // With the sign of travel, 5=>7 can leave east or south only, and so can 5=>13.
    let sign = mesh(4, 1, Muxes::Sign);
    let two = Configuration::parse(sign, "5=>13,5=>7").unwrap();
    let outputs: BTreeSet<Port> = two.links().iter().map(|link| link.output).collect();
    assert_eq!(outputs, BTreeSet::from([Port::East, Port::South]));
    let (at, text) = refused(sign, "5>6,5=>13,5=>7");
    assert_eq!(at, 4);
    assert_eq!(
        text,
        "5=>13 has no free output port at node 5: with muxes=sign it can use south, east, \
         which 5>6, 5=>7 need"
    );
}

#[test]
fn the_lowest_wire_that_is_free() {
    let two = mesh(4, 2, Muxes::Any);
    let of = |text| Configuration::parse(two, text).unwrap().notation();
    assert_eq!(of("0=>2,1=>3"), "0=>2@0,1=>3@1");
    assert_eq!(of("0=>2,1=>3@0"), "0=>2@1,1=>3@0");
    assert_eq!(of("0=>1,1=>3"), "0=>1@0,1=>3@0");
    // The other direction has separate wires.
    assert_eq!(of("0=3,1=2"), "0=3@0,1=2@1");
}

#[test]
fn what_cannot_be_is_named() {
    let (any, own) = (mesh(4, 1, Muxes::Any), mesh(4, 1, Muxes::Own));
    for (mesh, text, at, problem) in [
        (
            any,
            "mesh,0=>3,1=>2",
            10,
            "1=>2 needs segment 1 of row 0 going east, wire 0, which 0=>3 uses",
        ),
        (any, "3=>0,2=>1", 5, "2=>1 needs segment 1 of row 0 going west, wire 0, which 3=>0 uses"),
        (any, "0=>8,4=>12", 5, "4=>12 needs segment 1 of column 0 going south, wire 0"),
        (any, "0>1,0>1", 4, "0>1 needs the output port east of node 0, which 0>1 uses"),
        (any, "0>1,0=>3/east/west", 4, "0=>3 needs the output port east of node 0, which 0>1 uses"),
        (any, "2>3,0=>3/west/west", 4, "0=>3 needs the input port west of node 3, which 2>3 uses"),
        (any, "mesh,5=>7", 5, "5=>7 has no free output port at node 5"),
        (any, "0=>16", 0, "node 16 does not exist on 4x4; expected at most 15"),
        (any, "0=>5", 0, "node 0 and node 5 are in different rows and columns"),
        (any, "3>4", 0, "node 3 and node 4 are not neighbours"),
        (any, "mesh,0-2", 5, "node 0 and node 2 are not neighbours"),
        (any, "7=>7", 0, "node 7 is linked to itself"),
        (any, "0=>3@1", 0, "0=>3 requests wire 1, but a line has 1 for each direction"),
        (own, "0=>3/south/west", 0, "cannot use the output port south of node 0: with muxes=own"),
        (own, "0=>3/east/north", 0, "cannot use the input port north of node 3"),
        (any, "mesh,,0-1", 5, "found nothing; expected `mesh`, a mesh link"),
        (any, "0+1", 0, "found `0+1`; expected `mesh`"),
        (any, "0>one", 0, "found `0>one`; expected `mesh`"),
        (any, "0>1@0", 0, "found `0>1@0`; expected a mesh link without"),
        (any, "0=3/west/east", 0, "expected ports after a link in one direction"),
        (any, "0=>3/up/down", 0, "expected an output and an input port"),
        (any, "0=>3/west", 0, "expected an output and an input port"),
        (any, "bypass:8x8:mesh", 7, "this is a configuration of 8x8; expected one of 4x4"),
        (any, "bypass:4x4,muxes=own:mesh", 7, "this is a configuration of 4x4,muxes=own"),
    ] {
        let (found, error) = refused(mesh, text);
        assert!(error.contains(problem), "{text}: {error}");
        assert_eq!(found, at, "{text}: {error}");
    }
    for (text, at, problem) in [
        ("four", 0, "found `four`; expected the numbers of columns and rows"),
        ("6x1", 0, "a mesh of 6x1 nodes; expected 2x2 to 256x256"),
        ("1x1", 0, "a mesh of 1x1 nodes; expected 2x2 to 256x256"),
        ("300x300", 0, "a mesh of 300x300 nodes"),
        ("4x4,wires=two", 4, "expected an integer"),
        ("4x4,wires=99", 0, "99 bypass wires along each line; expected at most 64"),
        ("4x4,muxes=all", 4, "unknown muxes `all`; expected one of own, axis, sign, any"),
        ("4x4,wires=1,wires=1", 12, "expected `wires` once"),
        ("4x4,distance,distance", 13, "expected `distance` once"),
    ] {
        let Located { at: found, error } = BypassMesh::parse(text).unwrap_err();
        assert!(error.to_string().contains(problem), "{text}: {error}");
        assert_eq!(found, at, "{text}");
    }
}

/// Any number of pieces and mesh links, with and without ports.
fn anything() -> impl Strategy<Value = (BypassMesh, Vec<LinkRequest>)> {
    let muxes = prop::sample::select(Muxes::ALL.to_vec());
    (2_u32..5, 2_u32..5, 0_u32..3, muxes).prop_flat_map(|(columns, rows, wires, muxes)| {
        let nodes = columns * rows;
        let wire = prop::option::weighted(0.3, 0..wires.max(1));
        let port = || prop::sample::select(Port::ALL.to_vec());
        let ports = prop::option::weighted(0.3, (port(), port()));
        let link = (0..nodes, 0..nodes, prop::bool::weighted(0.3), wire, ports).prop_map(
            |(source, destination, is_mesh, wire, ports)| LinkRequest {
                source,
                destination,
                kind: if is_mesh { Kind::Mesh } else { Kind::Bypass { wire, ports } },
            },
        );
        let mesh = BypassMesh::new(columns, rows, wires, muxes).unwrap();
        (Just(mesh), prop::collection::vec(link, 0..12))
    })
}

/// Adds the links sequentially and drops each that conflicts with earlier ones. The result is a
/// valid configuration, so that the properties test more than errors.
fn what_fits(mesh: BypassMesh, requests: &[LinkRequest]) -> Vec<LinkRequest> {
    let mut kept: Vec<LinkRequest> = Vec::new();
    for &link in requests {
        kept.push(link);
        if Configuration::new(mesh, &kept).is_err() {
            kept.pop();
        }
    }
    kept
}

/// The unit steps of a piece: node and direction of each.
fn steps(mesh: BypassMesh, link: &Link) -> Vec<(u32, Port)> {
    let (direction, span) = mesh.displacement(link.source, link.destination).unwrap();
    let mut at = link.source;
    let step = |_| {
        let from = at;
        at = mesh.neighbour(at, direction).unwrap();
        (from, direction)
    };
    let steps: Vec<_> = (0..span).map(step).collect();
    assert_eq!(at, link.destination);
    steps
}

/// Whether links can be matched to ports, by exhaustive search.
fn can_match(choices: &[Vec<Port>], taken: &mut BTreeSet<Port>) -> bool {
    let Some((first, rest)) = choices.split_first() else { return true };
    first.iter().any(|&port| {
        if !taken.insert(port) {
            return false;
        }
        let fits = can_match(rest, taken);
        taken.remove(&port);
        fits
    })
}

proptest! {
    /// No two pieces share a segment of a wire, no two links a port, and the multiplexers allow
    /// every port.
    #[test]
    fn segments_and_ports_have_one_link((mesh, requests) in anything()) {
        let kept = what_fits(mesh, &requests);
        let made = Configuration::new(mesh, &kept).unwrap();
        prop_assert_eq!(made.links().len(), kept.len());
        let (mut segments, mut ports) = (BTreeSet::new(), BTreeSet::new());
        for link in made.links() {
            let (direction, _) = mesh.displacement(link.source, link.destination).unwrap();
            if let Some(wire) = link.wire {
                prop_assert!(wire < mesh.wires());
                for step in steps(mesh, link) {
                    prop_assert!(segments.insert((step, wire)));
                }
                prop_assert!(mesh.muxes().outputs(direction).contains(&link.output));
                prop_assert!(mesh.muxes().inputs(direction).contains(&link.input));
            } else {
                prop_assert_eq!((link.output, link.input), (direction, direction.opposite()));
            }
            prop_assert!(ports.insert((link.source, true, link.output)));
            prop_assert!(ports.insert((link.destination, false, link.input)));
        }
        prop_assert_eq!(segments.len() as u64, made.used_bypass_segments());
        let all = u64::from(mesh.nodes()) * 8;
        prop_assert_eq!(made.idle_ports().len() as u64, all - ports.len() as u64);
        // `filled` adds exactly the mesh links whose ports are both idle.
        let filled = made.filled();
        let back = mesh.mesh_links().filter(|&(source, port, destination)| {
            !ports.contains(&(source, true, port))
                && !ports.contains(&(destination, false, port.opposite()))
        });
        prop_assert_eq!(filled.links().len(), made.links().len() + back.count());
        prop_assert_eq!(filled.filled(), filled);
    }

    /// The notation parses to the same configuration, whatever the order of the requests.
    #[test]
    fn text_and_back((mesh, requests) in anything()) {
        let mut kept = what_fits(mesh, &requests);
        let made = Configuration::new(mesh, &kept).unwrap();
        prop_assert_eq!(&Configuration::parse(mesh, &made.notation()).unwrap(), &made);
        let notation = format!("bypass:{}:{}", mesh.notation(), made.notation());
        prop_assert_eq!(&Configuration::parse(mesh, &notation).unwrap(), &made);
        if mesh.wires() < 2 {
            kept.reverse();
            prop_assert_eq!(&Configuration::new(mesh, &kept).unwrap(), &made);
        }
    }

    /// Ports are found whenever a matching exists: links of one node, compared with exhaustive
    /// search.
    #[test]
    fn ports_are_found_if_there_are_any(
        muxes in prop::sample::select(Muxes::ALL.to_vec()),
        bypass in prop::collection::btree_set((0_u32..2, 0_u32..3), 0..7),
        own in prop::collection::btree_set(0_usize..4, 0..4),
    ) {
        // Node 4 is the middle of 3 x 3. It sends to the ends of its row and column on several
        // wires.
        let mesh = mesh(3, 2, muxes);
        let mut requests: Vec<LinkRequest> = own
            .iter()
            .filter_map(|&port| mesh.neighbour(4, Port::ALL[port]))
            .map(|destination| LinkRequest { source: 4, destination, kind: Kind::Mesh })
            .collect();
        let mut choices: Vec<Vec<Port>> = own.iter().map(|&port| vec![Port::ALL[port]]).collect();
        for &(wire, port) in &bypass {
            let direction = Port::ALL[port as usize];
            let destination = mesh.neighbour(4, direction).unwrap();
            let kind = Kind::Bypass { wire: Some(wire), ports: None };
            requests.push(LinkRequest { source: 4, destination, kind });
            choices.push(muxes.outputs(direction));
        }
        // At most two links arrive at a neighbour by bypass and one by the mesh, so outputs decide
        // unless its inputs are too few as well.
        let inputs = |port: Port| {
            let bypass = bypass.iter().filter(|&&(_, p)| Port::ALL[p as usize] == port);
            let mesh = own.contains(&port.index()).then(|| vec![port.opposite()]);
            mesh.into_iter().chain(bypass.map(|_| muxes.inputs(port))).collect::<Vec<_>>()
        };
        let fits = can_match(&choices, &mut BTreeSet::new())
            && Port::ALL.into_iter().all(|port| can_match(&inputs(port), &mut BTreeSet::new()));
        prop_assert_eq!(Configuration::new(mesh, &requests).is_ok(), fits);
    }
}
