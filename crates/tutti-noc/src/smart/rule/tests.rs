//! Rules have the values that Python gives them.

use super::Rule;

const NAMES: [&str; 3] = ["a", "b", "c"];

fn value(text: &str, values: [i64; 3]) -> i64 {
    Rule::parse("rule", text, &NAMES).unwrap().value(&values)
}

fn problem(text: &str) -> String {
    Rule::parse("rule", text, &NAMES).unwrap_err().to_string()
}

#[test]
fn operators_bind_as_in_python() {
    for (text, expected) in [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("-a + b", 3),
        ("a < b and not b < a", 1),
        ("not a == 2 or c", 0),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("7 // c", 0),
        ("7 % c", 7),
        ("b if c else -a", -2),
        ("1 if c else 2 if a else 3", 2),
        ("min(b, a, 9) + max(a, b)", 7),
        ("a<=2", 1),
    ] {
        assert_eq!(value(text, [2, 5, 0]), expected, "{text}");
    }
}

#[test]
fn results_beyond_64_bits_are_clamped() {
    assert_eq!(value("a * a", [i64::MAX, 0, 0]), i64::MAX);
    assert_eq!(value("-a // b", [i64::MIN, -1, 0]), -i64::MAX);
    assert_eq!(value("a // b", [i64::MIN, -1, 0]), i64::MAX);
}

#[test]
fn mistakes_are_named() {
    for (text, part) in [
        ("a +", "an operand is missing at the end"),
        ("a d", "unexpected `d` at character 3"),
        ("dist", "unknown name `dist` at character 1"),
        ("(a", "`)` is missing at the end"),
        ("a if b", "`else` is missing at the end"),
        ("a $ b", "unexpected `$` at character 3"),
        ("a < b < c", "comparisons in a chain"),
        ("min(a)", "`,` is missing before character 6"),
        ("99999999999", "not an integer up to 2^32"),
        ("", "an operand is missing"),
    ] {
        let problem = problem(text);
        assert!(problem.contains(part) && problem.contains("a, b, c"), "{text}: {problem}");
    }
    assert!(problem(&"(".repeat(100)).contains("nested"));
    assert!(problem(&"1 + ".repeat(200)).contains("characters"));
}
