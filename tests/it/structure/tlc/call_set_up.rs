//! The case study of TLC, and services that ask others by messages, in the shape of its tasks.

use indexmap::IndexMap;
use layerfit::{
    structure::{
        Demands, ExtractOptions, MergeKey,
        tlc::{Template, TlcOptions},
    },
    trace::angio::{AngioEvent, AngioKind},
};

use super::{check_calls, model_of};

/// A run of the call set-up of section 7, in its facts: every task of a pipeline hands the request on; the entry of ServCntrl1
/// is invoked twice a scenario and asks NumTrans1 once, by messages.
fn call_set_up() -> Vec<AngioEvent<'static>> {
    let mut writer = Writer::default();
    writer.begin("Terminal1");
    for asks in [true, false] {
        writer.call("UserInt1", "dial");
        writer.hand_on("VoiceCall1", "set_up");
        writer.hand_on("ServMux1", "route");
        writer.hand_on("ServCntrl1", "serve");
        if asks {
            writer.ask("NumTrans1", "translate");
        }
        writer.hand_on("SwitchFabric1", "connect");
        writer.reply("Terminal1");
        writer.call("UserInt2", "ring");
        writer.hand_on("VoiceCall2", "set_up");
        writer.hand_on("ServMux2", "route");
        writer.hand_on("ServCntrl2", "serve");
        writer.hand_on("FabricCntrl1", "connect");
        writer.reply("Terminal1");
    }
    writer.end();
    writer.events
}

/// Writes events of one scenario, one at a time.
#[derive(Default)]
struct Writer {
    events: Vec<AngioEvent<'static>>,
    counters: IndexMap<&'static str, u64>,
    task: &'static str,
    /// Where the thread is at, by thread.
    nodes: IndexMap<u64, u32>,
    thread: u64,
}

impl Writer {
    fn write(&mut self, thread: u64, kind: AngioKind, task: &'static str) -> &mut AngioEvent<'static> {
        let node = self.nodes.entry(thread).or_default();
        *node += 1;
        let counter = self.counters.entry(task).or_default();
        *counter += 1;
        self.events.push(AngioEvent::new("call set-up", thread, *node, kind, task, *counter));
        self.events.last_mut().unwrap()
    }

    fn begin(&mut self, task: &'static str) {
        (self.thread, self.task) = (1, task);
        self.write(1, AngioKind::Begin, task);
    }

    fn work(&mut self) {
        self.write(self.thread, AngioKind::Activity, self.task).demand = Some(1000.0);
    }

    fn call(&mut self, task: &'static str, operation: &'static str) {
        self.write(self.thread, AngioKind::Activity, self.task);
        self.task = task;
        let accepted = self.write(self.thread, AngioKind::Activity, task);
        (accepted.operation, accepted.demand) = (operation, Some(1000.0));
    }

    fn hand_on(&mut self, task: &'static str, operation: &'static str) {
        let child = self.nodes.keys().max().unwrap() + 1;
        self.write(self.thread, AngioKind::Fork { child_thread: child }, self.task);
        self.write(self.thread, AngioKind::End, self.task);
        (self.thread, self.task) = (child, task);
        self.write(child, AngioKind::Begin, task).operation = operation;
        if !operation.is_empty() {
            self.work();
        }
    }

    /// A request and its reply by messages; the asking task does nothing between.
    fn ask(&mut self, task: &'static str, operation: &'static str) {
        let asking = self.task;
        self.hand_on(task, operation);
        self.hand_on(asking, "");
    }

    fn reply(&mut self, task: &'static str) {
        self.hand_on(task, "");
    }

    fn end(&mut self) {
        self.write(self.thread, AngioKind::End, self.task);
    }
}

/// The facts of section 7: two pipelines of forwarding entries, each entered twice a scenario, and a mean of 0.5 requests to
/// the number translation. The forwarder that asks by messages goes on in another thread, where Table 1 would not find it.
#[test]
fn call_set_up_case() {
    let options = ExtractOptions { merge: MergeKey::Operation, demands: Demands::SelfTimes, ..ExtractOptions::default() };
    let (found, report) = model_of(&call_set_up(), &TlcOptions::default(), &options);
    check_calls(
        &found,
        &[
            "call_set-up.1 sync 1 Terminal1.1",
            "Terminal1.1 sync 2 UserInt1.dial",
            "UserInt1.dial forward 1 VoiceCall1.set_up",
            "VoiceCall1.set_up forward 1 ServMux1.route",
            "ServMux1.route forward 1 ServCntrl1.serve",
            "ServCntrl1.serve sync 0.5 NumTrans1.translate",
            "ServCntrl1.serve forward 1 SwitchFabric1.connect",
            "Terminal1.1 sync 2 UserInt2.ring",
            "UserInt2.ring forward 1 VoiceCall2.set_up",
            "VoiceCall2.set_up forward 1 ServMux2.route",
            "ServMux2.route forward 1 ServCntrl2.serve",
            "ServCntrl2.serve forward 1 FabricCntrl1.connect",
        ],
    );
    assert_eq!((report.events.unmatched, report.templates[&Template::Forwarding], report.templates[&Template::AsyncRpc]), (0, 4, 1));
    let entry = &found.model.task("NumTrans1").unwrap().entries[0];
    assert_eq!(entry.phases[0].activity.host_demand.to_string(), "0.001");
}

/// A service that asks twice by messages and then replies, to a sender that waits in either way: its threads are followed.
#[test]
fn services_that_ask_twice_by_messages() {
    for blocking in [true, false] {
        let mut writer = Writer::default();
        writer.begin("A");
        if blocking {
            writer.call("B", "serve")
        } else {
            writer.hand_on("B", "serve")
        }
        writer.ask("C", "one");
        writer.ask("C", "two");
        writer.work();
        writer.reply("A");
        writer.work();
        writer.end();
        let options = ExtractOptions { merge: MergeKey::Operation, ..ExtractOptions::default() };
        let (found, report) = model_of(&writer.events, &TlcOptions::default(), &options);
        check_calls(&found, &["call_set-up.1 sync 1 A.1", "A.1 sync 1 B.serve", "B.serve sync 1 C.one", "B.serve sync 1 C.two"]);
        assert_eq!((report.events.unmatched, report.templates[&Template::AsyncRpc]), (0, 2));
    }
}
