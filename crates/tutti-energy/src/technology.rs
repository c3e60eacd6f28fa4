//! A full set of constants.

use super::{Constant, EnergyError, Interval, Parameter, Part, find};

/// The constants of routers and links together; any of them can be replaced.
#[derive(Clone, PartialEq, Debug)]
pub struct Technology {
    router: &'static str,
    link: &'static str,
    constants: Vec<Constant>,
}

impl Technology {
    /// Routers of one technology, links of another; the registries list them.
    ///
    /// # Errors
    /// When there is none of that name.
    ///
    /// # Panics
    /// Never: a test walks the registries and finds every constant there.
    pub fn build(router: &str, link: &str) -> Result<Technology, EnergyError> {
        let (router, link) = (find(Part::Router, router)?, find(Part::Link, link)?);
        let mut given = (router.constants)();
        given.extend((link.constants)());
        let constant = |parameter: &Parameter| {
            let found = given.iter().find(|(known, _)| known == parameter);
            found.expect("every technology of a registry is complete").1.clone()
        };
        let constants = Parameter::ALL.iter().map(constant).collect();
        Ok(Technology { router: router.name, link: link.name, constants })
    }

    /// The same with another value of a constant.
    ///
    /// # Errors
    /// When the value is below zero or no number, its bounds do not enclose it, or it has no source.
    pub fn with(
        mut self,
        parameter: Parameter,
        constant: Constant,
    ) -> Result<Technology, EnergyError> {
        constant.check(parameter)?;
        self.constants[parameter as usize] = constant;
        Ok(self)
    }

    /// The name of the routers' technology.
    #[must_use]
    pub fn router(&self) -> &'static str {
        self.router
    }

    /// The name of the links' technology.
    #[must_use]
    pub fn link(&self) -> &'static str {
        self.link
    }

    /// A constant.
    #[must_use]
    pub fn constant(&self, parameter: Parameter) -> &Constant {
        &self.constants[parameter as usize]
    }

    /// Its value and bounds.
    #[must_use]
    pub fn interval(&self, parameter: Parameter) -> Interval {
        self.constant(parameter).interval()
    }
}
