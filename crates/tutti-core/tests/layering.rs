//! Data flows one way: no stage uses a stage to its right. Every path in the sources that begins at the
//! root of the crate (`crate::x`, in a `use`, a group or inline, or enough `super::`) is checked.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The stages, left to right.
const ORDER: &[&str] = &[
    "units",
    "ids",
    "topology",
    "collective",
    "schedule",
    "algorithm",
    "workload",
    "network",
    "endpoint",
    "coherence",
    "energy",
    "engine",
    "search",
    "results",
];

#[test]
fn no_stage_uses_a_stage_to_its_right() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut complaints = String::new();
    let mut files = 0;
    for file in rust_files(&source) {
        let module = module_of(file.strip_prefix(&source).unwrap());
        if module.is_empty() {
            continue;
        }
        files += 1;
        let text = std::fs::read_to_string(&file).unwrap();
        for complaint in check(&module, &text) {
            writeln!(complaints, "{}:{complaint}", file.display()).unwrap();
        }
    }
    assert!(files > 10, "only {files} files found below {}", source.display());
    assert!(complaints.is_empty(), "against the order {}:\n{complaints}", ORDER.join(" -> "));
}

#[test]
fn a_bad_line_is_caught_however_it_is_written() {
    let bad = [
        "use crate::engine::Simulation;",
        "use crate::{units::Time, engine};",
        "use crate::{\n    units::{Bytes, Time},\n    results::{self, busbw},\n};",
        "fn f(x: &crate::engine::Outcome) {}",
        "use super::engine::Simulation;",
        "mod tests { use super::super::engine::Simulation; }",
        "mod a { mod b { fn f() { crate :: engine :: run() } } }",
        "macro_rules! m { () => { $crate::engine::run() } }",
        "let c = '\"'; use crate::engine::Simulation; // a quote in a character hides nothing",
        "let s = r#\"a \" quote\"#; use crate::engine::Simulation;",
        "/* a /* nested */ comment */ use crate::engine::Simulation;",
        "pub(crate) use crate::engine as motor;",
        "fn f<'a>(x: &'a str) { crate::engine::run(x) }",
        "use crate::*;",
    ];
    for line in bad {
        assert!(!check(&["network"], line).is_empty(), "not caught: {line}");
    }
    let report = check(&["units"], "\n\nuse crate::engine::Event;\n");
    assert_eq!(report, ["3: units uses engine, which comes after it"]);
}

#[test]
fn a_good_line_passes() {
    let good = [
        "use crate::units::Time;",
        "use crate::{ids::RankId, units::{Bytes, Time}};",
        "use super::units::Time;",
        "mod tests { use super::*; use crate::network::Model; }",
        "//! See [`crate::engine`].\nuse crate::units::Time;",
        "/// `use crate::engine::X;`\n// use crate::engine::X;\n/* crate::engine */",
        "let s = \"crate::engine\"; let t = r\"crate::engine\";",
        "fn f(engine: u8) { engine::run() }",
        "my_crate::engine::run()",
        "pub(in crate::network) fn f() {}",
    ];
    for line in good {
        assert_eq!(check(&["network"], line), [] as [&str; 0], "{line}");
    }
    assert_eq!(check(&["network", "model"], "use super::registry::Entry;"), [] as [&str; 0]);
    assert_eq!(check(&["network", "model"], "use super::super::engine::X;").len(), 1);
}

#[test]
fn a_stage_that_has_no_place_in_the_order_is_named() {
    let report = check(&["coffee"], "use crate::units::Time;");
    assert_eq!(report, ["1: coffee is not in the order of the stages: give it a place there"]);
}

/// Every `.rs` file below a folder.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// `network/noise/tests.rs` is `network::noise::tests`, `network/mod.rs` is `network`, `lib.rs` the root.
fn module_of(file: &Path) -> Vec<&str> {
    let mut parts: Vec<&str> = file.iter().map(|part| part.to_str().unwrap()).collect();
    let last = parts.pop().unwrap().trim_end_matches(".rs");
    if !matches!(last, "mod" | "lib") {
        parts.push(last);
    }
    parts
}

