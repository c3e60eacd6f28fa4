//! The notation of configurations: `mesh`, `0-1`, `0>1`, `0=3`, `0=>3@1/east/west`, separated by
//! commas.

use super::configuration::{Configuration, Link, Refused};
use super::error::BypassError;
use super::mesh::{BypassMesh, Muxes, Port};
use super::request::{Kind, LinkRequest};

/// A parse error and its position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Located {
    /// The byte offset in the text.
    pub at: usize,
    /// The error.
    pub error: BypassError,
}

/// The expected forms of a link, for error texts.
const EXPECTED: &str = "`mesh`, a mesh link `0-1` (both directions) or `0>1`, or a bypass piece `0=3` \
     (both directions) or `0=>3`, optionally with `@WIRE` and `/OUT/IN`";

impl BypassMesh {
    /// Parses the mesh, such as `4x4,wires=2,muxes=own`. Returns the words that do not describe the
    /// mesh unparsed.
    ///
    /// # Errors
    /// A part is missing, unknown or repeated.
    pub fn parse(text: &str) -> Result<(BypassMesh, Vec<&str>), Located> {
        let mut parts = text.split(',');
        let shape = parts.next().unwrap_or("");
        let (columns, rows) = sides(shape.trim()).map_err(locate(text, shape))?;
        let (mut wires, mut muxes, mut words) = (None, None, Vec::new());
        for part in parts {
            let refused = locate(text, part);
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let twice = match key.trim() {
                "wires" => wires.replace(number(value).map_err(refused)?).is_some(),
                "muxes" => muxes.replace(Muxes::named(value.trim()).map_err(refused)?).is_some(),
                word => {
                    words.push(part);
                    words.iter().filter(|other| other.trim() == word).count() > 1
                }
            };
            if twice {
                let expected = format!("`{}` once", key.trim());
                return Err(locate(text, part)(malformed(part, &expected)));
            }
        }
        let (wires, muxes) = (wires.unwrap_or(1), muxes.unwrap_or(Muxes::Any));
        let mesh = BypassMesh::new(columns, rows, wires, muxes);
        Ok((mesh.map_err(locate(text, shape))?, words))
    }
}

impl Configuration {
    /// Parses the links of a configuration; empty text means no links. The links may follow their
    /// mesh, as in `bypass:4x4:mesh`, which must then equal `mesh`.
    ///
    /// # Errors
    /// The text cannot be parsed, or is not a configuration of this mesh.
    pub fn parse(mesh: BypassMesh, text: &str) -> Result<Configuration, Located> {
        let links = match text.trim_start().strip_prefix("bypass:") {
            Some(rest) => {
                let (head, links) = rest.split_once(':').unwrap_or((rest, ""));
                // `locate` counts from the start of `head`, which lies further inside `text`.
                let inside =
                    |error: Located| Located { at: offset(text, head) + error.at, ..error };
                let (given, _) = BypassMesh::parse(head).map_err(inside)?;
                if given != mesh {
                    let (given, mesh) = (given.notation(), mesh.notation());
                    return Err(locate(text, head)(BypassError::OtherMesh { given, mesh }));
                }
                links
            }
            None => text,
        };
        let mut requests = Vec::new();
        let mut parts = Vec::new();
        if !links.trim().is_empty() {
            for part in links.split(',') {
                read(mesh, part.trim(), &mut requests).map_err(locate(text, part.trim()))?;
                parts.resize(requests.len(), part.trim());
            }
        }
        Configuration::new(mesh, &requests)
            .map_err(|Refused { number, error }| locate(text, parts[number])(error))
    }

    /// The notation, which parses to this configuration. Equal configurations have equal notations.
    #[must_use]
    pub fn notation(&self) -> String {
        let requests: Vec<LinkRequest> =
            self.links().iter().map(|link| link.request(false)).collect();
        // Ports are written only if the assignment would choose others.
        let plain = Configuration::new(*self.mesh(), &requests).is_ok_and(|plain| plain == *self);
        let (mesh, pieces): (Vec<&Link>, Vec<&Link>) =
            self.links().iter().partition(|link| !link.is_bypass());
        let mut parts = Vec::new();
        if mesh.len() as u64 == self.mesh().total_mesh_links() {
            parts.push("mesh".to_owned());
        } else {
            parts.extend(self.written(&mesh, true));
        }
        parts.extend(self.written(&pieces, plain));
        parts.join(",")
    }

