//! Every pattern against values worked out by hand, its law, and what is refused.

use super::*;
use crate::traffic::tests::chi_square;

fn on(text: &str, nodes: u32, grid: &[u32]) -> Pattern {
    Pattern::parse(text, nodes, Some(grid)).unwrap()
}

fn pattern(text: &str, nodes: u32) -> Pattern {
    Pattern::parse(text, nodes, None).unwrap()
}

fn message(text: &str, nodes: u32, grid: Option<&[u32]>) -> String {
    Pattern::parse(text, nodes, grid).unwrap_err().to_string()
}

/// The destinations of a pattern that draws nothing.
fn all(pattern: &Pattern) -> Vec<Option<u32>> {
    let destination = |source| {
        let one = pattern.destination(1, source, 0);
        assert_eq!(one, pattern.destination(2, source, 77), "{pattern} of {source}");
        one
    };
    (0..pattern.nodes()).map(destination).collect()
}

fn is_permutation(pattern: &Pattern) -> bool {
    let mut destinations: Vec<_> = all(pattern).into_iter().flatten().collect();
    destinations.sort_unstable();
    destinations.into_iter().eq(0..pattern.nodes())
}

/// The share of each destination is as expected, in 36 000 draws: the sum of squares has a mean of
/// one less than the destinations and a deviation of the root of twice that; bound at five of
/// those.
fn has_law(pattern: &Pattern, source: u32, expected: impl Fn(u32) -> f64) {
    let mut counts = vec![0_u32; pattern.nodes() as usize];
    for serial in 0..36_000 {
        counts[pattern.destination(42, source, serial).unwrap() as usize] += 1;
    }
    let chances: Vec<_> = (0..pattern.nodes()).map(expected).collect();
    let (sum, bound) = chi_square(&counts, &chances);
    assert!(sum < bound, "{pattern} from {source}: {sum} of at most {bound}, {counts:?}");
}

#[test]
fn bit_permutations_move_bits() {
    let transpose = pattern("transpose", 16);
    for (source, destination) in [(0b0110, 0b1001), (0b0001, 0b0100), (0b1111, 0b1111)] {
        assert_eq!(all(&transpose)[source], Some(destination));
    }
    // Nine nodes are no power of two; on 3 x 3, column 1 of row 0 and column 2 of row 1.
    let square = all(&on("transpose", 9, &[3, 3]));
    assert_eq!([square[1], square[5]], [Some(3), Some(7)]);
    // 4 x 16 nodes: the bits count, not the grid.
    assert_eq!(all(&on("transpose", 64, &[4, 16]))[0b000_011], Some(0b011_000));
    let complement = all(&pattern("bit_complement", 8));
    assert_eq!([complement[0], complement[3]], [Some(7), Some(4)]);
    let reverse = all(&pattern("bit_reverse", 16));
    assert_eq!([reverse[0b0001], reverse[0b0011]], [Some(0b1000), Some(0b1100)]);
    let shuffle = all(&pattern("bit_shuffle", 8));
    assert_eq!([shuffle[0b011], shuffle[0b110], shuffle[0b100]], [Some(6), Some(5), Some(1)]);
}

#[test]
fn bit_permutations_match_explicit_bits() {
    for bits in 1..11_usize {
        let nodes = 1 << bits;
        let fast = |name| all(&pattern(name, nodes));
        let twin = |change: &dyn Fn(String) -> String| -> Vec<Option<u32>> {
            let one = |source: u32| {
                let written = format!("{source:0width$b}", width = bits);
                u32::from_str_radix(&change(written), 2).ok()
            };
            (0..nodes).map(one).collect()
        };
        let flip = |bit: char| if bit == '0' { '1' } else { '0' };
        assert_eq!(fast("bit_complement"), twin(&|b| b.chars().map(flip).collect()));
        assert_eq!(fast("bit_reverse"), twin(&|b| b.chars().rev().collect()));
        assert_eq!(fast("bit_shuffle"), twin(&|b| b[1..].to_owned() + &b[..1]));
        if bits % 2 == 0 {
            let half = bits / 2;
            assert_eq!(fast("transpose"), twin(&|b| b[half..].to_owned() + &b[..half]));
        }
    }
}

