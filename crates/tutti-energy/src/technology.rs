//! Technologies: complete sets of constants.

use super::{Constant, EnergyError, Interval, Parameter, Part, find};

/// The constants of routers and links; any of them can be replaced.
#[derive(Clone, PartialEq, Debug)]
pub struct Technology {
    router: &'static str,
    link: &'static str,
    constants: Vec<Constant>,
}

impl Technology {
    /// Combines a router technology with a link technology; the registries list them.
    ///
    /// # Errors
    /// A name is unknown.
    ///
    /// # Panics
    /// Never: a test checks that every registry entry has all constants.
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

    /// Returns the technology with another value of a constant.
    ///
    /// # Errors
    /// The value is negative or NaN, its bounds do not enclose it, or it has no source.
    pub fn with(
        mut self,
        parameter: Parameter,
        constant: Constant,
    ) -> Result<Technology, EnergyError> {
        constant.check(parameter)?;
        self.constants[parameter as usize] = constant;
        Ok(self)
    }

    /// The name of the router technology.
    #[must_use]
    pub fn router(&self) -> &'static str {
        self.router
    }

    /// The name of the link technology.
    #[must_use]
    pub fn link(&self) -> &'static str {
        self.link
    }

    /// A constant.
    #[must_use]
    pub fn constant(&self, parameter: Parameter) -> &Constant {
        &self.constants[parameter as usize]
    }

    /// The value and bounds of a constant.
    #[must_use]
    pub fn interval(&self, parameter: Parameter) -> Interval {
        self.constant(parameter).interval()
    }
}
