//! Files that subcommands write: what is wrong with them is said before the work.

use std::{fs, path::Path};

use super::{done, layerfit};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/bookstore/browse-products.log");

fn refused(arguments: &[&str], expected: &str) {
    let (code, data, errors) = layerfit(arguments);
    assert_eq!((code, data.as_str()), (Some(1), ""), "{arguments:?}: {errors}");
    assert!(errors.contains(expected), "{expected}: {errors}");
}

/// None of the inputs is there: the first error is that of the output.
#[test]
fn a_place_where_no_file_can_be_made_is_refused_before_anything_is_read() {
    let fit = ["fit", "m.lqn", "t.csv", "--estimate", "d"];
    let family = ["family", "m.lqn", "n.lqn", "t.csv", "--estimate", "d"];
    let commands: [(&[&str], &[&str]); 8] = [
        (&fit, &["--out", "nowhere/f.json"]),
        (&fit, &["--baselines", "--plot", "nowhere/p.svg"]),
        (&family, &["--out", "nowhere/m.lqnx"]),
        (&family, &["--out-fit", "nowhere/f.json"]),
        (&["track", "m.lqn", "t.csv", "--estimate", "d"], &["--plot", "nowhere/p.svg"]),
        (&["design", "f.json"], &["--plot", "nowhere/p.svg"]),
        (&["simulate", "m.lqn", "--time", "9"], &["--out", "nowhere/x.csv"]),
        (&["simulate", "m.lqn", "--time", "9"], &["--trace", "nowhere/x.log"]),
    ];
    for (command, output) in commands {
        refused(&[command, output].concat(), "error: nowhere/");
    }
    refused(&[&family[..], &["--out", "m.txt"]].concat(), "m.txt: a model is written to a file ending in .lqnx or .json");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    refused(&[&fit[..], &["--out", folder]].concat(), folder);
    refused(&["extract", TRACE, "--from", "same", "--out", "nowhere/m.lqnx"], "error: nowhere/m.lqnx");
    refused(&["usage", TRACE, "--from", "kieker", "--plan", "nowhere/p.jmx"], "error: nowhere/p.jmx");
}

#[test]
fn what_is_read_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let file = |name: &str| {
        fs::write(path(name), name).unwrap();
        path(name)
    };
    let (model, trials, fit, log) = (file("m.json"), file("t.csv"), file("f.json"), file("a.log"));
    // An extraction to compare with is looked at first.
    let old = path("old.json");
    fs::write(&old, done(&["extract", TRACE, "--from", "same", "--format", "json"])).unwrap();
    let again = format!("{}/./m.json", folder.path().display());
    let read = "the command reads this file, which would be overwritten";
    for command in [
        &["fit", &model, &trials, "--estimate", "d", "--out", &model][..],
        &["fit", &model, &trials, "--estimate", "d", "--out", &trials],
        &["fit", &model, &trials, "--estimate", "d", "--out", &again],
        &["fit", &model, &trials, "--estimate", "d", "--baselines", "--plot", &trials],
        &["family", &model, &fit, &trials, "--estimate", "d", "--out-fit", &fit],
        &["track", &model, &trials, "--estimate", "d", "--plot", &model],
        &["design", &fit, "--points", &trials, "--plot", &trials],
        &["simulate", &model, "--time", "9", "--out", &model],
        &["simulate", &model, "--time", "9", "--trace", &model],
        &["extract", &log, "--from", "same", "--compare", &old, "--out", &old],
        &["usage", &log, "--from", "kieker", "--plan", &log],
    ] {
        refused(command, read);
    }
    let both = path("both.json");
    let outputs = ["--out", &both, "--baselines", "--plot", &both];
    refused(&[&["fit", &model, &trials, "--estimate", "d"][..], &outputs].concat(), "--out names this file, too");
    assert!(!Path::new(&both).exists());
    assert_eq!((fs::read_to_string(trials).unwrap(), fs::read_to_string(fit).unwrap()), ("t.csv".to_owned(), "f.json".to_owned()));
}

/// A link is the file that it leads to.
#[cfg(unix)]
#[test]
fn links_to_what_is_read_are_refused_and_others_lead_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("m.lqn"), "P 0 p ps f -1 T 0 t server n get -1 ps -1 E 0 a get 1 s get .1 -1 -1").unwrap();
    std::os::unix::fs::symlink("m.lqn", path("link")).unwrap();
    std::os::unix::fs::symlink("new.csv", path("dangling")).unwrap();
    let simulate = |out: &str| layerfit(&["simulate", &path("m.lqn"), "--time", "100", "--out", out]);
    let (code, _, errors) = simulate(&path("link"));
    assert_eq!(code, Some(1));
    assert!(errors.contains("the command reads this file"), "{errors}");
    let (code, _, errors) = simulate(&path("dangling"));
    assert_eq!(code, Some(0), "{errors}");
    assert!(fs::symlink_metadata(path("dangling")).unwrap().is_symlink());
    assert!(fs::read_to_string(path("new.csv")).unwrap().starts_with("trial,"));
}

/// A fit is printed where there are no black boxes to put beside it.
#[test]
fn a_fit_without_baselines_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let model = "P 0 p pc i p ps f -1\nT 0 t users r use -1 pc z 1 m $users t server n get -1 ps -1\n\
                 E 0 s use 0 -1 y use get 1 -1 s get $demand -1 -1\n";
    fs::write(path("m.lqn"), model).unwrap();
    fs::write(path("t.csv"), "$users,throughput(users)\n3,1.9\n3,2.0\n3,2.1\n").unwrap();
    let (code, report, errors) = layerfit(&["fit", &path("m.lqn"), &path("t.csv"), "--estimate", "demand=0.4", "--baselines"]);
    assert_eq!(code, Some(1));
    assert!(report.contains("demand"), "{report}");
    assert!(errors.contains("without baselines: no controlled value takes at least two values in the trials"), "{errors}");
}