#[test]
fn grid_patterns_shift_every_dimension() {
    // On 8 x 8, three on: (0, 0) to (3, 3) and, around the end, (7, 7) to (2, 2).
    let tornado = all(&on("tornado", 64, &[8, 8]));
    assert_eq!([tornado[0], tornado[63]], [Some(27), Some(18)]);
    // On 5 x 3, two and one on: (4, 0) to (1, 1).
    assert_eq!(all(&on("tornado", 15, &[5, 3]))[4], Some(6));
    // On 4 x 3 x 2: (3, 0, 1) is 15 and goes to (0, 1, 0), (3, 2, 1) is 23 and goes to (0, 0, 0).
    let neighbour = all(&on("neighbour", 24, &[4, 3, 2]));
    assert_eq!([neighbour[15], neighbour[23]], [Some(4), Some(0)]);
    assert_eq!(all(&on("neighbour", 3, &[1, 3])), [Some(1), Some(2), Some(0)]);
}

#[test]
fn permutations_are_permutations() {
    for bits in 0..9 {
        for name in ["bit_complement", "bit_reverse", "bit_shuffle"] {
            assert!(is_permutation(&pattern(name, 1 << bits)), "{name} of {bits} bits");
        }
        assert!(is_permutation(&pattern("transpose", 1 << (2 * (bits / 2)))));
    }
    for grid in [&[7, 7][..], &[4, 3, 2], &[1], &[2, 5]] {
        let nodes = grid.iter().product();
        assert!(is_permutation(&on("tornado", nodes, grid)));
        assert!(is_permutation(&on("neighbour", nodes, grid)));
    }
    for seed in 0..20 {
        assert!(is_permutation(&pattern(&format!("random_permutation:{seed}"), 37)));
    }
    assert!(is_permutation(&pattern("permutation:2,0,1", 3)));
}

#[test]
fn random_permutations_are_drawn_by_their_seed() {
    // Computed apart from this code, in Python.
    let drawn: Vec<_> = all(&pattern("random_permutation:3", 8)).into_iter().flatten().collect();
    assert_eq!(drawn, [1, 5, 2, 4, 7, 6, 3, 0]);
    // Each of the six orders of three as often: 6000 seeds, five degrees of freedom.
    let mut counts = [0; 6];
    for seed in 0..6000 {
        let order = all(&pattern(&format!("random_permutation:{seed}"), 3));
        let place = |a: Option<u32>, b: Option<u32>| usize::from(a > b);
        let first = order[0].unwrap() as usize;
        counts[first * 2 + place(order[1], order[2])] += 1;
    }
    let (sum, bound) = chi_square(&counts, &[1.0 / 6.0; 6]);
    assert!(sum < bound, "{sum} of at most {bound}");
}

#[test]
fn uniform_patterns_cover_their_destinations_evenly() {
    has_law(&pattern("uniform", 16), 3, |_| 1.0 / 16.0);
    for source in [0, 3, 15] {
        let chance = |node| if node == source { 0.0 } else { 1.0 / 15.0 };
        has_law(&pattern("uniform_others", 16), source, chance);
    }
    let left = |node| if node == 0 || node == 5 { 0.0 } else { 1.0 / 6.0 };
    has_law(&pattern("background:5,0", 8), 5, left);
}

