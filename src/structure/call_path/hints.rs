//! What is known of processes beside their interactions: where they run, their demands at their hosts and at other resources, cores.
//!
//! A process runs on one resource, its *host*; what it demands of others is a visit to them. Of the resources that a process uses, the host
//! is the one for which fewest of its actions have response times of their own (its times are self times), then one of its server, then
//! the first by name.
//!
//! The processor of a host is the server, where it is known; of a process without a server the one on which all others run whose
//! host that resource is, else one that is named after the resource.

use std::cmp::Reverse;

use indexmap::{IndexMap, IndexSet};

use super::{
    demand::{DemandEstimate, Resource},
    flow::Naming,
    options::CallPathOptions,
    outside::OutsideReport,
    places::Places,
    summary::Summary,
};
use crate::{
    structure::interactions::{Hints, OpenAtOnce, ProcessHints, ResourceVisit, Workload},
    trace::diagnostics::Diagnostics,
};

/// What is estimated of a process: resources (indices into the options'), each with the demands of the process's actions.
type Estimates<'d> = IndexMap<usize, Vec<&'d DemandEstimate>>;

/// What is known of all processes and processors; `demands` are those of each resource.
pub(super) fn hints(
    summary: &Summary,
    places: &Places,
    options: &CallPathOptions,
    demands: &[Vec<DemandEstimate>],
    diagnostics: &mut Diagnostics,
) -> Hints {
    let mut hints = Hints::default();
    let services: IndexSet<(u32, u32)> = summary.by_instance().into_keys().collect();
    let of_processes = by_process(demands);
    let hosts = Hosts::of(places, &options.resources, &of_processes, diagnostics);
    for instance in 0..places.instances.len() as u32 {
        let process = places.process(instance);
        let mut known = ProcessHints {
            processor: places.server(instance),
            infinite: places.units.names.get(&process).is_some(),
            ..ProcessHints::default()
        };
        if let (Some(estimates), Some(host)) = (of_processes.get(process.as_str()), hosts.of_process.get(&process)) {
            known.processor = known.processor.or_else(|| Some(hosts.processor(&options.resources, *host)));
            let methods = methods(instance, &services, places);
            let method = |estimate: &DemandEstimate| methods.get(&estimate.action).cloned();
            for (resource, estimates) in estimates {
                for (method, demand_s) in estimates.iter().filter_map(|estimate| Some((method(estimate)?, estimate.demand_s))) {
                    if resource == host {
                        known.demands.insert(method, [Some(demand_s), None]);
                    } else if demand_s > 0.0 {
                        known.visits.push(hosts.visit(&options.resources, *resource, method, demand_s));
                    }
                }
            }
            known.visits.sort_by(|a, b| (&a.operation, &a.resource).cmp(&(&b.operation, &b.resource)));
        }
        hints.processes.insert(process, known);
    }
    hosts.give_cores(&options.resources, &mut hints, diagnostics);
    if let Some(outside) = summary.outside.report() {
        give_customers(&options.client, outside, &mut hints);
    }
    hints
}

/// As many customers as requests were open at once, where that was more than one. They do not think: how long is for the user to say.
fn give_customers(client: &str, outside: OutsideReport, hints: &mut Hints) {
    let OutsideReport { most_at_once, rate_per_s: rate, .. } = outside;
    if most_at_once >= 2 {
        let known = hints.processes.entry(client.to_owned()).or_default();
        known.workload = Some(Workload::Closed { customers: most_at_once as f64, think_time: 0.0 });
        known.open_at_once = Some(OpenAtOnce { rate });
    }
}

fn by_process(demands: &[Vec<DemandEstimate>]) -> IndexMap<&str, Estimates<'_>> {
    let mut of_processes: IndexMap<&str, Estimates<'_>> = IndexMap::new();
    for (resource, estimates) in demands.iter().enumerate() {
        for estimate in estimates {
            for process in &estimate.processes {
                of_processes.entry(process).or_default().entry(resource).or_default().push(estimate);
            }
        }
    }
    of_processes
}

