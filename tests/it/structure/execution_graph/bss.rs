//! Traces of the shape of the Building Security System (section 6 of the paper): acquiring and storing of video, and access
//! control, over shared DB and Disk. The paper's figures with calls and demands are not available: numbers are made up.

use layerfit::structure::ExtractOptions;

use super::{
    ClassKind, ExecutionGraphOptions, ExecutionGraphs, Flags, Found, Interactions, MergeKey, OwnedEvent, calls, find, finish, nest,
    operation, parse_resources, reference_tasks, to_model,
};

/// The next of a sequence of numbers that look random (xorshift).
pub fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 11
}

fn below(state: &mut u64, n: u64) -> usize {
    (next(state) % n) as usize
}

fn video(number: u64, state: &mut u64) -> Vec<OwnedEvent> {
    let image = "Se vidCtrl.cycle,Re AcqProc.acquire,Se AcqProc.acquire,Re Buffer.get,Sa Buffer.get,Ra AcqProc.acquire,\
                 Fo AcqProc.acquire(N),Sa AcqProc.acquire,Ra vidCtrl.cycle,";
    let store = "Be StoreProc.store,Se StoreProc.store,Re DB.write,Se DB.write,Re Disk.write,Sa Disk.write,Ra DB.write,Sa DB.write,\
                 Ra StoreProc.store,Se StoreProc.store,Re Buffer.release,Sa Buffer.release,Ra StoreProc.store,En StoreProc.store";
    let n_images = 1 + below(state, 4);
    let images: String = (0..n_images).map(|image_number| image.replace('N', &(image_number + 2).to_string())).collect();
    let first = format!("Ex vidCtrl.cycle,{images}En vidCtrl.cycle");
    let threads: Vec<&str> = [first.as_str()].into_iter().chain(std::iter::repeat_n(store, n_images)).collect();
    operation(number, &threads)
}

fn access(number: u64, state: &mut u64) -> Vec<OwnedEvent> {
    let reads = "Se AccCtrl.admit,Re DB.read,Se DB.read,Re Disk.read,Sa Disk.read,Ra DB.read,Sa DB.read,Ra AccCtrl.admit,"
        .repeat(1 + below(state, 2));
    let first = format!(
        "Ex User.card,Se User.card,Re SCR.read,Se SCR.read,Re AccCtrl.admit,{reads}Se AccCtrl.admit,Re DLA.open,Sa DLA.open,Ra SCR.read,\
         Sa SCR.read,Ra User.card,En User.card"
    );
    operation(number, &[&first])
}

fn trace(seed: u64, n_operations: u64) -> Vec<OwnedEvent> {
    let mut state = seed;
    (0..n_operations).flat_map(|number| if number % 3 == 0 { access(number, &mut state) } else { video(number, &mut state) }).collect()
}

fn shuffled(mut events: Vec<OwnedEvent>, seed: u64) -> Vec<OwnedEvent> {
    let mut state = seed;
    for at in (1..events.len()).rev() {
        events.swap(at, below(&mut state, at as u64 + 1));
    }
    events
}

const TASKS: [&str; 10] = ["AccCtrl", "AcqProc", "Buffer", "DB", "DLA", "Disk", "SCR", "StoreProc", "User", "vidCtrl"];

/// What the paper says of the architecture found.
#[test]
fn bss_facts() {
    let found = find(&trace(7, 300), ExecutionGraphOptions::default());
    let mut tasks: Vec<&str> = found.report.entries.iter().map(|entry| entry.task.as_str()).collect();
    tasks.dedup();
    assert_eq!(tasks, TASKS);
    let model = to_model("bss", found.interactions.clone(), &ExtractOptions::default()).unwrap().model;
    let mut references = reference_tasks(&model);
    references.sort_unstable();
    assert_eq!(references, ["User", "vidCtrl"]);
    let others: Vec<&super::InteractionClass> =
        found.report.classes.iter().filter(|class| !matches!(class.kind, ClassKind::Sync | ClassKind::Forward)).collect();
    assert_eq!(others.len(), 1, "exactly one interaction is neither RPC nor Forward");
    assert_eq!((others[0].from[0].as_str(), others[0].to[0].as_str(), others[0].kind), ("AcqProc", "StoreProc", ClassKind::Async));
    for shared in ["DB", "Disk"] {
        let requesters = found.report.classes.iter().filter(|class| class.to[0] == shared).count();
        assert_eq!(requesters, 2, "{shared} is shared by both scenarios");
    }
    assert_eq!(model.validate().len(), 0, "{:?}", model.validate());
}