#[test]
fn skewed_patterns_have_the_expected_weights() {
    let diagonal = pattern("diagonal", 4);
    has_law(&diagonal, 1, |node| [0.0, 2.0 / 3.0, 1.0 / 3.0, 0.0][node as usize]);
    has_law(&diagonal, 3, |node| [1.0 / 3.0, 0.0, 0.0, 2.0 / 3.0][node as usize]);
    let asymmetric = pattern("asymmetric", 8);
    has_law(&asymmetric, 5, |node| if node % 4 == 1 { 0.5 } else { 0.0 });
    // Of 7 nodes, halves of 3: node 6 is 0 modulo 3.
    has_law(&pattern("asymmetric", 7), 6, |node| if node % 3 == 0 && node < 6 { 0.5 } else { 0.0 });
    let around = [55, 56, 57, 63, 0, 1, 7, 8, 9];
    let near = |node| if around.contains(&node) { 1.0 / 18.0 } else { 0.0 };
    has_law(&pattern("taper64", 64), 0, |node| near(node) + 1.0 / 128.0);
    let groups = pattern("bad_dragonfly:8", 24);
    has_law(&groups, 3, |node| if node / 8 == 1 { 0.125 } else { 0.0 });
    has_law(&groups, 20, |node| if node / 8 == 0 { 0.125 } else { 0.0 });
    // Node 6 of 4 x 4 is in row 1.
    has_law(&on("bad_yarc", 16, &[4, 4]), 6, |node| if node % 4 == 1 { 0.25 } else { 0.0 });
}

#[test]
fn chosen_nodes_receive_by_weight() {
    has_law(&pattern("hotspot:1,3", 4), 1, |node| f64::from(node % 2) / 2.0);
    let weighted = pattern("hotspot:0,3,1/5,2,0", 4);
    has_law(&weighted, 2, |node| [5.0 / 7.0, 0.0, 0.0, 2.0 / 7.0][node as usize]);
    assert_eq!(pattern("hotspot:7", 8).destination(0, 7, 3), Some(7));
}

#[test]
fn only_listed_sources_send() {
    let one = pattern("one_to_many:2/0,3", 4);
    has_law(&one, 2, |node| if node % 3 == 0 { 0.5 } else { 0.0 });
    assert_eq!([0, 1, 2, 3].map(|node| one.sends(node)), [false, false, true, false]);
    assert_eq!(one.destination(5, 1, 0), None);
    has_law(&pattern("one_to_many:2", 4), 2, |node| if node == 2 { 0.0 } else { 1.0 / 3.0 });
    let many = pattern("many_to_one:0,3/1", 4);
    assert_eq!(all(&many), [Some(1), None, None, Some(1)]);
    assert_eq!([0, 1, 2, 3].map(|node| many.sends(node)), [true, false, false, true]);
    assert_eq!(all(&pattern("many_to_one:1", 4)), [Some(1), None, Some(1), Some(1)]);
    assert_eq!(all(&pattern("destinations:1,-,1", 3)), [Some(1), None, Some(1)]);
    assert!(pattern("uniform", 2).sends(1));
}

#[test]
fn destinations_of_a_seed_never_change() {
    // Computed apart from this code, in Python: Philox by its paper, then floor(bits x 64 / 2^64).
    let uniform = pattern("uniform", 64);
    let drawn = [0, 1, 2, 3, 4, 5, (1 << 32) + 1].map(|k| uniform.destination(2017, 5, k).unwrap());
    assert_eq!(drawn, [34, 54, 22, 29, 18, 13, 3]);
    assert_ne!(uniform.destination(2018, 5, 0), Some(34), "another seed");
    assert_ne!(uniform.destination(2017, 6, 0), Some(34), "another source");
}

