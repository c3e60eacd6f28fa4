//! The readers and the writers, compared with the simple reader.

use proptest::prelude::*;

use super::*;
use crate::trace::Operations;

/// The columns, or the error, of text that is read in pieces of a few bytes.
fn read_slowly(text: &[u8], bytes: usize) -> Result<(Vec<Operations>, u64), String> {
    struct Few<'a>(&'a [u8], usize);
    impl std::io::Read for Few<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = self.1.min(buffer.len());
            self.0.read(&mut buffer[..length])
        }
    }
    found(read(Few(text, bytes)))
}

fn found(goal: Result<Goal, ReadError>) -> Result<(Vec<Operations>, u64), String> {
    match goal {
        Ok(Goal { graph, other_nics }) => {
            Ok(((0..graph.ranks()).map(|rank| graph.columns(rank)).collect(), other_nics))
        }
        Err(ReadError::Trace(error)) => Err(error.to_string()),
        Err(ReadError::File(error)) => panic!("{error}"),
    }
}

/// What the simple reader finds, with the dependencies of each operation in ascending order.
fn expected(text: &[u8]) -> Result<(Vec<Operations>, u64), String> {
    let mut goal = oracle::read(text).map_err(|error| error.to_string())?;
    for of in &mut goal.ranks {
        for at in 0..of.len() {
            let place = |at: usize| usize::try_from(of.first_dependency[at]).unwrap();
            let range = place(at)..place(at + 1);
            let mut both: Vec<_> =
                range.clone().map(|at| (of.dependencies[at], of.on_start[at])).collect();
            both.sort_unstable();
            for (at, (on, on_start)) in range.zip(both) {
                (of.dependencies[at], of.on_start[at]) = (on, on_start);
            }
        }
    }
    Ok((goal.ranks, goal.other_nics))
}

/// Lines that are valid in a block, for most sequences of them.
fn line() -> impl Strategy<Value = String> {
    let label = || (0_u8..12).prop_map(|at| format!("l{at}"));
    prop_oneof![
        8 => (label(), 0_u32..900, 0_u16..257).prop_map(|(l, t, c)| format!("{l}: calc {t} cpu {c}")),
        4 => (0_u32..4, 0_u32..9).prop_map(|(to, tag)| format!("send 8b to {to} tag {tag} nic {tag}")),
        4 => (label(), -1_i8..4, -1_i8..9).prop_map(|(l, from, tag)| {
            format!("{l}: recv 16 b from {from} cpu 2 tag {tag} // comment }}")
        }),
        8 => (label(), label()).prop_map(|(a, b)| format!("{a} requires {b}")),
        4 => (label(), label()).prop_map(|(a, b)| format!("  {a} irequires {b}\t")),
        1 => Just("/* a block } \n of a comment */".to_owned()),
        1 => Just(String::new()),
    ]
}

prop_compose! {
    /// A trace, most labels of which are defined, with the blocks in any order.
    fn text()(
        blocks in prop::collection::vec(prop::collection::vec(line(), 0..12), 1..4),
        order in any::<bool>(),
        define in prop::bool::weighted(0.8),
    ) -> String {
        let mut text = format!("num_ranks {}\n", blocks.len());
        let mut numbered: Vec<_> = blocks.iter().enumerate().collect();
        if order {
            numbered.reverse();
        }
        for (rank, lines) in numbered {
            text.push_str(&format!("rank {rank} {{\n"));
            let mut known = std::collections::BTreeSet::new();
            for line in lines {
                let label = line.split_once(": ").map(|(label, _)| label.to_owned());
                if label.is_none_or(|label| known.insert(label)) {
                    text.push_str(line);
                    text.push('\n');
                }
            }
            for at in (0..12).filter(|at| define && known.insert(format!("l{at}"))) {
                text.push_str(&format!("l{at}: calc {at}\n"));
            }
            text.push_str("}\n");
        }
        text
    }
}

/// Damages: positions, and what to put there.
fn damages() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    let byte = prop::sample::select(b"}{/*\n :-l0129bxcst\0\xff".to_vec());
    prop::collection::vec((any::<prop::sample::Index>(), byte), 0..3)
}

fn damaged(mut bytes: Vec<u8>, damages: &[(prop::sample::Index, u8)], cut: usize) -> Vec<u8> {
    for (at, byte) in damages {
        let at = at.index(bytes.len());
        bytes[at] = *byte;
    }
    if cut < bytes.len() && cut.is_multiple_of(5) {
        bytes.truncate(cut);
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn text_is_read_as_by_the_simple_reader(
        text in text(), damages in damages(), cut in 0_usize..900, bytes in 1_usize..40,
    ) {
        let text = damaged(text.into_bytes(), &damages, cut);
        prop_assert_eq!(read_slowly(&text, bytes), expected(&text));
    }

    #[test]
    fn both_forms_hold_the_same_trace(text in text()) {
        let Ok(goal) = read(text.as_bytes()) else { return Ok(()) };
        let (mut written, mut binary) = (Vec::new(), Vec::new());
        Writer(&goal.graph).text(&mut written).unwrap();
        Writer(&goal.graph).binary(&mut binary).unwrap();
        let ranks = |goal| found(goal).map(|(ranks, _)| ranks);
        let expected = ranks(Ok(goal));
        if Writer(&read(text.as_bytes()).unwrap().graph).losses().tag.is_none() {
            prop_assert_eq!(ranks(read(&written[..])), expected.clone());
        }
        let peers = read(text.as_bytes()).unwrap().graph.check_peers();
        let again = ranks(read_binary(&binary[..], binary.len() as u64));
        prop_assert_eq!(again.is_ok(), peers.is_ok());
        if peers.is_ok() {
            prop_assert_eq!(again, expected);
        }
    }

    #[test]
    fn damaged_binary_files_are_read_or_refused(
        text in text(), damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in 0_usize..900,
    ) {
        let Ok(goal) = read(text.as_bytes()) else { return Ok(()) };
        let mut binary = Vec::new();
        Writer(&goal.graph).binary(&mut binary).unwrap();
        let binary = damaged(binary, &damages, cut);
        if let Err(ReadError::File(error)) = read_binary(&binary[..], binary.len() as u64) {
            panic!("{error}");
        }
    }
}

#[test]
fn a_brace_is_no_label() {
    let text = b"num_ranks 1\nrank 0 {\na: calc 1\na requires}b\n}\n";
    let refused = read_slowly(text, 1);
    assert_eq!(refused, Err("line 4: `}`: expected a label".to_owned()));
    assert_eq!(refused, expected(text));
}
