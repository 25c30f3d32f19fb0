//! Call paths: records to components, control flow, dependencies, demands. Vectors are those of the technique's specification.

mod counts;
mod kieker_logs;
mod laws;
mod measured;
mod outside;
mod parts;
mod resources;

use super::{calls, models::check_valid};
use layerfit::{
    structure::{
        ExtractOptions, MergeKey,
        call_path::{
            Alternative, CallPathOptions, CallPaths, DependencySpec, DependentAction, Finished, FlowNode, Partial, Pmf, ServiceReport,
            Slot,
            demand::{overhead_factor, service_demand_law, weighted_response_times},
            dependencies::{Binning, Conditional, Dependence},
            is_sampled,
        },
        interactions::{InteractionKind, Interactions},
        to_model,
    },
    trace::{
        Source,
        call_path::{ReadOptions, Texts, read},
        kieker,
    },
};

const EXACT: f64 = 1e-12;
const HEADER: &str = "record_id,time,kind,component,method,context_id,transaction_id,action,params\n";

fn technique(options: &CallPathOptions) -> CallPaths {
    CallPaths::new(options.clone()).unwrap()
}

/// What is found in a CSV.
fn found(csv: &str, options: &CallPathOptions) -> (Finished, Interactions) {
    let (mut texts, mut all) = (Texts::default(), Interactions::default());
    let mut technique = technique(options);
    let mut out = |batch: Interactions| all.merge(batch);
    let source = Source { name: "records.csv", bytes: csv.as_bytes() };
    let strict = ReadOptions { bad_rows: layerfit::trace::BadRows::Reject, ..ReadOptions::default() };
    read(&[source], &strict, &mut texts, &mut |texts, event| technique.feed(texts, event, &mut out)).unwrap();
    let finished = technique.finish(&mut out);
    assert_eq!(finished.report.records.accounted(), finished.report.records.seen, "every record is accounted for");
    (finished, all)
}

/// Records of call paths in a short form: `x:A(y1:B y2:C)` is method x of A, which calls y1 of B and then y2 of C. Each frame lasts
/// 10 ns before, between and after its calls. A method may be marked: `b:A!branch(1)(…)`, `b:A!loop(…)`.
#[derive(Default)]
struct Records {
    csv: String,
    id: u64,
    time: u64,
}

impl Records {
    fn add(&mut self, context: &str, transaction: &str, path: &str) -> &mut Self {
        self.add_with_params(context, transaction, path, "")
    }

    fn add_with_params(&mut self, context: &str, transaction: &str, path: &str, params: &str) -> &mut Self {
        let mut stack: Vec<(String, String)> = Vec::new();
        for token in tokens(path) {
            self.id += 1;
            self.time += 10;
            let (kind, (component, method), action) = match token.as_str() {
                ")" => ("exit", stack.pop().unwrap(), String::new()),
                token => {
                    let (service, action) = token.split_once('!').unwrap_or((token, ""));
                    let (method, component) = service.split_once(':').unwrap();
                    stack.push((component.to_owned(), method.to_owned()));
                    ("entry", (component.to_owned(), method.to_owned()), action.to_owned())
                }
            };
            let params = if kind == "entry" && stack.len() == 1 { params } else { "" };
            let (id, time) = (self.id, self.time);
            self.csv += &format!("{id},{time},{kind},{component},{method},{context},{transaction},{action},{params}\n");
        }
        self
    }

    fn found(&self, options: &CallPathOptions) -> (Finished, Interactions) {
        found(&format!("{HEADER}{}", self.csv), options)
    }
}

