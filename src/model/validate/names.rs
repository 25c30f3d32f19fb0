//! Names and references: what is named is there once, and in characters that files can hold.

use std::collections::{HashMap, HashSet};

use petgraph::{algo::kosaraju_scc, graphmap::DiGraphMap};

use super::{DefectKind, Defects, Index, Named, activity_name, entry_name, group_name, processor_name, task_name, work};
use crate::model::{
    Bindings, Expression, HistogramRequest, Model, Observed, Parameter, ParameterValue, Pre, Task, number::is_name as is_parameter_name,
};

/// Checks all names and references of the model.
pub(super) fn check(model: &Model, index: &Index<'_>, defects: &mut Defects) {
    check_texts(model, defects);
    check_parameters(model, defects);
    check_names(model, defects);
    check_places(model, index, defects);
    for task in &model.tasks {
        check_calls(task, index, defects);
        check_activities(task, model, index, defects);
    }
    check_observed(model, index, defects);
}

/// Characters that XML cannot hold.
fn is_control(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\r' | '\t')) || matches!(c, '\u{fffe}' | '\u{ffff}')
}

/// Pragmas of lqns and lqsim as far as they are known here. Others are kept, too, and warned of, as a name may be misspelt.
const PRAGMAS: [&str; 48] = [
    "annotate",
    "bcmp",
    "block-period",
    "convergence-value",
    "cycles",
    "default-output",
    "disjoint-customers",
    "expand-replicas",
    "force-infinite",
    "force-multiserver",
    "force-random-queueing",
    "idle-time",
    "initial-delay",
    "initial-loops",
    "interlocking",
    "iteration-limit",
    "layering",
    "max-blocks",
    "messages",
    "multiserver",
    "mva",
    "mva-convergence",
    "nice",
    "overtaking",
    "precision",
    "processor-scheduling",
    "processor",
    "prune",
    "queue-size",
    "quorum-delayed-calls",
    "quorum-distribution",
    "quorum-idle-time",
    "quorum-reply",
    "replication",
    "reschedule-on-async-send",
    "run-time",
    "save-marginal-probabilities",
    "scheduling-model",
    "seed-value",
    "severity-level",
    "spex-header",
    "stop-on-bogus-utilization",
    "stop-on-message-loss",
    "task-scheduling",
    "tau",
    "threads",
    "underrelaxation",
    "variance",
];

fn check_text(element: &Named, text: &str, defects: &mut Defects) {
    if text.contains(is_control) {
        defects.push(element, DefectKind::ControlCharacter { text: text.escape_debug().to_string() });
    }
}

fn check_texts(model: &Model, defects: &mut Defects) {
    for text in [&model.name, &model.description, &model.solver_params.comment] {
        check_text(&Named::model(), text, defects);
    }
    for pragma in &model.solver_params.pragmas {
        check_text(&Named::model(), &pragma.param, defects);
        check_text(&Named::model(), &pragma.value, defects);
        if !PRAGMAS.contains(&pragma.param.as_str()) {
            defects.push(Named::model(), DefectKind::UnknownPragma { param: pragma.param.clone() });
        }
    }
    for part in &model.opaque {
        check_text(&Named::model(), &part.text, defects);
        let is_inert = part.element == "results-collection";
        if !crate::model::order::OPAQUE_ELEMENTS.contains(&part.element.as_str()) {
            let (role, kind) = ("it has", "part");
            defects.push(Named::model(), DefectKind::Unknown { role, kind, name: part.element.clone() });
        } else if !is_inert && !part.text.trim().is_empty() {
            defects.push(Named::model(), DefectKind::NotCarriedOut { element: part.element.clone() });
        }
    }
}

