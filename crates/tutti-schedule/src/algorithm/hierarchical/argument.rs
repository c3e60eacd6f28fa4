//! The argument of a hierarchical algorithm.
//!
//! ```text
//! argument   = sizes [ ":" algorithms ]
//! sizes      = size "x" size { "x" size }        innermost first; their product is the rank count
//! algorithms = algorithm { "/" algorithm }       one for all, one per level, or one per phase
//! algorithm  = notation | "(" notation ")"       `name` or `name:argument`
//! ```
//!
//! One algorithm per level, innermost first, is used for every collective that its level performs.
//! An all_reduce or a barrier can also name one algorithm per phase, in phase order. For two levels
//! `8x16:ring/direct/ring` is reduce_scatter within groups, all_reduce across, all_gather within;
//! for three levels there are five. An algorithm whose argument contains a `/` is in parentheses,
//! so hierarchies nest. Without algorithms every level uses `ring` (`hierarchical_leader`:
//! `binomial`).

use crate::algorithm::sizes::{self, Misfit, misfit};
use crate::collective::Collective;

/// The notation of an algorithm, and the byte at which it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

/// A parsed argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Levels<'a> {
    /// At least two, each at least two.
    pub(super) sizes: Vec<u32>,
    /// As written; empty if none were given.
    pub(super) algorithms: Vec<Named<'a>>,
}

/// Parses the argument as far as possible without the rank count.
pub(super) fn read(argument: &str) -> Result<Levels<'_>, Misfit> {
    let (sizes, algorithms) = match argument.split_once(':') {
        Some((sizes, rest)) => (sizes, read_algorithms(rest, sizes.len() + 1)?),
        None => (argument, Vec::new()),
    };
    Ok(Levels { sizes: sizes::read(sizes, "level")?, algorithms })
}

/// Assigns the named algorithms to the phases; empty if none were named.
pub(super) fn one_per_phase<'a>(
    named: Vec<Named<'a>>,
    phases: &[(Collective, usize)],
    levels: usize,
    argument: &str,
) -> Result<Vec<Named<'a>>, Misfit> {
    if named.is_empty() || named.len() == phases.len() && phases.len() > levels {
        return Ok(named);
    }
    if let [all] = named[..] {
        return Ok(vec![all; phases.len()]);
    }
    if named.len() == levels {
        return Ok(phases.iter().map(|&(_, level)| named[level]).collect());
    }
    let most = phases.len().max(levels);
    let at = named.get(most).map_or(argument.len(), |surplus| surplus.at);
    let count = named.len();
    let order = phases.iter().map(|(kind, level)| format!("{kind} on level {level}"));
    let order = order.collect::<Vec<_>>().join(", ");
    let expected = if most > levels {
        format!("1 (for all), {levels} (one per level) or {most} ({order})")
    } else {
        format!("1 (for all) or {levels} (one per level)")
    };
    misfit(at, format!("{count} algorithms: expected {expected}"))
}

/// Splits at the slashes outside parentheses; `offset` is the position of `text`.
fn read_algorithms(text: &str, offset: usize) -> Result<Vec<Named<'_>>, Misfit> {
    let mut algorithms = Vec::new();
    let mut open = Vec::new();
    let mut start = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => open.push(at),
            b')' if open.pop().is_none() => {
                return misfit(offset + at, "unmatched `)`: expected a `(` before it".to_owned());
            }
            b'/' if open.is_empty() => {
                algorithms.push(read_algorithm(&text[start..at], offset + start)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    if let Some(at) = open.pop() {
        return misfit(offset + at, "unmatched `(`: expected a `)`".to_owned());
    }
    algorithms.push(read_algorithm(&text[start..], offset + start)?);
    Ok(algorithms)
}

fn read_algorithm(text: &str, offset: usize) -> Result<Named<'_>, Misfit> {
    let mut at = offset + (text.len() - text.trim_start().len());
    let mut text = text.trim();
    if let Some(inside) = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        at += 1 + (inside.len() - inside.trim_start().len());
        text = inside.trim();
    }
    if text.is_empty() {
        return misfit(at, "missing algorithm: expected one such as `ring`".to_owned());
    }
    Ok(Named { text, at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{AlgorithmError, build};

    #[test]
    fn sizes_and_algorithms_are_read_with_their_places() {
        let levels = read("8 x 16: ring/(hierarchical:2x8:a/b) / knomial:3").unwrap();
        let named = |text, at| Named { text, at };
        assert_eq!(levels.sizes, [8, 16]);
        assert_eq!(
            levels.algorithms,
            [named("ring", 8), named("hierarchical:2x8:a/b", 14), named("knomial:3", 38)]
        );
    }

    #[test]
    fn errors_point_at_the_byte() {
        let cases = [
            ("", 0, "`` is not a level size"),
            ("8", 1, "only one level"),
            ("8x", 2, "`` is not a level size"),
            ("8xa:ring", 2, "`a` is not a level size"),
            ("8x+2", 2, "`+2` is not a level size"),
            ("8x99999999999:ring", 2, "`99999999999` is not a level size"),
            ("1x16", 0, "at least 2 ranks"),
            ("2x8x0", 4, "at least 2 ranks"),
            ("4x4", 0, "4x4 is 16 ranks: expected sizes whose product is 8"),
            ("65536x65536x65536x65536x2", 0, "is 18446744073709551615 ranks"),
            ("2x4:", 4, "missing algorithm"),
            ("2x4:ring//ring", 9, "missing algorithm"),
            ("2x4:ring/( )/ring", 11, "missing algorithm"),
            ("2x4:ring/(ring", 9, "unmatched `(`"),
            ("2x4:ring)/ring", 8, "unmatched `)`"),
            ("2x2x2:ring/ring", 15, "2 algorithms: expected 1 (for all), 3 (one per level) or 5"),
            ("2x4:ring/ring/ring/ring", 19, "4 algorithms"),
            ("2x4:ring/rong", 9, "level 1: unknown algorithm `rong`"),
            ("2x4:ring/binomial:3", 18, "level 1: `3` does not fit binomial"),
            ("2x4:binomial/ring/ring", 4, "level 0: binomial does not perform reduce_scatter"),
            ("2x4:ring/(knomial: x)/ring", 19, "level 1: ` x` does not fit knomial"),
            ("2x4:ring/(hierarchical:2x3)/ring", 23, "level 1: `2x3` does not fit hierarchical"),
        ];
        for (argument, place, part) in cases {
            let notation = format!("hierarchical:{argument}");
            match build(&notation, Collective::AllReduce, 8).err() {
                Some(AlgorithmError::Argument { at, problem, .. }) => {
                    assert!(at == place && problem.contains(part), "{argument}: {at}: {problem}");
                }
                other => panic!("{argument}: {other:?}"),
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn any_argument_is_parsed_or_refused_within_the_text(
            argument in "[0-4x ]{0,9}(:[a-e0-9x:/() é]{0,20}|:(ring|/|direct|\\(|\\)|knomial:|[23x]){0,9})?",
            ranks in 2_u32..20,
        ) {
            for name in ["hierarchical", "hierarchical_leader"] {
                let notation = format!("{name}:{argument}");
                if let Err(AlgorithmError::Argument { at, argument, .. }) =
                    build(&notation, Collective::AllReduce, ranks)
                {
                    proptest::prop_assert!(argument.is_char_boundary(at), "{argument} at {at}");
                }
            }
        }
    }
}