/// "Application of the method on different event-traces extracted from same prototype has always led to the exact same
/// architecture", and the order of the file does not matter.
#[test]
fn bss_same_architecture_from_every_trace_and_order() {
    let architecture =
        |found: &Found| found.report.classes.iter().map(|c| (c.from.clone(), c.to.clone(), c.kind, c.phase)).collect::<Vec<_>>();
    let first = find(&trace(7, 200), ExecutionGraphOptions::default());
    for seed in [8, 9, 10] {
        assert_eq!(architecture(&find(&trace(seed, 200), ExecutionGraphOptions::default())), architecture(&first));
        let other = find(&shuffled(trace(7, 200), seed), ExecutionGraphOptions::default());
        assert_eq!(other.report, first.report);
        assert_eq!(model_of(other), model_of(find(&trace(7, 200), ExecutionGraphOptions::default())));
    }
}

/// Calls of the model, and its tasks with their entries.
fn model_of(found: Found) -> (Vec<String>, Vec<String>) {
    let options = ExtractOptions { merge: MergeKey::Operation, ..ExtractOptions::default() };
    let model = to_model("bss", found.interactions, &options).unwrap().model;
    let mut entries: Vec<String> =
        model.tasks.iter().flat_map(|task| task.entries.iter().map(move |entry| format!("{} {}", task.name, entry.name))).collect();
    entries.sort();
    let rounded = |call: String| {
        let words: Vec<String> =
            call.split(' ').map(|word| word.parse::<f64>().map_or(word.to_owned(), |mean| format!("{mean:.12}"))).collect();
        words.join(" ")
    };
    (calls(&model).into_iter().map(rounded).collect(), entries)
}

/// Events dealt to two halves in any way, and the halves merged, are as one whole.
#[test]
fn halves_merged_are_as_one_whole() {
    let mut events = trace(11, 120);
    let mut state = 5;
    for number in 1000..1100 {
        let choices: Vec<u8> = (0..100).map(|_| next(&mut state) as u8).collect();
        events.extend(nest(number, &choices, Flags::Said).events);
    }
    let whole = find(&events, ExecutionGraphOptions::default());
    for seed in 1..9 {
        let mut state = seed;
        let mut halves = [ExecutionGraphs::new(ExecutionGraphOptions::default()), ExecutionGraphs::new(ExecutionGraphOptions::default())];
        let mut batches: Vec<Interactions> = Vec::new();
        for event in shuffled(events.clone(), seed) {
            let half = if seed % 2 == 0 { below(&mut state, 2) } else { usize::from(below(&mut state, 20) == 0) };
            halves[half].feed(&event.event(), &mut |batch| batches.push(batch));
        }
        let [mut one, other] = halves;
        one.merge(other);
        let merged = finish(one, batches);
        assert_eq!(merged.report, whole.report);
        assert_eq!(merged.shown(), whole.shown());
        assert_eq!(merged.interactions.traces.len(), whole.interactions.traces.len());
    }
    assert!(whole.batches >= 1);
}

/// The threads of the paper, as the resource database says them.
#[test]
fn bss_resources() {
    let text = "[task.User]\nprocessor = \"Users\"\nrate = 1\n[task.vidCtrl]\nprocessor = \"Cameras\"\nrate = 2\n\
                [task.Buffer]\nprocessor = \"App\"\nthreads = 15\n[task.StoreProc]\nprocessor = \"App\"\nthreads = 3\n\
                [task.AcqProc]\nprocessor = \"App\"\nthreads = 12\n[task.DB]\nprocessor = \"DBP\"\nthreads = 10\n\
                [task.Disk]\nprocessor = \"DiskP\"\nthreads = 2\n[task.SCR]\nprocessor = \"App\"\nthreads = 50\n\
                [task.AccCtrl]\nprocessor = \"App\"\nthreads = 60\n[task.DLA]\nprocessor = \"App\"\nthreads = 50\n";
    let hints = parse_resources("bss.toml", text).unwrap();
    let found = find(&trace(7, 30), ExecutionGraphOptions::default());
    let mut diagnostics = super::Diagnostics::default();
    found.report.note_resources(&hints, &mut diagnostics);
    assert_eq!((diagnostics.count("missing_resource_info"), diagnostics.count("unknown_resource")), (0, 0));
}