/// What is wrong with the text of a module, as `line: complaint`.
fn check(module: &[&str], text: &str) -> Vec<String> {
    let Some(own) = ORDER.iter().position(|stage| *stage == module[0]) else {
        let stage = module[0];
        return vec![format!(
            "1: {stage} is not in the order of the stages: give it a place there"
        )];
    };
    let complain = |(line, stage): (usize, String)| {
        if stage == "*" {
            return Some(format!("{line}: {} uses the whole crate with `*`", module[0]));
        }
        let position = ORDER.iter().position(|known| *known == stage)?;
        (position > own)
            .then(|| format!("{line}: {} uses {stage}, which comes after it", module[0]))
    };
    roots(module.len(), &tokens(text)).into_iter().filter_map(complain).collect()
}

/// A word or a character of punctuation, and its line.
type Token = (usize, String);

/// The first names of all paths that begin at the root of the crate.
fn roots(depth_of_file: usize, tokens: &[Token]) -> Vec<(usize, String)> {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.1.as_str());
    let mut found = Vec::new();
    let mut depth = depth_of_file;
    // For each open brace, whether it is a module's.
    let mut braces = Vec::new();
    for at in 0..tokens.len() {
        match word(at) {
            "{" => {
                let module = at >= 2 && word(at - 2) == "mod";
                braces.push(module);
                depth += usize::from(module);
            }
            "}" => depth -= usize::from(braces.pop().unwrap_or(false)),
            "crate" | "super" if at == 0 || word(at - 1) != ":" => {
                found.extend(root_names(tokens, at, depth));
            }
            _ => {}
        }
    }
    found
}

/// The first names below the root of the path that begins at token `at`; none when it stays below.
fn root_names(tokens: &[Token], mut at: usize, mut depth: usize) -> Vec<Token> {
    let word = |at: usize| tokens.get(at).map_or("", |token| token.1.as_str());
    if word(at) == "crate" {
        depth = 0;
    }
    while word(at) == "super" {
        depth = depth.saturating_sub(1);
        if word(at + 3) != "super" {
            break;
        }
        at += 3;
    }
    if depth > 0 || word(at + 1) != ":" || word(at + 2) != ":" {
        return Vec::new();
    }
    if word(at + 3) != "{" {
        return tokens.get(at + 3).cloned().into_iter().collect();
    }
    let (mut names, mut nesting) = (Vec::new(), 0);
    for position in at + 3..tokens.len() {
        match word(position) {
            "{" => nesting += 1,
            "}" => nesting -= 1,
            _ => {}
        }
        let begins = matches!(word(position), "{" | ",") && nesting == 1;
        if begins && word(position + 1) != "}" {
            names.extend(tokens.get(position + 1).cloned());
        }
        if nesting == 0 {
            break;
        }
    }
    names
}

/// Words and punctuation, without comments, strings and characters.
fn tokens(text: &str) -> Vec<Token> {
    let (mut tokens, mut rest, mut line) = (Vec::new(), text, 1);
    while let Some(first) = rest.chars().next() {
        let skipped = literal_or_comment(rest);
        let length = if skipped > 0 {
            skipped
        } else if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        if skipped == 0 && !first.is_whitespace() {
            tokens.push((line, token.to_owned()));
        }
        line += token.matches('\n').count();
        rest = after;
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// How many bytes of `rest` are a comment, a string or a character; zero when it begins with neither.
fn literal_or_comment(rest: &str) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return block_comment(rest);
    }
    for prefix in ["", "b", "c"] {
        let Some(after) = rest.strip_prefix(prefix) else { continue };
        if after.starts_with('"') {
            return prefix.len() + quoted(after);
        }
        if let Some(raw) = after.strip_prefix('r') {
            let hashes = raw.len() - raw.trim_start_matches('#').len();
            if raw[hashes..].starts_with('"') {
                let end = format!("\"{}", "#".repeat(hashes));
                let body = &raw[hashes + 1..];
                let length = body.find(&end).map_or(body.len(), |at| at + end.len());
                return prefix.len() + 1 + hashes + 1 + length;
            }
        }
    }
    character(rest)
}

/// Block comments nest.
fn block_comment(rest: &str) -> usize {
    let (mut at, mut nesting) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            nesting += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            nesting -= 1;
            at += 2;
            if nesting == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// A string in quotes, escapes and all.
fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `'x'` or `'\n'`, but not the lifetime `'x`.
fn character(rest: &str) -> usize {
    let Some(after) = rest.strip_prefix('\'') else { return 0 };
    if after.starts_with('\\') {
        return after[2..].find('\'').map_or(rest.len(), |at| at + 4);
    }
    let Some(c) = after.chars().next() else { return 0 };
    if after[c.len_utf8()..].starts_with('\'') { c.len_utf8() + 2 } else { 0 }
}
