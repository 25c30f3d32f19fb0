//! Usage models become customers of a layered model.

use layerfit::{
    model::{Activity, Call, CallKind, Entry, Model, Number, Phase, Processor, ProcessorScheduling, Severity, Task, TaskScheduling},
    structure::{
        interactions::Workload,
        usage::{
            ClassChoice, Cycle, LqnOptions, PlanOptions, ThinkLaw, Thinking, Unmatched, UsageError, UsageModel, UsageOptions,
            UsageWorkload, parse_behaviour,
        },
    },
};

use super::{FIGURE_9, generated, one_class, spec, summary, think};

/// Users of a shop: reference task `Client`, entries `shop.S0` to `shop.S2`.
fn shop() -> Model {
    let mut client = Task::new("Client", "Client_cpu");
    client.scheduling = TaskScheduling::Ref;
    let mut cycle = Activity::new("Client.1_ph1", 0.5);
    cycle.calls = vec![Call { kind: CallKind::Sync, dest: "shop.S0".to_owned(), mean: Number::Value(1.0) }];
    let mut entry = Entry::new("Client.1");
    entry.phases.push(Phase { phase: 1, activity: cycle });
    client.entries.push(entry);
    let mut shop = Task::new("shop", "shop_cpu");
    for name in ["shop.S0", "shop.S1", "shop.S2"] {
        let mut entry = Entry::new(name);
        entry.phases.push(Phase { phase: 1, activity: Activity::new(format!("{name}_ph1"), 0.01) });
        shop.entries.push(entry);
    }
    let mut users = Processor::new("Client_cpu");
    users.scheduling = ProcessorScheduling::Inf;
    Model { name: "shop".to_owned(), processors: vec![users, Processor::new("shop_cpu")], tasks: vec![client, shop], ..Model::default() }
}

fn value(number: &Number) -> f64 {
    let Number::Value(value) = number else { panic!("{number:?}") };
    *value
}

fn calls(task: &Task) -> Vec<(String, f64)> {
    task.entries[0].phases[0].activity.calls.iter().map(|call| (call.dest.clone(), value(&call.mean))).collect()
}

fn figure_9_usage() -> UsageModel {
    let known = think(parse_behaviour("B0", FIGURE_9).unwrap(), ThinkLaw::Exponential { mean_s: 5.0 });
    UsageModel::of(&summary(&generated(&spec(vec![(known, 1.0)], vec![(0.0, 50)], 5000), 8)), &one_class()).unwrap()
}

fn check_valid(model: &Model) {
    let defects: Vec<_> = model.validate().into_iter().filter(|d| d.kind.severity() == Severity::Error).collect();
    assert!(defects.is_empty(), "{defects:?}");
}

#[test]
fn customers_ask_in_the_ratio_of_visits() {
    let usage = figure_9_usage();
    let model = usage.apply_to(&shop(), &LqnOptions::default()).unwrap();
    check_valid(&model);
    let client = model.task("Client").unwrap();
    assert_eq!(value(&client.multiplicity), usage.mean_active.round());
    let class = &usage.classes[0];
    let asked = calls(client);
    for (i, service) in usage.services.iter().enumerate() {
        let mean = asked.iter().find(|(dest, _)| *dest == format!("shop.{service}")).unwrap().1;
        assert!((mean - class.visits[i] / class.mean_length).abs() < 1e-12);
        // Figure 9: (1.0274, 1.7123, 0.2740) / 3.0137.
        let known = [("S0", 0.3409), ("S1", 0.5682), ("S2", 0.0909)].into_iter().find(|(name, _)| name == service).unwrap().1;
        assert!((mean - known).abs() < 0.02, "{service} {mean}");
    }
    assert!(client.entries[0].phases[0].activity.host_demand.is(0.0));
    assert_eq!(model.tasks[1], shop().tasks[1]);
    // A cycle that is a session has L times the calls and the think time.
    let session = usage.apply_to(&shop(), &LqnOptions { cycle: Cycle::Session, ..LqnOptions::default() }).unwrap();
    let length = class.mean_length;
    let think = [&model, &session].map(|m| value(&m.task("Client").unwrap().think_time));
    assert!((think[1] / think[0] - length).abs() < 1e-9);
    assert!((calls(session.task("Client").unwrap()).iter().map(|(_, mean)| mean).sum::<f64>() - length).abs() < 1e-9);
    let every = usage.apply_to(&shop(), &LqnOptions { thinking: Thinking::AfterEvery, ..LqnOptions::default() }).unwrap();
    assert!((value(&every.task("Client").unwrap().think_time) - class.think.unwrap().mean_s).abs() < 1e-12);
    let hints = usage.hints("Client", &LqnOptions::default()).unwrap();
    let Some(Workload::Closed { customers, think_time }) = hints.processes["Client"].workload else { panic!("{hints:?}") };
    assert!((customers, think_time) == (usage.mean_active.round(), think[0]));
}

#[test]
fn think_time_of_a_request_keeps_littles_law() {
    // 50 sessions are always active: 50 / (R + Z') requests a second.
    let usage = figure_9_usage();
    let model = usage.apply_to(&shop(), &LqnOptions { workload: UsageWorkload::Closed { customers: Some(50.0) }, ..LqnOptions::default() });
    let think_s = value(&model.unwrap().task("Client").unwrap().think_time);
    let response_s: f64 = usage.responses.iter().flatten().map(|r| r.mean_s * r.n as f64).sum::<f64>() / usage.n_requests as f64;
    let rate = usage.n_requests as f64 / usage.span_s;
    let by_law = usage.mean_active / (response_s + think_s);
    assert!((by_law / rate - 1.0).abs() < 1e-6, "{by_law} {rate}");
}

