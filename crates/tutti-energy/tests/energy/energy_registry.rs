//! Every technology has all constants, each with bounds and a source, and is documented.

use std::path::Path;

use tutti_energy::{Entry, LINKS, Parameter, Part, ROUTERS, Technology, registry};

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/models/energy.md");
    std::fs::read_to_string(path).expect("docs/models/energy.md is there")
}

fn all() -> impl Iterator<Item = (Part, &'static Entry)> {
    let of = |part| registry(part).iter().map(move |entry| (part, entry));
    of(Part::Router).chain(of(Part::Link))
}

#[test]
fn every_technology_is_complete() {
    for (part, entry) in all() {
        let given: Vec<Parameter> = (entry.constants)().iter().map(|(known, _)| *known).collect();
        let expected: Vec<Parameter> =
            Parameter::ALL.iter().copied().filter(|known| known.part() == part).collect();
        let mut sorted = given.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, expected, "{} {}", part.name(), entry.name);
    }
}

#[test]
fn every_constant_has_a_source_and_bounds_that_hold() {
    for (part, entry) in all() {
        let (router, link) = match part {
            Part::Router => (entry.name, LINKS[0].name),
            Part::Link => (ROUTERS[0].name, entry.name),
        };
        let mut technology = Technology::build(router, link).unwrap();
        for (parameter, constant) in (entry.constants)() {
            assert!(constant.source.len() > 20, "{}: {}", entry.name, parameter.name());
            assert_eq!(technology.constant(parameter), &constant);
            // `with` validates the constant as it does constants of users.
            technology = technology.with(parameter, constant).unwrap();
        }
    }
}

#[test]
fn every_technology_has_its_line_on_the_page() {
    let text = page();
    for (part, entry) in all() {
        let start = format!("| {} | `{}` |", part.name(), entry.name);
        assert!(text.contains(&start), "docs/models/energy.md lacks a line {start}");
        assert!(!entry.summary.is_empty());
    }
    let lines = text
        .lines()
        .filter(|line| line.starts_with("| router | `") || line.starts_with("| link | `"));
    assert_eq!(lines.count(), all().count(), "a line of an unknown technology");
}

#[test]
fn every_constant_has_its_line_on_the_page() {
    let text = page();
    for parameter in Parameter::ALL {
        let line = format!("| `{}` | {} |", parameter.name(), parameter.meaning());
        assert!(text.contains(&line), "docs/models/energy.md lacks the line {line}");
    }
    for part in ["Model", "Equations", "Parameters", "Validity and limitations", "Sources"] {
        assert!(text.contains(&format!("\n## {part}\n")), "docs/models/energy.md lacks {part}");
    }
}

#[test]
fn names_are_found_and_others_refused() {
    for parameter in Parameter::ALL {
        assert_eq!(Parameter::find(parameter.name()), Ok(*parameter));
    }
    let error = Parameter::find("buffer_write").unwrap_err().to_string();
    assert!(
        error.contains("`buffer_write`") && error.contains("buffer_write_pj_per_bit"),
        "{error}"
    );
    let error = Technology::build("dsent_90nm", "dsent_45nm").unwrap_err().to_string();
    assert!(error.contains("router technology `dsent_90nm`") && error.contains("dsent_45nm"));
    let error = Technology::build("dsent_45nm", "copper").unwrap_err().to_string();
    assert!(error.contains("link technology `copper`") && error.contains("grs_package"), "{error}");
}