#[test]
fn every_pattern_is_in_the_registry_and_round_trips() {
    let arguments = |entry: &Entry| match entry.argument {
        "" => String::new(),
        "SEED" | "NODES_PER_GROUP" => ":8".to_owned(),
        _ if entry.name == "background" => ":3".to_owned(),
        "NODE,.../WEIGHT,..." => ":0,9/1,2".to_owned(),
        "NODE/NODE,..." => ":0/9,5".to_owned(),
        "NODE,.../NODE" => ":0,9/5".to_owned(),
        "WEIGHT,...;WEIGHT,...;..." => format!(":{}", [&["1"; 64].join(",")[..]; 64].join(";")),
        _ => format!(":{}", (0..64).map(|n| n.to_string()).collect::<Vec<_>>().join(",")),
    };
    for (number, entry) in REGISTRY.iter().enumerate() {
        let text = format!("{}{}", entry.name, arguments(entry));
        let pattern = on(&text, 64, &[8, 8]);
        assert_eq!(pattern.to_string(), text);
        assert_eq!(on(&format!(" {} ", text.replace(':', " : ")), 64, &[8, 8]).rule, pattern.rule);
        for source in (0..64).filter(|&source| pattern.sends(source)) {
            assert!(pattern.destination(9, source, 4).is_some_and(|node| node < 64));
        }
        assert!(REGISTRY[..number].iter().all(|other| other.name != entry.name));
        let extra = message(&format!("{}:x", entry.name), 64, Some(&[8, 8]));
        assert!(extra.contains(&format!("expected `{}", entry.name)), "{extra}");
    }
}

#[test]
fn invalid_patterns_are_rejected() {
    assert_eq!(
        message("bit_flip", 8, None),
        "unknown traffic pattern `bit_flip`: expected one of uniform, uniform_others, background, \
         transpose, bit_complement, bit_reverse, bit_shuffle, tornado, neighbour, bad_yarc, diagonal, \
         asymmetric, taper64, bad_dragonfly, random_permutation, permutation, destinations, hotspot, \
         one_to_many, many_to_one, matrix"
    );
    let unreadable = |text, form| {
        assert_eq!(message(text, 8, None), format!("`{text}` cannot be read: expected `{form}`"));
    };
    unreadable("uniform:3", "uniform");
    unreadable("hotspot", "hotspot:NODE,.../WEIGHT,...");
    unreadable("hotspot:1,", "hotspot:NODE,.../WEIGHT,...");
    unreadable("hotspot:1/", "hotspot:NODE,.../WEIGHT,...");
    unreadable("hotspot:-1", "hotspot:NODE,.../WEIGHT,...");
    unreadable("random_permutation:", "random_permutation:SEED");
    unreadable("bad_dragonfly:0", "bad_dragonfly:NODES_PER_GROUP");
    unreadable("one_to_many:1/", "one_to_many:NODE/NODE,...");
    unreadable("matrix:1,x;0,1", "matrix:WEIGHT,...;WEIGHT,...;...");
}

#[test]
fn a_matrix_has_a_row_of_weights_for_each_source() {
    let matrix = pattern("matrix:0,1,3;0,0,0;2,0,2", 3);
    has_law(&matrix, 0, |node| [0.0, 0.25, 0.75][node as usize]);
    has_law(&matrix, 2, |node| [0.5, 0.0, 0.5][node as usize]);
    assert_eq!([0, 1, 2].map(|source| matrix.sends(source)), [true, false, true]);
    assert_eq!(matrix.destination(42, 1, 0), None);
}

#[test]
fn patterns_that_do_not_fit_the_nodes_are_rejected() {
    let undefined = |text, nodes, expected| {
        let sentence = format!("`{text}` is not defined for {nodes} nodes: expected {expected}");
        assert_eq!(message(text, nodes, Some(&[nodes])), sentence);
    };
    undefined("uniform", 0, "at least one");
    undefined("uniform_others", 1, "at least two");
    undefined("asymmetric", 1, "at least two");
    undefined("many_to_one:0", 1, "at least two");
    undefined("bit_reverse", 12, "a power of two");
    undefined("transpose", 8, "an even power of two, or a square grid");
    undefined("taper64", 63, "exactly 64");
    undefined("bad_dragonfly:8", 8, "two or more groups of this many");
    undefined("bad_dragonfly:8", 20, "two or more groups of this many");
}

