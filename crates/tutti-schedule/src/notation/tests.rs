use proptest::prelude::*;

use super::*;

fn problem(text: &str) -> (usize, Problem) {
    let error = Notation::parse(text).unwrap_err();
    (error.at, error.problem)
}

#[test]
fn notations_of_the_paper_are_read_and_written_back() {
    for (text, ranks) in [
        ("a8,a4", 32),
        ("a2", 2),
        ("c6m2,a2,a2,e6m2", 7),
        ("m1g2a3,n1g3a2", 7),
        ("m3g2a2,n3g2a2", 7),
        ("c4m4,e4m4", 4),
        ("m2g6a2,a3,n2g6a2", 14),
    ] {
        let notation = Notation::parse(text).unwrap();
        assert_eq!(notation.to_string(), text);
        assert_eq!(notation.ranks(), ranks);
        notation.check(ranks).unwrap();
    }
}

#[test]
fn syntax_errors_point_at_the_byte() {
    let unexpected = |expected, found| Problem::Unexpected { expected, found };
    for (text, at, expected) in [
        ("", 0, Problem::Empty),
        ("x8", 0, Problem::UnknownStage { found: Some('x') }),
        ("a8,", 3, Problem::UnknownStage { found: None }),
        ("a8;a4", 2, unexpected("`,` or the end", Some(';'))),
        ("a8, a4", 3, Problem::UnknownStage { found: Some(' ') }),
        ("a", 1, unexpected("an integer", None)),
        ("a-4", 1, unexpected("an integer", Some('-'))),
        ("c6x2", 2, unexpected("`m` and the base", Some('x'))),
        ("m1g2", 4, unexpected("`a` and the base", None)),
        ("m1a2", 2, unexpected("`g` and the number of groups", Some('a'))),
        ("a2,a04", 4, Problem::LeadingZero),
        ("a99999999999", 1, Problem::NumberTooLarge),
    ] {
        assert_eq!(problem(text), (at, expected), "{text}");
    }
}

#[test]
fn rules_point_at_the_number_that_breaks_them() {
    for (text, at, shown) in [
        ("a2,a1", 4, "a base of 1: expected at least 2"),
        ("c7m2,a2,e7m2", 1, "a threshold of 7: expected a positive multiple of the base 2"),
        ("c6m2,a2,a2", 0, "`c6m2` has no counterpart: expected `e6m2` at the end"),
        ("a2,e6m2", 3, "`e6m2` has no counterpart: expected `c6m2` at the start"),
        ("a2,c6m2", 3, "`c6m2` after another stage: expected it as the first stage"),
        ("e6m2,a2", 0, "`e6m2` before another stage: expected it as the last stage"),
        ("m0g2a3,n0g3a2", 1, "a remainder of 0 ranks: expected at least 1"),
        ("m1g3a3,n1g3a2", 3, "3 groups of 3 among the 6 ranks of the exchanges: expected 2 groups"),
        ("m1g2a3", 0, "`m1g2a3` has no counterpart: expected `n1g...a...` at the end"),
        ("a65536,a65536", 7, "too many ranks: expected at most 4294967295"),
    ] {
        let error = Notation::parse(text).unwrap_err();
        assert_eq!((error.at, error.problem.to_string().as_str()), (at, shown), "{text}");
    }
}

#[test]
fn a_notation_for_another_number_of_ranks_reports_the_position() {
    for (text, ranks, at, shown) in [
        ("a3,a3", 6, 4, "the product of the bases is 9: expected 6 for 6 ranks"),
        ("a3", 6, 2, "the product of the bases is 3: expected 6 for 6 ranks"),
        ("c6m2,a2,a2,e6m2", 8, 6, "the product of the bases is 4: expected 5 for 8 ranks"),
        ("c6m2,a2,a2,e6m2", 5, 1, "a threshold of 6 on 5 ranks: expected at most 5"),
        ("m1g2a3,n1g3a2", 8, 3, "the product of the bases is 6: expected 7 for 8 ranks"),
        ("m9g2a3,n9g3a2", 9, 1, "a remainder of 9 on 9 ranks: expected fewer than 9"),
    ] {
        let error = Notation::parse(text).unwrap().check(ranks).unwrap_err();
        assert_eq!((error.at, error.problem.to_string().as_str()), (at, shown), "{text}");
    }
}

#[test]
fn errors_name_the_character() {
    let error = Notation::parse("a2,c6x2").unwrap_err();
    let hint = "stages look like a4, c6m2 ... e6m2, m1g2a3 ... n1g3a2, separated by `,`";
    assert_eq!(error.problem.hint(), hint);
    assert_eq!(
        error.to_string(),
        "at character 6 of `a2,c6x2`: expected `m` and the base, found `x`"
    );
    let wide = Notation::parse("ä\n").unwrap_err().to_string();
    assert!(wide.starts_with("at character 1 of `ä\u{fffd}`"), "{wide}");
}

#[test]
fn text_that_is_far_too_long_is_refused_with_its_start_only() {
    let error = Notation::parse(&"a2,".repeat(1 << 20)).unwrap_err();
    assert_eq!(error.problem, Problem::TooLong);
    assert_eq!(error.text.len(), 48);
}

/// Texts that are nearly notations, so that every rule is exercised.
fn near_notation() -> impl Strategy<Value = String> {
    let stage = ("[acemng]", 0_u32..9, "[mga,]?", 0_u32..9, "[mga,]?", 0_u32..9)
        .prop_map(|(a, x, b, y, c, z)| format!("{a}{x}{b}{y}{c}{z}"));
    proptest::collection::vec(stage, 0..5).prop_map(|stages| stages.join(","))
}

proptest! {
    #[test]
    fn no_text_panics_and_errors_point_into_it(text in any::<String>(), ranks in any::<u32>()) {
        check_any(&text, ranks);
    }

    #[test]
    fn near_notations_do_not_panic(text in near_notation(), ranks in 0_u32..99) {
        check_any(&text, ranks);
    }

    #[test]
    fn parsed_notations_round_trip(bases in proptest::collection::vec(2_u32..20, 1..6)) {
        let text = bases.iter().map(|b| format!("a{b}")).collect::<Vec<_>>().join(",");
        let notation = Notation::parse(&text).unwrap();
        prop_assert_eq!(notation.to_string(), text);
        prop_assert_eq!(notation.ranks(), bases.iter().product::<u32>());
    }
}

fn check_any(text: &str, ranks: u32) {
    let error = match Notation::parse(text) {
        Ok(notation) => {
            assert_eq!(notation.to_string(), text);
            match notation.check(ranks) {
                Ok(()) => return,
                Err(error) => error,
            }
        }
        Err(error) => error,
    };
    assert!(error.at <= error.text.len() && error.text.is_char_boundary(error.at));
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
}
