//! The layered example of M. Woodside, SIPEW 2008, section 4, in the reconstruction of its figure 7, with trials made by the
//! analytic solver itself and seeded noise, so that an estimator is tested and not the solver's approximation.

use layerfit::{
    fit::{Estimated, Measured, Method, Problem, Trial, Trials, Weighting},
    model::{
        Activity, Bindings, Call, CallKind, Entry, Measure, Model, Number, Phase, Processor, ProcessorScheduling, Task, TaskScheduling,
    },
    solve::{self, SolveOptions},
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Who calls the directory.
#[derive(Clone, Copy, PartialEq)]
pub enum Variant {
    /// The application, in its first phase; utilizations as printed.
    L,
    /// The web server.
    S,
}

/// True parameters of variant S; the web server's demand is 0.4 in variant L.
pub const TRUE: [(&str, f64); 7] =
    [("dirD", 0.1), ("WSD", 0.6), ("appDph1", 0.2), ("appDph2", 0.2), ("dbD", 0.1), ("mApp", 1.0), ("wsThreads", 3.0)];

/// The model with its seven parameters, `$users` and `$think`.
pub fn model(variant: Variant) -> Model {
    let parameter = |name: &str| Number::Parameter(name.into());
    let call = |dest: &str, mean: f64| Call { kind: CallKind::Sync, dest: dest.into(), mean: Number::Value(mean) };
    let phase = |number: u8, name: &str, demand: Number, calls: Vec<Call>| {
        let mut activity = Activity::new(name, demand);
        activity.calls = calls;
        Phase { phase: number, activity }
    };
    let task = |name: &str, processor: &str, entry: &str, phases: Vec<Phase>| {
        let mut task = Task::new(name, processor);
        let mut it = Entry::new(entry);
        it.phases = phases;
        task.entries.push(it);
        task
    };
    let (to_app, to_db, from_ws, from_app) = match variant {
        Variant::L => (0.65, [2.0, 0.4], 0.0, 0.28),
        Variant::S => (1.0, [1.2, 1.2], 0.2, 0.0),
    };
    let mut users = task("Users", "UsersP", "users", vec![phase(1, "users_ph1", Number::Value(0.0), vec![call("wsOp", 1.0)])]);
    users.scheduling = TaskScheduling::Ref;
    (users.multiplicity, users.think_time) = (parameter("users"), parameter("think"));
    let mut ws_calls = vec![call("appOp", to_app)];
    let mut app_calls = vec![call("dbOp", to_db[0])];
    match variant {
        Variant::L => app_calls.push(call("dirOp", from_app)),
        Variant::S => ws_calls.push(call("dirOp", from_ws)),
    }
    let mut ws = task("WS", "WSP", "wsOp", vec![phase(1, "wsOp_ph1", parameter("WSD"), ws_calls)]);
    ws.multiplicity = parameter("wsThreads");
    let second = phase(2, "appOp_ph2", parameter("appDph2"), vec![call("dbOp", to_db[1])]);
    let mut app = task("App", "AppP", "appOp", vec![phase(1, "appOp_ph1", parameter("appDph1"), app_calls), second]);
    app.multiplicity = parameter("mApp");
    let dir = task("Dir", "AppP", "dirOp", vec![phase(1, "dirOp_ph1", parameter("dirD"), vec![])]);
    let db = task("DB", "DBP", "dbOp", vec![phase(1, "dbOp_ph1", parameter("dbD"), vec![])]);
    let mut processors = vec![Processor::new("UsersP"), Processor::new("WSP"), Processor::new("AppP"), Processor::new("DBP")];
    processors[0].scheduling = ProcessorScheduling::Inf;
    processors[1].multiplicity = Number::Value(2.0);
    Model { name: "woodside".into(), processors, tasks: vec![users, ws, app, dir, db], ..Model::default() }
}

/// True values at `users` customers, with the web server's demand.
pub fn values(users: f64, wsd: f64) -> Bindings {
    let mut values: Bindings = TRUE.into_iter().collect();
    [("users", users), ("think", 5.0), ("WSD", wsd)].into_iter().for_each(|(n, v)| values.set(n, v));
    values
}

/// Delays and throughput.
pub const DELAYS: [&str; 6] = [
    "response_time(Users)",
    "throughput(Users)",
    "response_time(appOp)",
    "response_time(dbOp)",
    "service_time(wsOp,1)",
    "service_time(appOp,2)",
];
/// Utilizations.
pub const UTILIZATIONS: [&str; 4] = ["utilization(WSP)", "utilization(AppP)", "utilization(DBP)", "utilization(Dir)"];

/// Trials at 5 to 50 users, made by the solver, each value with an independent normal error of `error` times itself.
pub fn trials(variant: Variant, measures: &[&str], error: f64, seed: u64) -> Trials {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let measures: Vec<Measure> = measures.iter().map(|m| m.parse().unwrap()).collect();
    let trial = |n: u32| {
        let users = f64::from(5 * n);
        let wsd = if variant == Variant::L { 0.4 } else { 0.6 };
        let solved = solve::sensitivities(&model(variant), &values(users, wsd), &[], &measures, &SolveOptions::default()).unwrap();
        let mut noisy = |v: f64| -> f64 {
            let z: f64 = StandardNormal.sample(&mut rng);
            v * (1.0 + error * z)
        };
        let cell = |v: &f64| Some(Measured { value: noisy(*v), std_error: Some(error.max(1e-9) * v), weight: None });
        Trial {
            id: n.to_string(),
            controlled: [("users", users), ("think", 5.0)].into_iter().collect(),
            measured: solved.values.iter().map(cell).collect(),
            ..Trial::default()
        }
    };
    let trials = (1..=10).map(trial).collect();
    Trials { measures, trials }
}

/// All seven parameters, to be estimated from `trials`.
pub fn problem(variant: Variant, trials: Trials, threads: f64) -> Problem {
    let start = |name: &str| match name {
        "mApp" => 1.0,
        "wsThreads" => threads,
        _ => 0.3,
    };
    Problem {
        model: model(variant),
        estimate: TRUE.iter().map(|(name, _)| Estimated::new(*name).starting_at(start(name))).collect(),
        assumed: Bindings::new(),
        trials,
        weighting: Weighting::Auto,
        confidence: 0.95,
        method: Method::default(),
    }
}

/// Seven parameters of variant S from delays and utilizations with errors of 0.5 %, started with two threads.
pub fn seven_parameters() -> Problem {
    let measures: Vec<&str> = DELAYS.into_iter().chain(UTILIZATIONS).collect();
    problem(Variant::S, trials(Variant::S, &measures, 0.005, 8), 2.0)
}