#[test]
fn patterns_that_do_not_fit_the_grid_are_rejected() {
    assert_eq!(
        message("tornado", 8, None),
        "`tornado` needs a grid of nodes, which the network lacks"
    );
    assert_eq!(message("tornado", 8, Some(&[3, 3])), "a grid of 3x3 does not hold 8 nodes");
    assert_eq!(message("transpose", 8, Some(&[3, 3])), "a grid of 3x3 does not hold 8 nodes");
    assert_eq!(message("neighbour", 8, Some(&[0, 8])), "a grid of 0x8 does not hold 8 nodes");
    assert_eq!(
        message("bad_yarc", 8, Some(&[4, 2])),
        "`bad_yarc` is not defined on a grid of 4x2: expected two dimensions of the same size"
    );
}

#[test]
fn lists_that_do_not_fit_are_rejected() {
    assert_eq!(
        message("hotspot:1,8", 8, None),
        "`hotspot:1,8` names node 8: the last of 8 nodes is 7"
    );
    assert_eq!(message("hotspot:1,2,1", 8, None), "`hotspot:1,2,1` names node 1 twice");
    assert_eq!(message("hotspot:1,2/3", 8, None), "`hotspot:1,2/3` gives 1 weights: expected 2");
    assert_eq!(
        message("hotspot:1,2/0,0", 8, None),
        "`hotspot:1,2/0,0` gives every weight as 0: expected at least one above"
    );
    assert_eq!(
        message("permutation:1,0", 3, None),
        "`permutation:1,0` gives 2 destinations: expected 3"
    );
    assert_eq!(message("permutation:1,1", 2, None), "`permutation:1,1` names node 1 twice");
    assert_eq!(message("background:0,1", 2, None), "`background:0,1` leaves no node to send to");
    assert_eq!(
        message("destinations:-,-", 2, None),
        "`destinations:-,-` leaves no node to send to"
    );
    assert_eq!(message("one_to_many:0", 1, None), "`one_to_many:0` leaves no node to send to");
    assert_eq!(message("matrix:0,1", 2, None), "`matrix:0,1` gives 1 rows: expected 2");
    assert_eq!(
        message("matrix:0,1;1", 2, None),
        "`matrix:0,1;1` gives 1 weights in a row: expected 2"
    );
    assert_eq!(message("matrix:0,0;0,0", 2, None), "`matrix:0,0;0,0` leaves no node to send to");
}

#[test]
#[should_panic(expected = "source 4 is not below 4 nodes")]
fn a_nonexistent_source_panics() {
    let _ = pattern("uniform", 4).destination(0, 4, 0);
}

#[test]
fn names_of_booksim_are_aliases() {
    for (alias, name) in super::ALIASES {
        let [alias, pattern] = [alias, name].map(|name| Pattern::parse(name, 16, Some(&[4, 4])));
        let (alias, pattern) = (alias.unwrap(), pattern.unwrap());
        let all = |pattern: &Pattern| (0..16).map(|node| pattern.destination(1, node, 0)).collect();
        let (by_alias, by_name): (Vec<_>, Vec<_>) = (all(&alias), all(&pattern));
        assert_eq!(by_alias, by_name, "{name}");
    }
}

#[test]
fn shares_are_the_frequencies_of_destinations() {
    let draws = 20_000;
    for text in [
        "uniform",
        "uniform_others",
        "background:0,5",
        "transpose",
        "diagonal",
        "asymmetric",
        "taper64",
        "bad_dragonfly:8",
        "bad_yarc",
        "hotspot:3,9/1,4",
        "one_to_many:2/7,8",
        "many_to_one:5",
    ] {
        let pattern = Pattern::parse(text, 64, Some(&[8, 8])).unwrap();
        let shares = pattern.shares();
        for source in [0, 2, 5, 63] {
            let mut counts = [0_u32; 64];
            for serial in 0..draws {
                if let Some(destination) = pattern.destination(7, source, serial) {
                    counts[destination as usize] += 1;
                }
            }
            for (destination, &count) in (0..).zip(&counts) {
                let share = shares.of(source, destination);
                #[expect(clippy::cast_precision_loss, reason = "a small count")]
                let found = f64::from(count) / draws as f64;
                assert!((share - found).abs() < 0.015, "{text}: {source} to {destination}");
            }
        }
    }
}