/// Entries as they are, and `)` for each exit.
fn tokens(path: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut open: Vec<bool> = Vec::new();
    let finish = |word: &mut String, tokens: &mut Vec<String>, leaf: bool| {
        if !word.is_empty() {
            tokens.push(std::mem::take(word));
            if leaf {
                tokens.push(")".to_owned());
            }
        }
    };
    let chars: Vec<char> = path.chars().collect();
    for (i, c) in chars.iter().enumerate() {
        match c {
            // The index of a branch belongs to its word.
            '(' if word.ends_with("!branch") => {
                word.push(*c);
                open.push(false);
            }
            '(' => {
                finish(&mut word, &mut tokens, false);
                open.push(true);
            }
            ')' if open.pop() == Some(false) => {
                word.push(*c);
                if chars.get(i + 1) != Some(&'(') {
                    finish(&mut word, &mut tokens, true);
                }
            }
            ')' => {
                finish(&mut word, &mut tokens, true);
                tokens.push(")".to_owned());
            }
            ' ' => finish(&mut word, &mut tokens, true),
            c => word.push(*c),
        }
    }
    finish(&mut word, &mut tokens, true);
    tokens
}

fn service<'f>(finished: &'f Finished, component: &str, method: &str) -> &'f ServiceReport {
    finished.report.services.iter().find(|s| s.component == component && s.method == method).unwrap()
}

/// A flow without its internal actions, in short: `y1 loop{2:20 10:20}[y2] branch{0.3[y1] 0.7[y2]}`.
fn flow(nodes: &[FlowNode]) -> String {
    let shown: Vec<String> = nodes.iter().filter_map(show).collect();
    shown.join(" ")
}

fn show(node: &FlowNode) -> Option<String> {
    let alternative = |a: &Alternative| format!("{:.4}[{}]", a.probability, flow(&a.body));
    Some(match node {
        FlowNode::Internal { name, .. } => return name.clone(),
        FlowNode::Call { method, asynchronous, .. } => format!("{}{method}", if *asynchronous { "async:" } else { "" }),
        FlowNode::Loop { count, body, .. } => {
            let pmf: Vec<String> = count.pmf.0.iter().map(|(value, n)| format!("{value}:{n}")).collect();
            format!("loop{{{}}}[{}]", pmf.join(" "), flow(body))
        }
        FlowNode::Branch { alternatives, .. } => {
            format!("branch{{{}}}", alternatives.iter().map(alternative).collect::<Vec<_>>().join(" "))
        }
    })
}

fn mean_calls(report: &ServiceReport, component: &str, method: &str) -> f64 {
    report.calls.iter().find(|c| c.component == component && c.method == method).map_or(0.0, |c| c.mean)
}

/// Calls of the model that all of it makes, with entries by operation.
fn model_calls(all: Interactions) -> Vec<String> {
    let options = ExtractOptions { merge: MergeKey::Operation, seconds_per_tick: 1e-9, ..ExtractOptions::default() };
    let extraction = to_model("paths", all, &options).unwrap();
    check_valid(&extraction.model);
    calls(&extraction.model)
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < EXACT, "{found} is not {expected}");
}

#[test]
fn vector_1_call_path_of_the_input_section() {
    let mut records = Records::default();
    records.add("c1", "t1", "x:A(y1:B y2:C y2:C)");
    let (finished, all) = records.found(&CallPathOptions::default());
    let components: Vec<_> = finished.report.components.iter().map(|c| (c.name.as_str(), c.provides.clone(), c.requires.clone())).collect();
    let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    assert_eq!(components, [("A", names(&["x"]), names(&["B.y1", "C.y2"])), ("B", names(&["y1"]), vec![]), ("C", names(&["y2"]), vec![])]);
    let x = service(&finished, "A", "x");
    assert_eq!((x.sequences.len(), x.sequences[0].steps.clone()), (1, names(&["B.y1", "C.y2", "C.y2"])));
    assert_eq!(flow(&x.flow), "y1 loop{2:1}[y2]");
    assert_eq!((mean_calls(x, "B", "y1"), mean_calls(x, "C", "y2")), (1.0, 2.0));
    // Seven stretches of 10 ns, of which the calls have one each.
    assert_eq!((x.mean_duration_ns, x.mean_self_ns), (Some(70.0), Some(40.0)));
    assert_eq!(finished.diagnostics.count("inferred_flow"), 1);
    assert_eq!(finished.diagnostics.count("few_samples"), 3);
    assert_eq!(model_calls(all), ["A.x sync 1 B.y1", "A.x sync 2 C.y2", "Client.1 sync 1 A.x"]);
}

