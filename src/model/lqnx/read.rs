//! The element tree to a model: the model itself, its hints, processors and groups.

use std::collections::HashSet;

use super::{
    element::{Element, Result, SyntaxError},
    read_task::read_task,
};
use crate::model::{
    Group, HalfWidth, Histogram, HistogramRequest, Model, Observation, Observed, Opaque, Pragma, Processor, ProcessorScheduling,
    SolverParams,
    lexer::{Cursor, Token},
    observation::OBSERVABLE,
    spex::{Collection, read_collection, read_parameters},
};

const PROCESSOR_SCHEDULING: &[(&str, ProcessorScheduling)] = &[
    ("fcfs", ProcessorScheduling::Fcfs),
    ("inf", ProcessorScheduling::Inf),
    ("hol", ProcessorScheduling::Hol),
    ("pri", ProcessorScheduling::Pri),
    ("pp", ProcessorScheduling::Pri),
    ("ppr", ProcessorScheduling::Pri),
    ("ps", ProcessorScheduling::Ps),
    ("cfs", ProcessorScheduling::Cfs),
    ("rand", ProcessorScheduling::Rand),
    ("lcfs", ProcessorScheduling::Lcfs),
    ("rr", ProcessorScheduling::Rr),
];

/// Reads a whole document.
pub(super) fn read_model(root: &Element<'_>) -> Result<Model> {
    if root.name != "lqn-model" {
        return Err(root.error(format!("expected <lqn-model>, found <{}>", root.name)));
    }
    root.allow(&["name", "description", "lqn-schema-version", "lqncore-schema-version", "xml-debug"])?;
    let text = |name| root.text_of(name).unwrap_or_default().to_owned();
    let mut model = Model { name: text("name"), description: text("description"), ..Model::default() };
    let mut once = HashSet::new();
    for child in &root.children {
        if child.name != "processor" && !once.insert(child.name.as_ref()) {
            return Err(child.error(format!("<{}> stands twice", child.name)));
        }
        read_part(root, child, &mut model)?;
    }
    let program = root.children.iter().find(|c| c.name == "lqx");
    match program {
        Some(program) if !model.parameters.is_empty() => Err(program.error("a file has an LQX program or SPEX parameters, not both")),
        _ => Ok(model.in_file_order()),
    }
}

fn read_part(root: &Element<'_>, child: &Element<'_>, model: &mut Model) -> Result<()> {
    match child.name.as_ref() {
        "parameters" => spex(child, |cursor| read_parameters(cursor, &mut model.parameters))?,
        "solver-params" => read_solver_params(child, model)?,
        "processor" => read_processor(child, model)?,
        "lqx" => {
            no_children(child)?;
            model.opaque.push(Opaque { element: "lqx".into(), text: child.text.clone().into_owned() });
        }
        name @ ("results-collection" | "convergence-collection") => {
            let kind = if name == "results-collection" { Collection::Results } else { Collection::Convergence };
            let mut items = Vec::new();
            spex(child, |cursor| {
                items = read_collection(cursor, kind)?;
                Ok(())
            })?;
            model.opaque.push(Opaque { element: name.to_owned(), text: items.join("\n") });
        }
        _ => {
            let parts = ["parameters", "solver-params", "processor", "lqx", "results-collection", "convergence-collection"];
            return Err(root.unknown_child(child, &parts));
        }
    }
    Ok(())
}

/// Refuses children of an element that holds text or nothing.
pub(super) fn no_children(element: &Element<'_>) -> Result<()> {
    element.children.first().map_or(Ok(()), |child| Err(element.unknown_child(child, &[])))
}

/// Reads the SPEX lines of an element; errors stand at the element and say where in its text.
fn spex(element: &Element<'_>, read: impl FnOnce(&mut Cursor<'_>) -> Result<()>) -> Result<()> {
    no_children(element)?;
    let mut cursor = Cursor::new(&element.text);
    let result = read(&mut cursor).and_then(|()| match cursor.peek()?.token {
        Token::End => Ok(()),
        _ => Err(cursor.unexpected("a definition \"$name = value\" or the end")),
    });
    result.map_err(|error: SyntaxError| {
        let before = element.text.get(..error.offset).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        element.error(format!("in <{}>, line {line} of its text: {}", element.name, error.reason))
    })
}

fn read_solver_params(element: &Element<'_>, model: &mut Model) -> Result<()> {
    element.allow(&["comment", "conv_val", "it_limit", "underrelax_coeff", "print_int"])?;
    let mut params = SolverParams {
        comment: element.text_of("comment").unwrap_or_default().to_owned(),
        conv_val: element.number("conv_val")?,
        it_limit: element.number("it_limit")?,
        underrelax_coeff: element.number("underrelax_coeff")?,
        print_int: element.number("print_int")?,
        pragmas: Vec::new(),
    };
    for child in &element.children {
        match child.name.as_ref() {
            "pragma" => {
                child.allow(&["param", "value"])?;
                no_children(child)?;
                let value = child.text_of("value").unwrap_or_default().to_owned();
                params.pragmas.push(Pragma { param: child.required("param")?.to_owned(), value });
            }
            "result-observe" => read_observations(child, &Observed::Solution, model)?,
            _ => return Err(element.unknown_child(child, &["result-general", "result-observe", "pragma"])),
        }
    }
    model.solver_params = params;
    Ok(())
}

