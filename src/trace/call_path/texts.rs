//! Names of services, servers and threads, held once.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::trace::{hashed::IndexSet, names::Names};

/// Most services that are told apart; what is beyond them is the one service `(other)`.
const MOST_LOCATIONS: usize = 1 << 20;

/// The texts that events name by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    /// Names of servers, threads, component classes and methods.
    pub names: Names,
    locations: IndexSet<(u32, u32)>,
}

impl Texts {
    /// The number of the service `method` of `component`.
    pub fn location(&mut self, component: &str, method: &str) -> u32 {
        let mut key = (self.names.intern(component), self.names.intern(method));
        if self.locations.len() >= MOST_LOCATIONS && !self.locations.contains(&key) {
            let other = self.names.intern("(other)");
            key = (other, other);
        }
        self.locations.insert_full(key).0 as u32
    }

    /// Component class and method of a service; empty texts for a number that was not given out.
    pub fn service(&self, location: u32) -> (&str, &str) {
        match self.locations.get_index(location as usize) {
            Some((component, method)) => (self.names.name(*component), self.names.name(*method)),
            None => ("", ""),
        }
    }

    /// How many services there are.
    pub fn n_locations(&self) -> usize {
        self.locations.len()
    }
}

/// Which building blocks are one component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Boundaries {
    /// Building blocks → components, as the architect or a static analysis says: `shop.Cart`, `shop.Cart.add`, or all that
    /// begin so: `shop.*`. The longest that fits counts.
    pub given: IndexMap<String, String>,
    /// Of classes that none of these fits: how many parts of `a.b.C` name the component; `None` takes the class as it is.
    pub package_levels: Option<usize>,
    /// Whether classes inside a class (`C$1`) belong to it, where they are not given.
    pub inner_classes_apart: bool,
}

impl Boundaries {
    /// The component that `method` of `class` belongs to.
    pub fn component<'t>(&'t self, class: &'t str, method: &str) -> &'t str {
        let service = format!("{class}.{method}");
        let longest = self.given.iter().filter(|(pattern, _)| fits(pattern, class, &service)).max_by_key(|(pattern, _)| pattern.len());
        if let Some((_, component)) = longest {
            return component;
        }
        let outer = if self.inner_classes_apart { class } else { class.split('$').next().filter(|c| !c.is_empty()).unwrap_or(class) };
        match self.package_levels {
            None | Some(0) => outer,
            Some(levels) => outer.match_indices('.').nth(levels - 1).map_or(outer, |(end, _)| &outer[..end]),
        }
    }
    /// The building blocks that are given and that none of the services, by their classes and methods, is one of.
    pub fn of_nothing<'t>(&self, services: impl Iterator<Item = (&'t str, &'t str)>) -> Vec<&str> {
        let mut left: Vec<&str> = self.given.keys().map(String::as_str).collect();
        for (class, method) in services {
            if left.is_empty() {
                break;
            }
            let service = format!("{class}.{method}");
            left.retain(|pattern| !fits(pattern, class, &service));
        }
        left
    }
}

/// Whether a service of a class is what a pattern of [`Boundaries::given`] names.
fn fits(pattern: &str, class: &str, service: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => service.starts_with(beginning),
        None => pattern == class || pattern == service,
    }
}