#[test]
fn vector_2_branch_and_loop_of_one_service() {
    let mut records = Records::default();
    for i in 0..100 {
        let path = if i < 30 {
            "x:A(y1:B)"
        } else if i < 80 {
            "x:A(y2:B)"
        } else {
            "x:A(y2:B y2:B)"
        };
        records.add(&format!("c{i}"), "", path);
    }
    let (finished, all) = records.found(&CallPathOptions::default());
    let x = service(&finished, "A", "x");
    assert_eq!(flow(&x.flow), "branch{0.3000[y1] 0.7000[loop{1:50 2:20}[y2]]}");
    let [FlowNode::Branch { alternatives, .. }] = x.flow.iter().filter(|n| !matches!(n, FlowNode::Internal { .. })).collect::<Vec<_>>()[..]
    else {
        panic!("{:?}", x.flow)
    };
    let FlowNode::Loop { count, .. } = &alternatives[1].body[0] else { panic!("{alternatives:?}") };
    close(count.pmf.probability(1), 5.0 / 7.0);
    close(count.pmf.probability(2), 2.0 / 7.0);
    close(mean_calls(x, "B", "y1"), 0.3);
    close(mean_calls(x, "B", "y2"), 0.9);
    assert_eq!(finished.diagnostics.count("pmf_collapsed"), 1);
    assert_eq!(model_calls(all), ["A.x sync 0.3 B.y1", "A.x sync 0.9 B.y2", "Client.1 sync 1 A.x"]);
}

#[test]
fn vector_3_a_loop_run_twice_or_ten_times() {
    let mut records = Records::default();
    for i in 0..40 {
        let calls = vec!["y:B"; if i % 2 == 0 { 2 } else { 10 }].join(" ");
        records.add(&format!("c{i}"), "t", &format!("x:A({calls})"));
    }
    let (finished, all) = records.found(&CallPathOptions::default());
    let x = service(&finished, "A", "x");
    assert_eq!(flow(&x.flow), "loop{2:20 10:20}[y]");
    let FlowNode::Loop { count, .. } = &x.flow[0] else { panic!("{:?}", x.flow) };
    close(count.mean, 6.0);
    close(count.coefficient_of_variation, 4.0 / 6.0);
    let collapsed = finished.report.diagnostics.iter().find(|d| d.code == "pmf_collapsed").unwrap();
    assert_eq!(collapsed.examples, ["A.x: mean 6, coefficient of variation 0.667"]);
    assert_eq!(model_calls(all), ["A.x sync 6 B.y", "Client.1 sync 1 A.x"]);
}

fn tuples(tuples: &[(f64, u64, u64)]) -> Dependence {
    let mut dependence = Dependence::default();
    for (value, outcome, n) in tuples {
        (0..*n).for_each(|_| dependence.add(*value, *outcome));
    }
    dependence
}

fn check_conditional(found: &Conditional, from: f64, to: f64, weight: f64, pmf: &[(u64, f64)]) {
    assert_eq!((found.from, found.to, found.outcomes.0.len()), (from, to, pmf.len()));
    close(found.weight, weight);
    pmf.iter().for_each(|(outcome, probability)| close(found.outcomes.probability(*outcome), *probability));
    close(pmf.iter().map(|(_, p)| p).sum(), 1.0);
}