fn read_processor(element: &Element<'_>, model: &mut Model) -> Result<()> {
    element.allow(&["name", "scheduling", "multiplicity", "replication", "speed-factor", "quantum"])?;
    let name = element.required("name")?;
    let mut processor = Processor {
        scheduling: element.choice("scheduling", PROCESSOR_SCHEDULING)?.unwrap_or_default(),
        multiplicity: element.number_or("multiplicity", 1.0)?,
        replication: element.number_or("replication", 1.0)?,
        speed_factor: element.number_or("speed-factor", 1.0)?,
        quantum: element.number_or("quantum", 0.0)?,
        ..Processor::new(name)
    };
    for child in &element.children {
        match child.name.as_ref() {
            "task" => read_task(child, name, None, model)?,
            "group" => processor.groups.push(read_group(child, name, model)?),
            "result-observe" => read_observations(child, &Observed::Processor(name.to_owned()), model)?,
            _ => return Err(element.unknown_child(child, &["task", "group", "result-processor", "result-observe"])),
        }
    }
    model.processors.push(processor);
    Ok(())
}

fn read_group(element: &Element<'_>, processor: &str, model: &mut Model) -> Result<Group> {
    element.allow(&["name", "share", "cap"])?;
    element.required("share")?;
    let name = element.required("name")?.to_owned();
    let group = Group { share: element.number_or("share", 0.0)?, cap: element.flag("cap")?, name };
    for child in &element.children {
        match child.name.as_ref() {
            "task" => read_task(child, processor, Some(group.name.clone()), model)?,
            "result-observe" => read_observations(child, &Observed::Group(group.name.clone()), model)?,
            _ => return Err(element.unknown_child(child, &["task", "result-group", "result-observe"])),
        }
    }
    Ok(group)
}

/// Reads `<result-observe throughput="$x"/>` with the half-widths in its children.
pub(super) fn read_observations(element: &Element<'_>, of: &Observed, model: &mut Model) -> Result<()> {
    element.allow(OBSERVABLE)?;
    let first = model.observations.len();
    for attribute in element.attributes.iter().filter(|a| OBSERVABLE.contains(&a.name.as_ref())) {
        let variable = Element::variable(attribute)?;
        let measure = attribute.name.clone().into_owned();
        model.observations.push(Observation { of: of.clone(), measure, variable, half_width: None });
    }
    for child in &element.children {
        let level = match child.name.as_ref() {
            "result-conf-95" => 95,
            "result-conf-99" => 99,
            _ => return Err(element.unknown_child(child, &["result-conf-95", "result-conf-99"])),
        };
        child.allow(OBSERVABLE)?;
        no_children(child)?;
        for attribute in child.attributes.iter().filter(|a| OBSERVABLE.contains(&a.name.as_ref())) {
            let variable = Element::variable(attribute)?;
            let observations = model.observations.get_mut(first..).unwrap_or_default();
            let free = |o: &&mut Observation| o.measure == attribute.name && o.half_width.is_none();
            let Some(observation) = observations.iter_mut().find(free) else {
                return Err(attribute.error("a result that is observed, once for each level"));
            };
            observation.half_width = Some(HalfWidth { level, variable });
        }
    }
    Ok(())
}

/// Reads `<service-time-distribution min="0" max="9" number-bins="20"/>`; bins in it are results and skipped.
pub(super) fn read_histogram(element: &Element<'_>, attributes: &[&str]) -> Result<HistogramRequest> {
    /// Number of bins where LQNX gives none; the text grammar has another.
    const DEFAULT_BINS: u32 = 10;
    const RESULTS: [&str; 6] = ["bin-size", "mid-point", "mean", "std-dev", "skew", "kurtosis"];
    element.allow(&[&["min", "max", "number-bins"], attributes, &RESULTS].concat())?;
    let is_bin = |name: &str| matches!(name, "underflow-bin" | "histogram-bin" | "overflow-bin");
    if let Some(child) = element.children.iter().find(|c| !is_bin(&c.name)) {
        return Err(element.unknown_child(child, &["underflow-bin", "histogram-bin", "overflow-bin"]));
    }
    element.required("min")?;
    element.required("max")?;
    Ok(HistogramRequest {
        min: element.literal_or("min", 0.0)?,
        max: element.literal_or("max", 0.0)?,
        bins: element.count_or("number-bins", DEFAULT_BINS)?,
    })
}

/// Keeps a histogram that does not stand on its phase or activity.
pub(super) fn push_histogram(model: &mut Model, of: Observed, request: HistogramRequest) {
    model.histograms.push(Histogram { of, request });
}
