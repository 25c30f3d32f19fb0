//! A pool of threads before a database: whole numbers where nothing near the start tells of them, ties, and what a report says of its data.

use layerfit::{
    fit::{Estimated, FitError, Method, Problem, ProblemError, Trials, Weighting, problem::ErrorScale, report::ParameterStatus},
    model::{
        Bindings,
        format::{Format, parse},
    },
};

use super::three_queue::fitted;

const MODEL: &str = r#"G "pool" 1e-9 100 1 0.9 -1
P 0
 p desk i
 p app f m $cores
 p db f
-1
T 0
 t Users r cycle -1 desk z $think m $users
 t web n we -1 app m $threads
 t dbt n de -1 db
-1
E 0
 s cycle 0 -1
 y cycle we 1 -1
 s we $appD -1
 y we de 2 -1
 s de $dbD -1
-1
"#;

/// What `simulate --trials users=1..25:4 --time 3000` measured with four threads on two cores, think time 1, `appD` .1 and `dbD` .03.
const TRIALS: &str = "\
$users,throughput(Users),stderr(throughput(Users)),response_time(Users),stderr(response_time(Users)),utilization(app),stderr(utilization(app)),utilization(web),stderr(utilization(web))
1,0.844667,0.0179389,0.153426,0.00565882,0.0815316,0.00275959,0.129594,0.00440055
5,4.25188,0.0312438,0.175651,0.0032004,0.423868,0.00603595,0.746686,0.0118789
9,7.49896,0.0439937,0.206703,0.00325628,0.752247,0.00852099,1.51439,0.0191869
13,10.2307,0.0580174,0.271819,0.00602275,1.03358,0.00609203,2.4234,0.0263568
17,12.2873,0.0552878,0.387816,0.00721892,1.24899,0.00667222,3.26568,0.0242933
21,13.5863,0.0830219,0.555093,0.00949747,1.36398,0.00447736,3.75506,0.0139886
25,13.9173,0.107998,0.79174,0.0145635,1.3952,0.00542739,3.95176,0.00623111
";

fn problem(csv: &str) -> Problem {
    Problem {
        model: parse(MODEL, Format::LqnText).unwrap(),
        estimate: ["threads", "appD", "dbD"].map(Estimated::new).into(),
        assumed: [("think", 1.0), ("cores", 2.0)].into_iter().collect::<Bindings>(),
        trials: Trials::from_csv(csv.as_bytes()).unwrap(),
        weighting: Weighting::Auto,
        confidence: 0.95,
        method: Method::default(),
    }
}

/// With more threads than users nothing tells of one more or less; the search looks further.
#[test]
fn a_whole_number_is_found_from_where_nothing_tells_of_it() {
    for start in [None, Some(1.0), Some(16.0), Some(25.0), Some(50.0), Some(1000.0)] {
        let mut asked = problem(TRIALS);
        asked.estimate[0].start = start;
        let fit = fitted(&asked).unwrap();
        assert_eq!(fit.parameters["threads"].estimate, 4.0, "{start:?}: {:?}", fit.whole_numbers);
        assert!((fit.parameters["appD"].estimate - 0.1).abs() < 0.01, "{:?}", fit.parameters);
    }
}

/// A bound that was given stops the search for a whole number, and is told as for any other.
#[test]
fn a_whole_number_on_a_bound_is_told() {
    let mut asked = problem(TRIALS);
    (asked.estimate[0].start, asked.estimate[0].min) = (Some(6.0), Some(6.0));
    let fit = fitted(&asked).unwrap();
    let threads = &fit.parameters["threads"];
    assert_eq!((threads.estimate, threads.status, threads.lower), (6.0, ParameterStatus::AtLowerBound, None), "{threads:?}");
}

#[test]
fn ties_that_would_have_no_effect_are_refused() {
    let mut asked = problem(TRIALS);
    let mut refused = |name: &str, expression: &str| match asked.tie(name, expression) {
        Err(ProblemError::Tie { reason, .. }) => reason,
        other => format!("{other:?}"),
    };
    assert_eq!(refused("appD", "$dbD * 3"), "it is estimated itself");
    assert_eq!(refused("think", "$dbD * 3"), "it is given a value");
    assert_eq!(refused("users", "$dbD * 3"), "the trials control it");
    assert!(refused("nope", "$dbD * 3").contains("NotInModel"));
    asked.estimate.retain(|e| e.name != "appD");
    assert!(asked.tie("appD", "$appD * 3").unwrap_err().to_string().contains("mentions it"));
    asked.tie("appD", "$dbD * 3").unwrap();
    assert_eq!(fitted(&asked).unwrap().derived.keys().collect::<Vec<_>>(), ["appD"]);
}

/// Milliseconds in the place of seconds are seen, though they are fitted with narrow intervals.
#[test]
fn values_in_another_unit_are_told() {
    let rows = TRIALS.lines().skip(1).map(|line| {
        let cells: Vec<f64> = line.split(',').map(|c| c.parse().unwrap()).collect();
        format!("{},{},{}\n", cells[0], cells[1], 1000.0 * cells[3])
    });
    let csv = format!("$users,throughput(Users),response_time(Users)\n{}", rows.collect::<String>());
    let mut asked = problem(&csv);
    asked.estimate[0].start = Some(4.0);
    let fit = fitted(&asked).unwrap();
    assert!(fit.notes.iter().any(|n| n.contains("another unit")), "{:?}", fit.notes);
    let plain = fitted(&problem(TRIALS)).unwrap();
    assert!(plain.notes.iter().all(|n| !n.contains("unit")), "{:?}", plain.notes);
}

#[test]
fn errors_to_be_known_that_are_not_given_and_times_of_zero_are_told() {
    let mut asked = problem("$users,response_time(Users)\n1,0\n5,0.17\n9,0.2\n17,0.39\n25,0.79\n");
    asked.estimate.retain(|e| e.name != "threads");
    asked.assumed.set("threads", 4.0);
    asked.method.error_scale = ErrorScale::Known;
    let fit = fitted(&asked).unwrap();
    for said in ["response_time(Users) is 0, as if nothing was served", "their scale is estimated from the residuals all the same"] {
        assert!(fit.notes.iter().any(|n| n.contains(said)), "{:?}", fit.notes);
    }
}

/// A given value with which the model is none is told, and not that there is no solution.
#[test]
fn given_values_that_cannot_be_are_refused() {
    let mut asked = problem(TRIALS);
    asked.assumed.set("cores", 2.5);
    assert!(matches!(fitted(&asked), Err(FitError::Problem(ProblemError::AssumedValue { .. }))));
}