/// Methods of the services that ran on an instance, by the names of their actions.
fn methods(instance: u32, services: &IndexSet<(u32, u32)>, places: &Places) -> IndexMap<String, String> {
    let own = services.iter().filter(|(at, _)| *at == instance).map(|(_, location)| places.service(*location));
    own.map(|(component, method)| (format!("{component}.{method}"), method.to_owned())).collect()
}

/// Which resource each process runs on.
struct Hosts {
    /// Index of the resource, by process.
    of_process: IndexMap<String, usize>,
    /// Known servers of the processes whose host a resource is, shape `(n_resources,)`.
    servers: Vec<IndexSet<String>>,
}

impl Hosts {
    fn of(places: &Places, resources: &[Resource], of_processes: &IndexMap<&str, Estimates<'_>>, diagnostics: &mut Diagnostics) -> Self {
        let mut hosts = Self { of_process: IndexMap::new(), servers: vec![IndexSet::new(); resources.len()] };
        for instance in 0..places.instances.len() as u32 {
            let (process, server) = (places.process(instance), places.server(instance));
            let Some(estimates) = of_processes.get(process.as_str()) else { continue };
            let rank = |(index, estimates): (&usize, &Vec<&DemandEstimate>)| {
                let resource = &resources[*index];
                let n_own_times = estimates.iter().filter(|estimate| resource.response_times_s.contains_key(&estimate.action)).count();
                let is_there = resource.server.is_some() && resource.server == server;
                ((n_own_times, Reverse(is_there)), (&resource.name, &resource.server, &resource.components), *index)
            };
            let mut ranked: Vec<_> = estimates.iter().map(rank).collect();
            ranked.sort();
            if let [first, second, ..] = ranked.as_slice()
                && first.0 == second.0
            {
                let message = "nothing says which of several resources a process runs on: the first by name was taken. The others are to have \
                               response times";
                diagnostics.add("host_resource_assumed", message, || format!("{process}: {}", first.1.0));
            }
            let Some((.., host)) = ranked.first() else { continue };
            hosts.servers[*host].extend(server);
            hosts.of_process.insert(process, *host);
        }
        hosts
    }

    /// The one server of what runs on a resource.
    fn only_server(&self, resource: usize) -> Option<&String> {
        self.servers[resource].first().filter(|_| self.servers[resource].len() == 1)
    }

    /// The processor of what runs on a resource, and of what visits it.
    fn processor(&self, resources: &[Resource], resource: usize) -> String {
        self.only_server(resource).unwrap_or(&resources[resource].name).clone()
    }

    fn visit(&self, resources: &[Resource], resource: usize, operation: String, demand_s: f64) -> ResourceVisit {
        ResourceVisit { operation, resource: resources[resource].name.clone(), processor: self.only_server(resource).cloned(), demand_s }
    }

    /// Gives the processors of resources their cores: those that all run on one, or that are visited.
    fn give_cores(&self, resources: &[Resource], hints: &mut Hints, diagnostics: &mut Diagnostics) {
        let visited: IndexSet<&String> =
            hints.processes.values().flat_map(|process| process.visits.iter().map(|visit| &visit.resource)).collect();
        let is_host = |index: usize| self.servers[index].len() < 2 && self.of_process.values().any(|host| *host == index);
        let is_used = |index: usize| is_host(index) || visited.contains(&resources[index].name);
        let used: Vec<usize> = (0..resources.len()).filter(|index| is_used(*index)).collect();
        for index in used {
            let (resource, processor) = (&resources[index], self.processor(resources, index));
            if resource.cores >= 1.0 && resource.cores.fract() <= 0.0 {
                let known = hints.processors.entry(processor).or_default();
                known.cores = known.cores.max(Some(resource.cores as u64));
            } else {
                let message = "a processor has whole cores: those of a resource are not in the model, whose demands are right nevertheless";
                diagnostics.add("cores_not_whole", message, || format!("{}: {} cores", resource.name, resource.cores));
            }
        }
    }
}