#[test]
fn vector_4_parametric_dependencies_by_value_and_by_bin() {
    let three = tuples(&[(10.0, 1, 3), (10.0, 2, 1), (20.0, 1, 2), (20.0, 2, 2), (40.0, 2, 4)]);
    let values = three.per_value();
    let third = 1.0 / 3.0;
    check_conditional(&values[0], 10.0, 10.0, third, &[(1, 0.75), (2, 0.25)]);
    check_conditional(&values[1], 20.0, 20.0, third, &[(1, 0.5), (2, 0.5)]);
    check_conditional(&values[2], 40.0, 40.0, third, &[(2, 1.0)]);
    // Equidistant: w = 15, so that 10 and 20 are in the first of two bins.
    let bins = three.partition(Binning::Equidistant(2));
    assert_eq!(bins.len(), 2);
    check_conditional(&bins[0], 10.0, 20.0, 2.0 * third, &[(1, 5.0 / 8.0), (2, 3.0 / 8.0)]);
    check_conditional(&bins[1], 40.0, 40.0, third, &[(2, 1.0)]);
    check_conditional(&three.partition(Binning::Equiprobable(1))[0], 10.0, 40.0, 1.0, &[(1, 5.0 / 12.0), (2, 7.0 / 12.0)]);
    let unequal = tuples(&[(1.0, 1, 9), (1.0, 2, 1), (2.0, 2, 2)]);
    let values = unequal.per_value();
    close(values[0].weight, 5.0 / 6.0);
    close(values[1].weight, 1.0 / 6.0);
    check_conditional(&unequal.partition(Binning::Equidistant(1))[0], 1.0, 2.0, 1.0, &[(1, 0.75), (2, 0.25)]);
    // Equal values are never split.
    let equal = unequal.partition(Binning::Equiprobable(5));
    assert_eq!(equal.iter().map(|bin| (bin.from, bin.outcomes.n())).collect::<Vec<_>>(), [(1.0, 10), (2.0, 2)]);
}

#[test]
fn vector_5_demands_by_response_time_ratios_and_by_the_service_demand_law() {
    let check = |u, m, x: &[f64], r: &[f64], expected: &[f64]| {
        let demands = weighted_response_times(u, m, x, r).unwrap();
        demands.iter().zip(expected).for_each(|(found, expected)| close(*found, *expected));
        close(demands.iter().zip(x).map(|(d, x)| d * x).sum(), m * u);
    };
    check(0.6, 1.0, &[20.0, 10.0], &[0.030, 0.060], &[0.015, 0.030]);
    check(0.6, 1.0, &[20.0, 10.0, 5.0], &[0.010, 0.040, 0.120], &[0.005, 0.020, 0.060]);
    check(0.6, 8.0, &[20.0, 10.0, 5.0], &[0.010, 0.040, 0.120], &[0.040, 0.160, 0.480]);
    close(service_demand_law(0.6, 1.0, 20.0).unwrap(), 0.030);
}

#[test]
fn vector_6_overhead_factor() {
    close(overhead_factor((0.54, 36.0), (0.60, 35.0)).unwrap(), 0.875);
    assert_eq!(overhead_factor((0.0, 1.0), (0.5, 1.0)), None);
}

#[test]
fn vector_7_messages_to_other_transactions_of_a_context() {
    let csv = "record_id,time,kind,component,method,context_id,transaction_id,message_id\n\
        1,10,entry,A,a,c,1,\n2,20,entry,B,b,c,1,\n3,30,exit,B,b,c,1,\n4,40,send,M,m,c,1,\n5,50,send,N,n,c,1,m7\n\
        6,55,entry,M,m,c,2,\n7,60,receive,N,n,c,3,m7\n8,61,entry,N,n,c,3,\n9,62,exit,M,m,c,2,\n10,65,exit,A,a,c,1,\n11,90,exit,N,n,c,3,\n";
    let (finished, all) = found(csv, &CallPathOptions::default());
    assert_eq!((finished.report.paths.contexts, finished.report.paths.paths), (1, 3));
    assert_eq!((all.count(InteractionKind::Sync), all.count(InteractionKind::Async)), (2, 2));
    assert_eq!(finished.diagnostics.count("async_unmatched") + finished.diagnostics.count("orphan_exit"), 0);
    assert_eq!(flow(&service(&finished, "A", "a").flow), "b async:m async:n");
    assert_eq!(model_calls(all), ["A.a async 1 M.m", "A.a async 1 N.n", "A.a sync 1 B.b", "Client.1 sync 1 A.a"]);
    // By the context alone the paths would be interleaved.
    let without: String = csv.replace(",c,1,", ",c,,").replace(",c,2,", ",c,,").replace(",c,3,", ",c,,");
    let (merged, _) = found(&without, &CallPathOptions::default());
    assert!(merged.diagnostics.count("truncated_path") + merged.diagnostics.count("orphan_exit") > 0);
}