#[test]
fn classes_become_reference_tasks_by_active_time() {
    let slow = think(parse_behaviour("slow", FIGURE_9).unwrap(), ThinkLaw::Exponential { mean_s: 20.0 });
    let fast = think(parse_behaviour("fast", ",S2,$\nS2*,0.5,0.5\n").unwrap(), ThinkLaw::Exponential { mean_s: 1.0 });
    let rows = generated(&spec(vec![(slow, 0.5), (fast, 0.5)], vec![(0.0, 40)], 4000), 2);
    let given = UsageOptions { classes: ClassChoice::Given, ..UsageOptions::default() };
    let usage = UsageModel::of(&summary(&rows), &given).unwrap();
    let options = LqnOptions { workload: UsageWorkload::Closed { customers: Some(40.0) }, ..LqnOptions::default() };
    let model = usage.apply_to(&shop(), &options).unwrap();
    check_valid(&model);
    let names: Vec<_> = model.tasks.iter().map(|task| (task.name.as_str(), value(&task.multiplicity))).collect();
    // Half of the sessions each, but a slow one lasts 41.3 s and a fast one 1.4 s: 38.7 and 1.3 of 40.
    assert_eq!(names, [("Client(fast)", 1.0), ("Client(slow)", 39.0), ("shop", 1.0)]);
    assert_eq!(calls(&model.tasks[0]), [("shop.S2".to_owned(), 1.0)]);
    assert_eq!(model.tasks[0].entries[0].name, "Client.1(fast)");
}

#[test]
fn arrivals_are_starts_times_visits() {
    let usage = figure_9_usage();
    let options = LqnOptions { workload: UsageWorkload::Open { rate: Some(2.0) }, ..LqnOptions::default() };
    let model = usage.apply_to(&shop(), &options).unwrap();
    check_valid(&model);
    assert_eq!((model.tasks.len(), model.processors.len()), (1, 1));
    for (i, service) in usage.services.iter().enumerate() {
        let (_, entry) = model.entry(&format!("shop.{service}")).unwrap();
        assert_eq!(value(entry.open_arrival_rate.as_ref().unwrap()), 2.0 * usage.classes[0].visits[i]);
    }
    let hints = usage.hints("Client", &options).unwrap();
    assert_eq!(hints.processes["Client"].workload, Some(Workload::Open { rate: 2.0 * usage.classes[0].mean_length }));
}

#[test]
fn what_does_not_fit_the_model_is_named() {
    let usage = figure_9_usage();
    let mut other = shop();
    other.tasks[1].entries[2].name = "shop.other".to_owned();
    let error = usage.apply_to(&other, &LqnOptions::default()).unwrap_err();
    assert!(matches!(&error, UsageError::Entry { service, .. } if service == "S2"), "{error}");
    let dropped = usage.apply_to(&other, &LqnOptions { unmatched: Unmatched::Drop, ..LqnOptions::default() }).unwrap();
    assert_eq!(calls(dropped.task("Client").unwrap()).len(), 2);
    let entries = [("S2".to_owned(), "shop.other".to_owned())].into();
    let mapped = usage.apply_to(&other, &LqnOptions { entries, ..LqnOptions::default() }).unwrap();
    assert!(calls(mapped.task("Client").unwrap()).iter().any(|(dest, _)| dest == "shop.other"));
    let mut twice = shop();
    twice.tasks[1].entries[2].name = "old.S1".to_owned();
    assert!(usage.apply_to(&twice, &LqnOptions::default()).unwrap_err().to_string().contains("shop.S1 or old.S1"));
    let client = |client: &str| LqnOptions { client: Some(client.to_owned()), ..LqnOptions::default() };
    assert!(matches!(usage.apply_to(&shop(), &client("shop")), Err(UsageError::Client { .. })));
    assert!(matches!(usage.apply_to(&Model::default(), &LqnOptions::default()), Err(UsageError::Client { .. })));
    let none = LqnOptions { workload: UsageWorkload::Closed { customers: Some(0.0) }, ..LqnOptions::default() };
    assert!(matches!(usage.apply_to(&shop(), &none), Err(UsageError::Value { .. })));
    let mut graph = shop();
    graph.tasks[0].entries[0].start_activity = Some("a".to_owned());
    assert!(matches!(usage.apply_to(&graph, &LqnOptions::default()), Err(UsageError::Graph { .. })));
}

#[test]
fn usage_is_read_back_shown_and_planned() {
    let usage = figure_9_usage();
    let json = serde_json::to_string(&usage).unwrap();
    assert_eq!(serde_json::from_str::<UsageModel>(&json).unwrap(), usage);
    let text = usage.to_text();
    for line in ["5000 sessions with", "class all: 100.00 % of sessions (5000.0)", "  think time exponential, mean", "  S1 → S1: 0.5"] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let plan =
        usage.to_jmeter(&PlanOptions { paths: [("S0".to_owned(), "/a?x=1&y=2".to_owned())].into(), ..PlanOptions::default() }).unwrap();
    let mut reader = quick_xml::Reader::from_str(&plan);
    let (mut depth, mut samplers, mut paths) = (0, 0, Vec::new());
    loop {
        match reader.read_event().unwrap() {
            quick_xml::events::Event::Start(tag) => {
                depth += 1;
                samplers += u32::from(tag.name().as_ref() == "HTTPSamplerProxy");
            }
            quick_xml::events::Event::End(_) => depth -= 1,
            quick_xml::events::Event::Text(text) => paths.push(text.to_string()),
            quick_xml::events::Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!((depth, samplers), (0, 3));
    assert!(paths.iter().any(|path| path == "/S1") && plan.contains("/a?x=1&amp;y=2"));
    assert!(plan.contains(&format!("<intProp name=\"ThreadGroup.num_threads\">{}</intProp>", usage.mean_active.round())));
}