fn check_parameters(model: &Model, defects: &mut Defects) {
    let mut seen = HashSet::new();
    let expressions = expressions(model);
    let circular = circular(&expressions);
    for parameter in &model.parameters {
        let element = Named::unplaced(format!("parameter ${}", parameter.name));
        if !is_parameter_name(&parameter.name) {
            defects.push(&element, DefectKind::ParameterName { name: parameter.name.clone() });
        }
        if !seen.insert(&parameter.name) {
            defects.push(&element, DefectKind::DuplicateName { kind: "parameter" });
        }
        if let Some(reason) = unusable(&parameter.value) {
            defects.push(&element, DefectKind::ParameterValue { reason });
        } else if circular.contains(parameter.name.as_str()) {
            defects.push(&element, DefectKind::ParameterValue { reason: "it is computed from itself".into() });
        } else if let Some(reason) = expressions.get(parameter.name.as_str()).and_then(incomputable) {
            defects.push(&element, DefectKind::ParameterValue { reason });
        }
    }
    model.for_each_number(&mut |number| {
        if let Some(name) = number.parameter().filter(|name| !is_parameter_name(name)) {
            defects.push(Named::model(), DefectKind::ParameterName { name: name.to_owned() });
        }
    });
}

/// Why a parameter's value cannot be used.
fn unusable(value: &ParameterValue) -> Option<String> {
    match value {
        ParameterValue::Number(v) if v.is_nan() => Some("it is not a number".into()),
        ParameterValue::List(values) if values.iter().any(|v| v.is_nan()) => Some("one of them is not a number".into()),
        ParameterValue::List(values) if values.is_empty() => Some("the list is empty".into()),
        ParameterValue::Expressions(texts) if texts.is_empty() => Some("the list is empty".into()),
        ParameterValue::Range { .. } if value.values().is_none() => Some("the range has no values, or more than a million".into()),
        ParameterValue::ForEach { over, .. } if !is_parameter_name(over) => Some(format!("\"{over}\" is not a parameter's name")),
        ParameterValue::Text { text } if text.contains(['\\', '\n', '\r']) || text.contains(is_control) => {
            Some("the text has a backslash, a line end or a control character".into())
        }
        _ => value.expressions().iter().find_map(|text| Expression::parse(text).err()).map(|e| e.to_string()),
    }
}

/// The expressions that parameters are defined by.
fn expressions(model: &Model) -> HashMap<&str, Expression> {
    let of = |parameter: &'_ Parameter| match &parameter.value {
        ParameterValue::Expression(text) => Expression::parse(text).ok(),
        _ => None,
    };
    model.parameters.iter().filter_map(|parameter| Some((parameter.name.as_str(), of(parameter)?))).collect()
}

/// The parameters that are computed from themselves, be it by way of others.
fn circular<'a>(expressions: &HashMap<&'a str, Expression>) -> HashSet<&'a str> {
    let names: Vec<&str> = expressions.keys().copied().collect();
    let place_of: HashMap<&str, usize> = names.iter().enumerate().map(|(place, name)| (*name, place)).collect();
    let mut uses: DiGraphMap<usize, ()> = DiGraphMap::new();
    for (name, expression) in expressions {
        for used in expression.parameters().iter().filter_map(|used| place_of.get(used.as_str())) {
            uses.add_edge(place_of[name], *used, ());
        }
    }
    let is_circular = |found: &Vec<usize>| found.len() > 1 || found.first().is_some_and(|&it| uses.contains_edge(it, it));
    kosaraju_scc(&uses).into_iter().filter(is_circular).flatten().map(|place| names[place]).collect()
}

/// Why an expression without parameters is no number.
fn incomputable(expression: &Expression) -> Option<String> {
    let is_constant = expression.parameters().is_empty();
    is_constant.then(|| expression.eval(&Bindings::<f64>::new()).err()).flatten().map(|error| error.to_string())
}

/// Checks that names are there, once each, among elements of a kind.
fn check_names(model: &Model, defects: &mut Defects) {
    let mut processors = HashSet::new();
    let mut groups = HashSet::new();
    for processor in &model.processors {
        let element = processor_name(processor);
        check_name(&element, &processor.name, "processor", &mut processors, defects);
        for group in &processor.groups {
            let element = group_name(processor, group);
            check_name(&element, &group.name, "group", &mut groups, defects);
        }
    }
    let mut tasks = HashSet::new();
    let mut entries = HashSet::new();
    for task in &model.tasks {
        check_name(&task_name(task), &task.name, "task", &mut tasks, defects);
        for entry in &task.entries {
            check_name(&entry_name(task, entry), &entry.name, "entry", &mut entries, defects);
            for phase in &entry.phases {
                check_text(&entry_name(task, entry), &phase.activity.name, defects);
            }
        }
        let mut activities = HashSet::new();
        for activity in &task.activities {
            let element = activity_name(task, &activity.name);
            check_name(&element, &activity.name, "activity of the task", &mut activities, defects);
        }
    }
}