/// What was sent to the first path of a context is missing as well as what was sent to any other.
#[test]
fn messages_of_which_no_sender_is_recorded_are_told() {
    let csv = "record_id,time,kind,component,method,context_id,transaction_id,message_id\n\
        1,10,receive,A,a,c,1,m\n2,20,entry,A,a,c,1,\n3,30,entry,B,b,c,1,\n4,40,exit,B,b,c,1,\n5,50,exit,A,a,c,1,\n";
    let (finished, all) = found(csv, &CallPathOptions::default());
    assert_eq!(finished.diagnostics.count("async_unmatched"), 1);
    assert_eq!((all.count(InteractionKind::Sync), all.count(InteractionKind::Async)), (1, 1));
    let (finished, _) = found(&csv.replace("1,10,receive,A,a,c,1,m\n", ""), &CallPathOptions::default());
    assert_eq!(finished.diagnostics.count("async_unmatched"), 0);
}

#[test]
fn vector_8_schedule_work_order() {
    let mut records = Records::default();
    for (i, n) in [2, 3, 5, 3].into_iter().enumerate() {
        let parts = vec!["getInventory:mfgSession"; n].join(" ");
        records.add(&format!("c{i}"), "t", &format!("scheduleWorkOrder:WorkOrder(findAssembly:mfgSession {parts})"));
    }
    let (finished, _) = records.found(&CallPathOptions::default());
    let nodes = &service(&finished, "WorkOrder", "scheduleWorkOrder").flow;
    assert_eq!(flow(nodes), "findAssembly loop{2:1 3:2 5:1}[getInventory]");
    let kinds: Vec<&str> = nodes.iter().map(kind_of).collect();
    // Internal actions before the first call, and after the last; in the loop before each call.
    assert_eq!(kinds, ["internal", "call", "loop", "internal"]);
    let FlowNode::Loop { body, .. } = &nodes[2] else { panic!("{nodes:?}") };
    assert_eq!(body.iter().map(kind_of).collect::<Vec<_>>(), ["internal", "call"]);
    assert!(matches!(nodes[0], FlowNode::Internal { mean_ns: 10.0, n: 4, .. }));
}

fn kind_of(node: &FlowNode) -> &'static str {
    match node {
        FlowNode::Internal { .. } => "internal",
        FlowNode::Call { .. } => "call",
        FlowNode::Loop { .. } => "loop",
        FlowNode::Branch { .. } => "branch",
    }
}

#[test]
fn vector_9_usage_scenario_manage_with_marked_actions() {
    let mut records = Records::default();
    for i in 0..10 {
        let cancel = if i < 4 { "cancel:Driver!branch(1)(cancelOrder:Dealer)" } else { "cancel:Driver!branch(2)" };
        let sales = vec!["sale:Driver!iteration(sellInventory:Dealer)"; i % 3].join(" ");
        let sell =
            if i % 2 == 0 { "sell:Driver!branch(2)".to_owned() } else { format!("sell:Driver!branch(1)(sales:Driver!loop({sales}))") };
        let path = format!("manage:Driver(home:Dealer showInventory:Dealer showInventory:Dealer {cancel} {sell})");
        records.add(&format!("c{i}"), "t", &path);
    }
    let (finished, all) = records.found(&CallPathOptions::default());
    let manage = service(&finished, "Driver", "manage");
    // i = 1, 3, 5, 7, 9 sell 1, 0, 2, 1, 0.
    assert_eq!(
        flow(&manage.flow),
        "home loop{2:10}[showInventory] branch{0.4000[cancelOrder] 0.6000[]} branch{0.5000[loop{0:2 1:2 2:1}[sellInventory]] 0.5000[]}"
    );
    assert_eq!(
        model_calls(all),
        [
            "Client.1 sync 1 Driver.manage",
            "Driver.manage sync 0.4 Dealer.cancelOrder",
            "Driver.manage sync 0.4 Dealer.sellInventory",
            "Driver.manage sync 1 Dealer.home",
            "Driver.manage sync 2 Dealer.showInventory",
        ]
    );
}

