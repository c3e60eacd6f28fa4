//! Every network model has what a newcomer expects of it: a page that names all its parameters.

use std::path::Path;

use tutti_network::REGISTRY;

#[test]
fn every_model_has_a_page_with_its_parameters_and_its_limits() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/models");
    for group in REGISTRY {
        let page = folder.join(format!("{}.md", group.name));
        let text = std::fs::read_to_string(&page)
            .unwrap_or_else(|error| panic!("{} needs {}: {error}", group.name, page.display()));
        assert!(text.starts_with(&format!("# {}\n", group.name)), "{}", page.display());
        for parameter in group.parameters {
            let row = format!("| `{}` | {} |", parameter.name, parameter.kind.name());
            assert!(text.contains(&row), "{} lacks the row {row}", page.display());
        }
        for part in ["Model", "Equations", "Parameters", "Validity and limitations", "Sources"] {
            assert!(text.contains(&format!("\n## {part}\n")), "{} lacks {part}", page.display());
        }
        assert!(!group.summary.is_empty() && !group.source.is_empty(), "{}", group.name);
    }
}