fn check_name<'a>(element: &Named, name: &'a str, kind: &'static str, seen: &mut HashSet<&'a str>, defects: &mut Defects) {
    if name.is_empty() {
        defects.push(element, DefectKind::NoName);
    }
    check_text(element, name, defects);
    if !seen.insert(name) {
        defects.push(element, DefectKind::DuplicateName { kind });
    }
}

fn unknown(role: &'static str, kind: &'static str, name: &str) -> DefectKind {
    DefectKind::Unknown { role, kind, name: name.to_owned() }
}

fn check_places(model: &Model, index: &Index<'_>, defects: &mut Defects) {
    let groups: HashSet<(&str, &str)> =
        model.processors.iter().flat_map(|p| p.groups.iter().map(|g| (p.name.as_str(), g.name.as_str()))).collect();
    for task in &model.tasks {
        let processor = task.processor.as_str();
        if !index.processors.contains_key(processor) {
            defects.push(task_name(task), unknown("it runs on", "processor", processor));
        } else if let Some(group) = task.group.as_deref().filter(|g| !groups.contains(&(processor, *g))) {
            defects.push(task_name(task), unknown("it is in", "group of its processor", group));
        }
    }
}

fn check_calls(task: &Task, index: &Index<'_>, defects: &mut Defects) {
    for fan in &task.fan_out {
        if !index.tasks.contains_key(fan.task.as_str()) {
            defects.push(task_name(task), unknown("it fans out to", "task", &fan.task));
        }
    }
    for fan in &task.fan_in {
        if !index.tasks.contains_key(fan.task.as_str()) {
            defects.push(task_name(task), unknown("it fans in from", "task", &fan.task));
        }
    }
    for entry in &task.entries {
        for forwarding in &entry.forwarding {
            if !index.entries.contains_key(forwarding.dest.as_str()) {
                defects.push(entry_name(task, entry), unknown("it forwards to", "entry", &forwarding.dest));
            }
        }
    }
    for (place, activity) in work(task) {
        for call in &activity.calls {
            if !index.entries.contains_key(call.dest.as_str()) {
                defects.push(place.element(task, activity), unknown("it calls", "entry", &call.dest));
            }
        }
    }
}

/// Checks the references within an activity graph.
fn check_activities(task: &Task, model: &Model, index: &Index<'_>, defects: &mut Defects) {
    let known: HashSet<&str> = task.activities.iter().map(|a| a.name.as_str()).collect();
    for entry in &task.entries {
        if let Some(start) = entry.start_activity.as_ref().filter(|a| !known.contains(a.as_str())) {
            defects.push(entry_name(task, entry), unknown("it starts with", "activity", start));
        }
    }
    for precedence in &task.precedences {
        if precedence.pre.activities().is_empty() {
            defects.push(task_name(task), DefectKind::Empty("a pre list has no activity"));
        }
        if precedence.post.as_ref().is_some_and(|post| post.activities().is_empty()) {
            defects.push(task_name(task), DefectKind::Empty("a post list has no activity"));
        }
        let post = precedence.post.iter().flat_map(|post| post.activities());
        for activity in precedence.pre.activities().iter().map(String::as_str).chain(post) {
            if !known.contains(activity) {
                defects.push(task_name(task), unknown("a precedence has", "activity", activity));
            }
        }
    }
    for reply in &task.replies {
        let element = activity_name(task, &reply.activity);
        if !known.contains(reply.activity.as_str()) {
            defects.push(task_name(task), unknown("a reply is sent by", "activity", &reply.activity));
        }
        match index.entry(model, &reply.entry) {
            None => defects.push(element, unknown("it replies to", "entry", &reply.entry)),
            Some((owner, _)) if owner.name != task.name => {
                defects.push(element, DefectKind::ForeignReply { entry: reply.entry.clone(), task: owner.name.clone() });
            }
            Some((_, entry)) if !entry.phases.is_empty() => {
                defects.push(element, DefectKind::ReplyToPhases { entry: reply.entry.clone() });
            }
            Some(_) => {}
        }
    }
}