#[test]
fn dependencies_are_found_in_records() {
    let mut records = Records::default();
    for i in 0..40_u64 {
        let n = 1 + i % 2;
        let calls = vec!["y:B"; n as usize].join(" ");
        let marked = format!("x:A(choose:A!branch({n})({calls}))");
        records.add_with_params(&format!("c{i}"), "t", &marked, &format!("items=[{}]|n={n}", vec!["a"; n as usize].join(" ")));
    }
    let spec = |action, parameter: &str| DependencySpec {
        service: "A.x".to_owned(),
        action,
        parameter: parameter.to_owned(),
        characterisation: layerfit::structure::call_path::Characterisation::Value,
    };
    let dependencies = vec![
        spec(DependentAction::Branch("choose".to_owned()), "n"),
        spec(DependentAction::Calls("B.y".to_owned()), "n"),
        spec(DependentAction::SelfTime, "n"),
    ];
    let (finished, _) = records.found(&CallPathOptions { dependencies, ..CallPathOptions::default() });
    let pmfs: Vec<Vec<Pmf>> =
        finished.report.dependencies.iter().map(|d| d.conditionals.iter().map(|c| c.outcomes.clone()).collect()).collect();
    let only = |value| Pmf([(value, 20)].into_iter().collect());
    assert_eq!(pmfs[0], [only(1), only(2)]);
    assert_eq!(pmfs[1], [only(1), only(2)]);
    // Entry, marked action, one or two calls, and the way back: 40 and 50 ns of self time.
    assert_eq!(pmfs[2], [only(40), only(50)]);
}

#[test]
fn frames_inside_a_component_are_one_occurrence() {
    let mut records = Records::default();
    records.add("c", "t", "x:shop.Cart(inner:shop.Stock(y:db.Store) z:db.Store)");
    let mut options = CallPathOptions::default();
    for pattern in ["shop.*", "db.Store.y", "shp.*", "shop.Cart.y"] {
        let component = if pattern == "db.Store.y" { "db.Store" } else { "Shop" };
        options.boundaries.given.insert(pattern.to_owned(), component.to_owned());
    }
    let (finished, all) = records.found(&options);
    let told: Vec<_> = finished.diagnostics.clone().into_vec().into_iter().filter(|d| d.code == "boundary_of_nothing").collect();
    assert_eq!(told[0].examples, ["shp.*", "shop.Cart.y"]);
    assert_eq!((finished.report.paths.frames, finished.report.paths.occurrences), (4, 3));
    assert_eq!(flow(&service(&finished, "Shop", "x").flow), "y z");
    assert_eq!(service(&finished, "Shop", "inner").frames, 1);
    assert_eq!(model_calls(all), ["Client.1 sync 1 Shop.x", "Shop.x sync 1 db.Store.y", "Shop.x sync 1 db.Store.z"]);
}

#[test]
fn incomplete_paths_are_left_out_and_counted() {
    let mut records = Records::default();
    records.add("good", "t", "x:A(y:B)");
    let tail = "8,200,entry,A,x,bad,t,,\n9,210,entry,B,y,bad,t,,\n10,220,exit,A,x,bad,t,,\n11,230,exit,C,z,odd,t,,\n";
    let csv = format!("{HEADER}{}{tail}", records.csv);
    let (finished, all) = found(&csv, &CallPathOptions::default());
    assert_eq!((finished.diagnostics.count("truncated_path"), finished.diagnostics.count("orphan_exit")), (1, 1));
    assert_eq!((finished.report.paths.contexts, finished.report.paths.partial, all.traces.len()), (3, 1, 1));
    assert_eq!(finished.diagnostics.count("requests_left_out"), 1);
    let (x, y) = (service(&finished, "A", "x"), service(&finished, "B", "y"));
    assert_eq!((x.executions, x.truncated, y.executions, y.truncated), (2, 0, 1, 1));
    let (_, kept) = found(&csv, &CallPathOptions { partial: Partial::Keep, ..CallPathOptions::default() });
    assert_eq!((kept.traces.len(), kept.occurrences.len()), (2, 6));
    // Where nothing else is there, they are used.
    let (only, used) = found(&format!("{HEADER}{tail}"), &CallPathOptions::default());
    assert_eq!((only.diagnostics.count("only_partial_paths"), used.traces.len()), (1, 1));
    assert_eq!(only.diagnostics.count("requests_left_out"), 0);
}

