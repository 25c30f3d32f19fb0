//! Services, components, and the units that run them, by numbers.

use crate::trace::hashed::{IndexMap, IndexSet};

use super::{
    flow::Naming,
    live::NONE,
    options::{CallPathOptions, Instances},
};
use crate::trace::{call_path::Texts, names::Names, units::Units};

/// What is known of a service.
#[derive(Clone, Debug)]
struct Service {
    /// Its component (number in [`Places::components`]).
    component: u32,
    /// Its method (number in [`Places::operations`]).
    operation: u32,
    /// The dependencies that its executions tell of (indices into the options').
    dependencies: Vec<u32>,
    /// Server and thread that it ran on last, with what [`Places::place`] says of them.
    last_place: Option<((u32, u32), (u32, u32))>,
}

/// Numbers for all that records name.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    /// Services, servers and threads.
    pub(super) texts: Texts,
    pub(super) components: Names,
    pub(super) operations: Names,
    pub(super) units: Units,
    /// Component instances: component and server.
    pub(super) instances: IndexSet<(u32, u32)>,
    services: Vec<Service>,
    place_of: IndexMap<(u32, u32, u32), (u32, u32)>,
    by_server: bool,
}

impl Places {
    pub(super) fn new(options: &CallPathOptions) -> Self {
        let mut places = Self { by_server: options.instances == Instances::ByServer, ..Self::default() };
        places.units.intern(&options.client, "");
        places
    }

    /// The number of a service.
    pub(super) fn location(&mut self, class: &str, method: &str, options: &CallPathOptions) -> u32 {
        let location = self.texts.location(class, method);
        if location as usize == self.services.len() {
            let service = format!("{class}.{method}");
            let dependencies = options.dependencies.iter().zip(0..).filter(|(spec, _)| spec.service == service).map(|(_, i)| i);
            let (_, method) = self.texts.service(location);
            self.services.push(Service {
                component: self.components.intern(options.boundaries.component(class, method)),
                operation: self.operations.intern(method),
                dependencies: dependencies.collect(),
                last_place: None,
            });
        }
        location
    }

    pub(super) fn component(&self, location: u32) -> u32 {
        self.services.get(location as usize).map_or(0, |service| service.component)
    }

    pub(super) fn operation(&self, location: u32) -> u32 {
        self.services.get(location as usize).map_or(0, |service| service.operation)
    }

    pub(super) fn dependencies(&self, location: u32) -> &[u32] {
        self.services.get(location as usize).map_or(&[], |service| &service.dependencies)
    }

    /// The component instance and the unit that run a service on a server, in a thread.
    pub(super) fn place(&mut self, location: u32, server: u32, thread: u32) -> (u32, u32) {
        let known = self.services.get(location as usize).and_then(|service| service.last_place);
        if let Some((_, place)) = known.filter(|(at, _)| *at == (server, thread)) {
            return place;
        }
        let place = self.find_place(location, server, thread);
        if let Some(service) = self.services.get_mut(location as usize) {
            service.last_place = Some(((server, thread), place));
        }
        place
    }

    fn find_place(&mut self, location: u32, server: u32, thread: u32) -> (u32, u32) {
        let component = self.component(location);
        if let Some(place) = self.place_of.get(&(component, server, thread)) {
            return *place;
        }
        let at = if self.by_server { server } else { NONE };
        let instance = self.instances.insert_full((component, at)).0 as u32;
        let process = self.process(instance);
        let thread_name = self.texts.names.name(thread);
        // Threads have their names on their servers only.
        let thread_name = match (thread, self.by_server || server == NONE) {
            (NONE, _) => String::new(),
            (_, true) => thread_name.to_owned(),
            (_, false) => format!("{}:{thread_name}", self.texts.names.name(server)),
        };
        let unit = self.units.intern(&process, &thread_name);
        self.place_of.insert((component, server, thread), (instance, unit));
        (instance, unit)
    }

    /// The name of a component instance: `SERVER::COMPONENT`, or that of the component where no server is known.
    pub(super) fn process(&self, instance: u32) -> String {
        let (component, server) = self.instances.get_index(instance as usize).copied().unwrap_or((0, NONE));
        let component = self.components.name(component);
        match self.texts.names.name(server) {
            // Kieker's executions on a known host need not name a class.
            "" if component.is_empty() => "(no class)".to_owned(),
            "" => component.to_owned(),
            server => format!("{server}::{component}"),
        }
    }

    /// The server of a component instance, where it is known.
    pub(super) fn server(&self, instance: u32) -> Option<String> {
        let (_, server) = self.instances.get_index(instance as usize)?;
        (*server != NONE).then(|| self.texts.names.name(*server).to_owned())
    }

    /// The numbers here of the services of `other`.
    pub(super) fn renumber(&mut self, other: &Self, options: &CallPathOptions) -> Vec<u32> {
        (0..other.texts.n_locations() as u32)
            .map(|location| {
                let (class, method) = other.texts.service(location);
                self.location(class, method, options)
            })
            .collect()
    }

    /// The numbers here of the servers and threads of `other`.
    pub(super) fn renumber_names(&mut self, other: &Self) -> Vec<u32> {
        other.texts.names.iter().map(|name| self.texts.names.intern(name)).collect()
    }
}

impl Naming for Places {
    fn service(&self, location: u32) -> (&str, &str) {
        (self.components.name(self.component(location)), self.operations.name(self.operation(location)))
    }
}