/// Checks that what is observed is there, and that histograms have bins.
fn check_observed(model: &Model, index: &Index<'_>, defects: &mut Defects) {
    let groups: HashSet<&str> = model.processors.iter().flat_map(|p| p.groups.iter().map(|g| g.name.as_str())).collect();
    let observed = model.observations.iter().map(|o| &o.of).chain(model.histograms.iter().map(|h| &h.of));
    for of in observed {
        if let Some((kind, name)) = missing(model, index, &groups, of) {
            defects.push(Named::model(), unknown("it observes", kind, name));
        }
    }
    for observation in &model.observations {
        let half_width = observation.half_width.iter().map(|h| &h.variable);
        for name in std::iter::once(&observation.variable).chain(half_width).filter(|n| !is_parameter_name(n)) {
            defects.push(Named::model(), DefectKind::ParameterName { name: name.clone() });
        }
        if !crate::model::observation::OBSERVABLE.contains(&observation.measure.as_str()) {
            defects.push(Named::model(), unknown("it observes", "result", &observation.measure));
        }
    }
    for histogram in &model.histograms {
        check_histogram(&Named::model(), &histogram.request, defects);
    }
    for task in &model.tasks {
        for (place, activity) in work(task) {
            if let Some(request) = &activity.histogram {
                check_histogram(&place.element(task, activity), request, defects);
            }
        }
    }
}

fn check_histogram(element: &Named, request: &HistogramRequest, defects: &mut Defects) {
    let &HistogramRequest { min, max, bins } = request;
    if !(min.is_finite() && max.is_finite() && min >= 0.0 && min < max && bins > 0) {
        defects.push(element, DefectKind::EmptyHistogram { min, max, bins });
    }
}

/// What of an observed element is not there.
fn missing<'a>(model: &'a Model, index: &Index<'a>, groups: &HashSet<&str>, of: &'a Observed) -> Option<(&'static str, &'a str)> {
    let no_entry = |entry: &'a str| (!index.entries.contains_key(entry)).then_some(("entry", entry));
    let task_of = |name: &str| index.tasks.get(name).and_then(|i| model.tasks.get(*i));
    let no_activity = |task: &'a str, activity: &'a str| match task_of(task) {
        None => Some(("task", task)),
        Some(found) => (!found.activities.iter().any(|a| a.name == activity)).then_some(("activity", activity)),
    };
    match of {
        Observed::Solution => None,
        Observed::Processor(name) => (!index.processors.contains_key(name.as_str())).then_some(("processor", name)),
        Observed::Group(name) => (!groups.contains(name.as_str())).then_some(("group", name)),
        Observed::Task(name) => task_of(name).is_none().then_some(("task", name)),
        Observed::Entry(name) => no_entry(name),
        Observed::Phase { entry, phase } => {
            no_entry(entry).or_else(|| (!(1..=3).contains(phase)).then_some(("phase beyond 3 of entry", entry)))
        }
        Observed::PhaseCall { entry, phase, dest } => no_entry(entry).or_else(|| {
            let (_, found) = index.entry(model, entry)?;
            let calls = found.phase(*phase).is_some_and(|activity| activity.calls.iter().any(|c| c.dest == *dest));
            (!calls).then_some(("call to entry", dest))
        }),
        Observed::Forwarding { entry, dest } => no_entry(entry).or_else(|| {
            let (_, found) = index.entry(model, entry)?;
            (!found.forwarding.iter().any(|f| f.dest == *dest)).then_some(("forwarding to entry", dest))
        }),
        Observed::Activity { task, activity } => no_activity(task, activity),
        Observed::ActivityCall { task, activity, dest } => no_activity(task, activity).or_else(|| {
            let found = task_of(task)?.activities.iter().find(|a| a.name == *activity)?;
            (!found.calls.iter().any(|c| c.dest == *dest)).then_some(("call to entry", dest))
        }),
        Observed::Join { task, activity } => no_activity(task, activity).or_else(|| {
            let is_join = |pre: &Pre| matches!(pre, Pre::And { .. }) && pre.activities().first() == Some(activity);
            (!task_of(task)?.precedences.iter().any(|p| is_join(&p.pre))).then_some(("join of activity", activity))
        }),
    }
}