#[test]
fn calls_around_an_entry_tell_the_network_and_stand_for_what_is_not_recorded() {
    let csv = "record_id,time,kind,component,method,context_id\n1,0,entry,api,get,c\n2,10,call,db,read,c\n3,20,entry,db,read,c\n\
        4,50,exit,db,read,c\n5,60,return,db,read,c\n6,70,call,cache,put,c\n7,75,return,cache,put,c\n8,100,exit,api,get,c\n";
    let (finished, all) = found(csv, &CallPathOptions::default());
    // 0–10, 60–70 and 75–100 are the service's own; 20 ns are the network's.
    let self_ns = |component: &str, method: &str| service(&finished, component, method).mean_self_ns.unwrap();
    assert_eq!((self_ns("api", "get"), self_ns("db", "read"), self_ns("cache", "put")), (45.0, 30.0, 5.0));
    let network = finished.report.connections.iter().find(|c| c.to == "db").unwrap().mean_network_ns;
    assert_eq!(network, Some(20.0));
    assert_eq!(model_calls(all), ["Client.1 sync 1 api.get", "api.get sync 1 cache.put", "api.get sync 1 db.read"]);
}

#[test]
fn threads_of_a_context_without_transactions_are_told_apart() {
    let csv = "time,kind,component,method,context_id,thread\n0,entry,A,x,c,1\n5,entry,B,y,c,2\n10,exit,A,x,c,1\n20,exit,B,y,c,2\n";
    let (finished, all) = found(csv, &CallPathOptions::default());
    assert_eq!(finished.diagnostics.count("context_without_txn_async"), 1);
    assert_eq!(finished.diagnostics.count("async_inferred"), 1);
    assert_eq!(finished.diagnostics.count("truncated_path"), 0);
    assert_eq!(all.units.names.iter().collect::<Vec<_>>(), ["Client", "A@1", "B@2"]);
    assert_eq!(model_calls(all), ["A.x async 1 B.y", "Client.1 sync 1 A.x"]);
}

#[test]
fn recordings_weigh_what_they_stand_for_and_probabilities_do_not_change() {
    let mut records = Records::default();
    for i in 0..200 {
        records.add(&format!("c{i}"), "t", if i % 2 == 0 { "x:A(y:B)" } else { "x:A" });
    }
    let slots = vec![Slot { from_ns: 0, until_ns: 100, rate: 0.1 }];
    let (finished, all) = records.found(&CallPathOptions { recorded: 0.5, slots, ..CallPathOptions::default() });
    let weights: Vec<f64> = all.traces.iter().map(|trace| trace.weight).collect();
    assert_eq!((weights[0], weights[199]), (10.0, 2.0));
    assert_eq!(mean_calls(service(&finished, "A", "x"), "B", "y"), 0.5);
    let (sampled, _) = records.found(&CallPathOptions { sample: 0.25, ..CallPathOptions::default() });
    let n = sampled.report.paths.contexts;
    assert_eq!(n, (0..200).filter(|i| is_sampled(&format!("c{i}"), 0.25)).count() as u64);
    assert!((30..70).contains(&n), "{n} of 200");
    assert_eq!(sampled.report.paths.partial, 0, "contexts stay whole");
}