    /// Writes links in order; with `paired`, links in both directions are one entry.
    fn written(&self, links: &[&Link], paired: bool) -> Vec<String> {
        let ends = |link: &Link| (link.source, link.destination, link.wire);
        let back = |link: &Link| {
            let back = (link.destination, link.source, link.wire);
            paired && links.binary_search_by_key(&back, |other| ends(other)).is_ok()
        };
        let write = |link: &&Link| {
            let Link { source, destination, wire, output, input } = **link;
            let both = back(link);
            if both && source > destination {
                return None;
            }
            let sign = match (wire.is_some(), both) {
                (false, true) => "-",
                (false, false) => ">",
                (true, true) => "=",
                (true, false) => "=>",
            };
            let mut text = format!("{source}{sign}{destination}");
            if let Some(wire) = wire.filter(|_| self.mesh().wires() > 1) {
                text.push_str(&format!("@{wire}"));
            }
            if !paired {
                text.push_str(&format!("/{output}/{input}"));
            }
            Some(text)
        };
        links.iter().filter_map(write).collect()
    }
}

/// The byte offset of the slice `part` in `text`.
fn offset(text: &str, part: &str) -> usize {
    let at = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    if at <= text.len() { at } else { 0 }
}

/// Returns a function that places an error at `part` of `text`.
fn locate(text: &str, part: &str) -> impl Fn(BypassError) -> Located + use<> {
    let at = offset(text, part);
    move |error| Located { at, error }
}

fn malformed(found: &str, expected: &str) -> BypassError {
    let found = found.trim();
    let found = if found.is_empty() { "nothing".to_owned() } else { format!("`{found}`") };
    BypassError::Malformed { found, expected: expected.to_owned() }
}

fn number(text: &str) -> Result<u32, BypassError> {
    let digits = text.trim();
    let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit());
    let value = digits.parse().ok().filter(|_| is_integer);
    value.ok_or_else(|| malformed(text, "an integer"))
}

/// Parses the columns and rows, such as `6x4`.
fn sides(text: &str) -> Result<(u32, u32), BypassError> {
    let expected = "the numbers of columns and rows, such as `6x4`";
    let (columns, rows) = text.split_once('x').ok_or_else(|| malformed(text, expected))?;
    Ok((number(columns)?, number(rows)?))
}

/// Parses one part: all mesh links, or a link in one or both directions.
fn read(mesh: BypassMesh, part: &str, requests: &mut Vec<LinkRequest>) -> Result<(), BypassError> {
    if part == "mesh" {
        let link = |(source, _, destination)| LinkRequest { source, destination, kind: Kind::Mesh };
        requests.extend(mesh.mesh_links().map(link));
        return Ok(());
    }
    let at = part.find(['-', '>', '=']).ok_or_else(|| malformed(part, EXPECTED))?;
    let source = number(&part[..at]).map_err(|_| malformed(part, EXPECTED))?;
    let (both, bypass, rest) = match part[at..].strip_prefix("=>") {
        Some(rest) => (false, true, rest),
        None => (!part[at..].starts_with('>'), part[at..].starts_with('='), &part[at + 1..]),
    };
    let (rest, ports) = rest.split_once('/').map_or((rest, None), |(rest, p)| (rest, Some(p)));
    let (end, wire) = rest.split_once('@').map_or((rest, None), |(end, w)| (end, Some(w)));
    let destination = number(end).map_err(|_| malformed(part, EXPECTED))?;
    if !bypass && (wire.is_some() || ports.is_some()) {
        let expected = "a mesh link without `@` and `/`: its ports are fixed and it uses no wire";
        return Err(malformed(part, expected));
    }
    if both && ports.is_some() {
        let expected = "ports after a link in one direction, such as `0=>3/west/east`";
        return Err(malformed(part, expected));
    }
    let wire = wire.map(number).transpose()?;
    let ports = ports.map(|ports| two_ports(part, ports)).transpose()?;
    let kind = if bypass { Kind::Bypass { wire, ports } } else { Kind::Mesh };
    requests.push(LinkRequest { source, destination, kind });
    if both {
        requests.push(LinkRequest { source: destination, destination: source, kind });
    }
    Ok(())
}

/// Parses output and input port, such as `west/east`.
fn two_ports(part: &str, ports: &str) -> Result<(Port, Port), BypassError> {
    let named = |name: &str| Port::from_name(name.trim());
    let both = ports.split_once('/').and_then(|(out, into)| Some((named(out)?, named(into)?)));
    let expected = "an output and an input port, each east, west, south or north, such as \
                    `0=>3/west/east`";
    both.ok_or_else(|| malformed(part, expected))
}
