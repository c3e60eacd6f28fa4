//! Configurations as text: `mesh`, `0-1`, `0>1`, `0=3`, `0=>3@1/east/west`, with commas between.

use super::asked::{Asked, Kind};
use super::configuration::{Configuration, Link, Refused};
use super::error::BypassError;
use super::mesh::{BypassMesh, Muxes, Port};

/// What is wrong with a text, and at which byte of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Located {
    /// The byte.
    pub at: usize,
    /// What is wrong there.
    pub error: BypassError,
}

/// What a link looks like, for people.
const EXPECTED: &str = "`mesh`, a mesh link `0-1` (both ways) or `0>1`, or a bypass piece `0=3` (both \
     ways) or `0=>3`, with `@WIRE` and `/OUT/IN` behind it where they matter";

impl BypassMesh {
    /// Reads what stands before the links: `4x4,wires=2,muxes=own`. The words that are not about the mesh
    /// are returned.
    ///
    /// # Errors
    /// When something is missing, unknown or given twice.
    pub fn parse(text: &str) -> Result<(BypassMesh, Vec<&str>), Located> {
        let mut parts = text.split(',');
        let shape = parts.next().unwrap_or("");
        let side = square(shape.trim()).map_err(locate(text, shape))?;
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
        let mesh = BypassMesh::new(side, wires.unwrap_or(1), muxes.unwrap_or(Muxes::Any));
        Ok((mesh.map_err(locate(text, shape))?, words))
    }
}

impl Configuration {
    /// Reads the links of a configuration, or none where the text is empty. They may follow their mesh, as in
    /// `bypass:4x4:mesh`; then it must be this one.
    ///
    /// # Errors
    /// When the text cannot be read, or is no configuration of this mesh.
    pub fn parse(mesh: BypassMesh, text: &str) -> Result<Configuration, Located> {
        let links = match text.trim_start().strip_prefix("bypass:") {
            Some(rest) => {
                let (head, links) = rest.split_once(':').unwrap_or((rest, ""));
                // `locate` counts from the beginning of what it is given; this is further inside.
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
        let mut asked = Vec::new();
        let mut parts = Vec::new();
        if !links.trim().is_empty() {
            for part in links.split(',') {
                read(mesh, part.trim(), &mut asked).map_err(locate(text, part.trim()))?;
                parts.resize(asked.len(), part.trim());
            }
        }
        Configuration::new(mesh, &asked)
            .map_err(|Refused { number, error }| locate(text, parts[number])(error))
    }

    /// The text that is read as this configuration; the same for equal ones.
    #[must_use]
    pub fn notation(&self) -> String {
        let asked: Vec<Asked> = self.links().iter().map(|link| link.asked(false)).collect();
        // Ports are written only where they would not come out like this anyway.
        let plain = Configuration::new(*self.mesh(), &asked).is_ok_and(|plain| plain == *self);
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

    /// Links in order, those that lead both ways as one where `paired`.
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

/// Where in `text` its slice `part` begins.
fn offset(text: &str, part: &str) -> usize {
    let at = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    if at <= text.len() { at } else { 0 }
}

/// Points at `part` of `text`.
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
    let whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    let value = digits.parse().ok().filter(|_| whole);
    value.ok_or_else(|| malformed(text, "a whole number"))
}

/// `4x4`.
fn square(text: &str) -> Result<u32, BypassError> {
    let expected = "the nodes of a row and of a column, as many of both, such as `4x4`";
    match text.split_once('x') {
        Some((columns, rows)) if number(columns)? == number(rows)? => number(columns),
        _ => Err(malformed(text, expected)),
    }
}

/// Reads one part: all mesh links, or a link one or both ways.
fn read(mesh: BypassMesh, part: &str, asked: &mut Vec<Asked>) -> Result<(), BypassError> {
    if part == "mesh" {
        let link = |(source, _, destination)| Asked { source, destination, kind: Kind::Mesh };
        asked.extend(mesh.mesh_links().map(link));
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
        let expected = "a mesh link without `@` and `/`: it is on no wire and has its own ports";
        return Err(malformed(part, expected));
    }
    if both && ports.is_some() {
        let expected = "ports behind one direction at a time, such as `0=>3/west/east`";
        return Err(malformed(part, expected));
    }
    let wire = wire.map(number).transpose()?;
    let ports = ports.map(|ports| two_ports(part, ports)).transpose()?;
    let kind = if bypass { Kind::Bypass { wire, ports } } else { Kind::Mesh };
    asked.push(Asked { source, destination, kind });
    if both {
        asked.push(Asked { source: destination, destination: source, kind });
    }
    Ok(())
}

/// `west/east`.
fn two_ports(part: &str, ports: &str) -> Result<(Port, Port), BypassError> {
    let named = |name: &str| Port::from_name(name.trim());
    let both = ports.split_once('/').and_then(|(out, into)| Some((named(out)?, named(into)?)));
    let expected = "the ports by which it leaves and arrives, each east, west, south or north, such \
                    as `0=>3/west/east`";
    both.ok_or_else(|| malformed(part, expected))
}