/// A log in the form of Kieker's bookstore example of 2010: execution records in order of their ends.
fn bookstore() -> (String, &'static str) {
    let map = "$0=kieker.common.record.misc.KiekerMetadataRecord\n$1=kieker.common.record.controlflow.OperationExecutionRecord\n";
    let mut log = "$0;-1;1.9-SNAPSHOT;KIEKER;localhost;1;false;0;NANOSECONDS;1\n".to_owned();
    // The classes of traces and their sizes are those of Kieker's own analysis of that log: on which server each of the two
    // catalogs is asked.
    let classes = [(386, "SRV1", "SRV0"), (706, "SRV1", "SRV1"), (187, "SRV0", "SRV0"), (356, "SRV0", "SRV1")];
    let mut trace = 6_488_138_950_668_976_129_i64;
    for (n, first, second) in classes {
        for _ in 0..n {
            let t = 1_283_156_498_770_000_000 + (trace - 6_488_138_950_668_976_129) * 1_000_000;
            let mut record = |operation: &str, from: i64, to: i64, host: &str, eoi: u32, ess: u32| {
                let (tin, tout) = (t + from, t + to);
                log += &format!("$1;{tout};bookstoreTracing.{operation};N/A;{trace};{tin};{tout};{host};{eoi};{ess}\n");
            };
            record("Catalog.getBook(boolean)", 100, 300, first, 1, 1);
            record("Catalog.getBook(boolean)", 450, 700, second, 3, 2);
            record("CRM.getOffers()", 400, 800, "SRV0", 2, 1);
            record("Bookstore.searchBook()", 0, 1000, "SRV0", 0, 0);
            trace += 1;
        }
    }
    (log, map)
}

#[test]
fn kieker_bookstore_counts_are_those_of_kiekers_own_analysis() {
    let (log, map) = bookstore();
    let sources = [Source { name: "log/kieker-1.dat", bytes: log.as_bytes() }, Source { name: "log/kieker.map", bytes: map.as_bytes() }];
    let (mut texts, mut all) = (Texts::default(), Interactions::default());
    let mut technique = technique(&CallPathOptions { quiet_records: 10, ..CallPathOptions::default() });
    let mut out = |batch: Interactions| all.merge(batch);
    let report =
        kieker::read(&sources, &kieker::ReadOptions::default(), &mut texts, &mut |texts, event| technique.feed(texts, event, &mut out))
            .unwrap();
    assert_eq!((report.n_records, report.n_events), (6541, 6540));
    let finished = technique.finish(&mut out);
    let count = |from: Option<&str>, to: &str| {
        finished.report.connections.iter().filter(|c| c.from.as_deref() == from && c.to == to).map(|c| c.calls).sum::<u64>()
    };
    let (bookstore, crm) = ("SRV0::bookstoreTracing.Bookstore", "SRV0::bookstoreTracing.CRM");
    let (catalog_0, catalog_1) = ("SRV0::bookstoreTracing.Catalog", "SRV1::bookstoreTracing.Catalog");
    // Its deployment operation dependency graph.
    assert_eq!(count(None, bookstore), 1635);
    assert_eq!((count(Some(bookstore), catalog_1), count(Some(bookstore), catalog_0), count(Some(bookstore), crm)), (1092, 543, 1635));
    assert_eq!((count(Some(crm), catalog_1), count(Some(crm), catalog_0)), (1062, 573));
    // Its equivalence classes of traces, and its assembly graph.
    let classes: Vec<_> = finished.report.classes.iter().map(|c| (c.n, c.frames, c.depth)).collect();
    assert_eq!(classes, [(706, 4, 2), (386, 4, 2), (356, 4, 2), (187, 4, 2)]);
    let frames: Vec<_> = finished.report.services.iter().map(|s| (s.method.as_str(), s.frames)).collect();
    assert_eq!(frames, [("searchBook()", 1635), ("getOffers()", 1635), ("getBook(boolean)", 3270)]);
    assert_eq!((all.traces.len(), all.occurrences.len()), (1635, 5 * 1635));
    assert_eq!(service(&finished, "bookstoreTracing.Bookstore", "searchBook()").mean_self_ns, Some(400.0));
}
