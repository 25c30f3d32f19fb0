//! Small models, one for every feature of the language, in its text grammar.

use layerfit::model::{Model, lqn_text};

/// Name and text of each model.
pub const MODELS: &[(&str, &str)] = &[
    (
        "three phases",
        "G \"three phases\" 1e-5 50 0 0.9 -1 P 0 p DD i p SS f -1 T 0 t cc r cc -1 DD z 2 m 4 t ss n ss -1 SS -1
         E 0 s cc 0.1 -1 y cc ss 2.5 -1 s ss 0.05 0.02 0.03 -1 -1",
    ),
    (
        "calls from second phases",
        "P 0 p DD i p SS f p UU f -1 T 0 t cc r cc -1 DD z 1 m 3 t ss n ss -1 SS t uu n uu -1 UU m 2 -1
         E 0 s cc 0 -1 y cc ss 1 -1 s ss 0.1 0.2 -1 y ss uu 0.5 1.25 -1 s uu 0.1 -1 -1",
    ),
    (
        "asynchronous calls",
        "P 0 p DD i p SS f p UU f -1 T 0 t cc r cc -1 DD z 4 m 2 t ss n ss -1 SS t uu n uu -1 UU -1
         E 0 s cc 0.2 -1 y cc ss 1 -1 s ss 0.3 -1 z ss uu 2 -1 s uu 0.2 0.1 -1 -1",
    ),
    (
        "forwarding along a chain",
        "P 0 p DD i p AA f p BB f p CC f -1 T 0 t cc r cc -1 DD z 1 m 3 t aa n aa -1 AA t bb n bb -1 BB t dd n dd -1 CC m 2 -1
         E 0 s cc 0 -1 y cc aa 1 -1 s aa 0.1 0.1 -1 F aa bb 0.7 -1 s bb 0.2 -1 F bb dd 0.5 -1 s dd 0.3 -1 -1",
    ),
    (
        "open arrivals",
        "P 0 p SS f p UU f -1 T 0 t ss n ss vv -1 SS m 2 t uu n uu -1 UU -1
         E 0 a ss 0.5 s ss 0.4 -1 y ss uu 1 -1 a vv 0.25 s vv 0.3 0.2 -1 s uu 0.5 -1 -1",
    ),
    (
        "open arrivals at threads that meet",
        "P 0 p SS f m 4 p UU f p WW s 0.1 -1 T 0 t ss n ss vv -1 SS m 3 t uu n uu -1 UU m 2 t ww i ww -1 WW -1
         E 0 a ss 0.6 s ss 0.1 -1 y ss uu 1.5 -1 a vv 0.2 s vv 0.2 -1 y vv uu 3 -1 y vv ww 1 -1 s uu 0.3 -1 s ww 0.5 -1 -1",
    ),
    (
        "a pool below a pool",
        "P 0 p DD i p AA i p BB f m 2 p CC s 0.1 -1 T 0 t cc r cc -1 DD z 1 m 6 t aa n aa -1 AA m 4 t bb n bb -1 BB m 3 t ee n ee -1 CC m 2 -1
         E 0 s cc 0.1 -1 y cc aa 1 -1 s aa 0.2 -1 y aa bb 1.5 -1 s bb 0.4 -1 y bb ee 0.5 -1 s ee 0.3 -1 -1",
    ),
    (
        "an entry of two callers",
        "P 0 p DD i p AA f p BB f p SS f -1 T 0 t cc r cc -1 DD z 1 m 4 t aa n aa -1 AA t bb n bb -1 BB m 2 t ss i ss -1 SS -1
         E 0 s cc 0.1 -1 y cc aa 1 -1 y cc bb 0.5 -1 s aa 0.1 -1 y aa ss 2 -1 s bb 0.3 -1 y bb ss 1 -1 s ss 0.2 -1 -1",
    ),
    (
        "an entry of two callers, and what it calls",
        "P 0 p DD i p AA f p BB f p SS f p EE f -1 T 0 t cc r cc -1 DD z 1 m 4 t aa n aa -1 AA t bb n bb -1 BB m 2 t ss n ss -1 SS m 4 t ee n ee -1 EE m 9 -1
         E 0 s cc 0.1 -1 y cc aa 1 -1 y cc bb 0.5 -1 s aa 0.1 -1 y aa ss 2 -1 s bb 0.3 -1 y bb ss 1 -1 s ss 0.2 -1 y ss ee 0.7 -1 s ee 0.2 -1 -1",
    ),
    (
        "unlike classes before a pool above a pool",
        "P 0 p DD i p AA i p BB f m 2 -1 T 0 t cc r cc -1 DD z 2 m 4 t ff r ff -1 DD z 0.5 m 2 t aa n aa ab -1 AA m 3 t bb n bb -1 BB m 2 -1
         E 0 s cc 0.1 -1 y cc aa 1 -1 s ff 0.1 -1 y ff ab 1 -1 s aa 0.2 -1 y aa bb 1.5 -1 s ab 0.1 -1 y ab bb 0.8 -1 s bb 0.3 -1 -1",
    ),
    (
        "what customers send beside what they wait for",
        "P 0 p DD i p SS f -1 T 0 t cc r cc -1 DD z 1 m 2 t aa i aa -1 DD t bb n bb -1 DD m 8 t ss n sa sb -1 SS m 2 -1
         E 0 s cc 0.1 -1 y cc aa 1 -1 s aa 0.1 -1 z aa bb 0.7 -1 y aa sa 1 -1 s bb 0.2 -1 y bb sb 1.3 -1 s sa 0.2 -1 s sb 0.15 -1 -1",
    ),
    (
        "slices of requests from outside at a shared core",
        "P 0 p SS f -1 T 0 t aa n aa -1 SS m 4 t bb n bb -1 SS m 2 t ee i ee -1 SS -1
         E 0 a aa 0.5 s aa 0.1 -1 y aa bb 1.5 -1 y aa ee 1 -1 s bb 0.3 -1 s ee 0.05 -1 -1",
    ),
    (
        "open arrivals beside customers",
        "P 0 p DD i p SS s 0.01 m 2 -1 T 0 t cc r cc -1 DD z 3 m 5 t ss i ss oo -1 SS -1
         E 0 s cc 0.1 -1 y cc ss 1.5 -1 s ss 0.4 -1 a oo 0.6 s oo 0.5 -1 -1",
    ),
    (
        "preemptive priorities",
        "P 0 p DD i p SS p -1 T 0 t cc r cc -1 DD z 2 m 2 t dd r dd -1 DD z 2 m 2 t ss n ss -1 SS 5 t uu n uu -1 SS 1 -1
         E 0 s cc 0 -1 y cc ss 1 -1 s dd 0 -1 y dd uu 1 -1 s ss 0.5 -1 s uu 0.5 -1 -1",
    ),
    (
        "preemptive priorities on two servers",
        "P 0 p DD i p SS p m 2 -1 T 0 t cc r cc -1 DD z 2 m 3 t dd r dd -1 DD z 2 m 3 t ss n ss -1 SS 5 m 3 t uu n uu -1 SS 1 m 3 -1
         E 0 s cc 0 -1 y cc ss 1 -1 s dd 0 -1 y dd uu 1 -1 s ss 0.5 -1 s uu 0.5 -1 -1",
    ),
    (
        "head-of-line priorities",
        "P 0 p DD i p SS h -1 T 0 t cc r cc -1 DD 3 z 2 m 2 t dd r dd -1 DD 1 z 2 m 2 t ss h ss vv -1 SS -1
         E 0 s cc 0 -1 y cc ss 1 -1 s dd 0 -1 y dd vv 1 -1 s ss 0.5 -1 s vv 0.5 -1 p ss 2 p vv 1 -1",
    ),
    (
        "two classes at one core",
        "P 0 p DD i p SS f -1 T 0 t cc r cc -1 DD z 1 m 2 t dd r dd -1 DD z 0.3 m 3 t ss n ss vv -1 SS i t uu n uu -1 SS -1
         E 0 s cc 0 -1 y cc ss 1 -1 s dd 0 -1 y dd vv 1 -1 s ss 0.1 -1 y ss uu 2 -1 s vv 0.3 -1 y vv uu 1 -1 s uu 0.04 -1 -1",
    ),
    (
        "one thread on two cores",
        "P 0 p DD i p SS f m 2 -1 T 0 t cc r cc -1 DD z 1 m 5 t ss n ss -1 SS i t uu n uu -1 SS -1
         E 0 s cc 0 -1 y cc ss 1 -1 s ss 0.3 -1 y ss uu 2 -1 s uu 0.1 -1 -1",
    ),
    (
        "one thread on shared cores",
        "P 0 p DD i p SS s 1e-6 m 2 -1 T 0 t cc r cc -1 DD z 1 m 5 t ss n ss -1 SS m 4 t uu n uu -1 SS -1
         E 0 s cc 0 -1 y cc ss 1 -1 s ss 0.3 -1 y ss uu 2 -1 s uu 0.1 -1 -1",
    ),
    (
        "classes on several cores",
        "P 0 p DD i p SS f m 2 -1 T 0 t cc r cc -1 DD z 1 m 3 t dd r dd -1 DD z 0.5 m 2 t ss n ss vv -1 SS i -1
         E 0 s cc 0 -1 y cc ss 1 -1 s dd 0 -1 y dd vv 1 -1 s ss 0.5 -1 s vv 0.3 -1 -1",
    ),
    (
        "classes on a shared core",
        "P 0 p DD i p SS s 1e-6 -1 T 0 t cc r cc -1 DD z 3 m 3 t dd r dd -1 DD z 0.5 m 2 t ss n ss -1 SS m 4 t uu n uu vv -1 SS m 3 -1
         E 0 s cc 0 -1 y cc ss 1 -1 s dd 0 -1 y dd vv 1 -1 s ss 0.1 -1 y ss uu 2 -1 s uu 0.2 -1 s vv 0.3 -1 -1",
    ),
    (
        "classes with threads for all before one thread",
        "P 0 p DD i p SS f i -1 T 0 t cc r cc -1 DD z 3 m 2 t dd r dd -1 DD z 0.5 m 1 t ss n ss tt -1 SS m 3 t uu n uu vv -1 SS -1
         E 0 s cc 0 -1 y cc ss 1 -1 s dd 0 -1 y dd tt 1 -1 s ss 0.1 -1 y ss uu 2 -1 s tt 0.02 -1 y tt vv 1 -1 s uu 0.2 -1 s vv 0.6 -1 -1",
    ),
    (
        "laws and exact calls",
        "P 0 p DD i p SS f -1 T 0 t cc r cc -1 DD z 1 m 2 t ss n ss -1 SS -1
         E 0 s cc 0.5 -1 c cc 0 -1 f cc 1 -1 y cc ss 3 -1 s ss 0.2 0.1 -1 c ss 0.25 2.5 -1 -1",
    ),
    (
        "think times of phases",
        "P 0 p DD i p SS f -1 T 0 t cc r cc -1 DD z 1 m 3 t ss n ss -1 SS m 2 -1
         E 0 s cc 0.1 -1 y cc ss 1 -1 s ss 0.2 0.1 -1 Z ss 0.5 0.25 -1 -1",
    ),
    (
        "fast processors of several servers",
        "P 0 p DD i p SS f m 3 R 2 -1 T 0 t cc r cc -1 DD z 1 m 8 t ss n ss -1 SS m 5 -1 E 0 s cc 0.1 -1 y cc ss 2 -1 s ss 0.6 -1 -1",
    ),
    (
        "random, shared and last-come processors",
        "P 0 p DD i p SS r p UU s 0.1 -1 T 0 t cc r cc -1 DD z 1 m 4 t ss n ss -1 SS m 2 t uu i uu -1 UU -1
         E 0 s cc 0.1 -1 y cc ss 1 -1 y cc uu 0.5 -1 s ss 0.3 -1 s uu 0.4 -1 -1",
    ),
    (
        "customers of other kinds",
        "P 0 p DD i p SS f -1 T 0 t bb b bb -1 DD z 4 m 2 t uu u uu -1 DD z 2 t ss n ss -1 SS -1
         E 0 s bb 0.1 -1 y bb ss 1 -1 s uu 0.1 -1 y uu ss 1 -1 s ss 0.3 -1 -1",
    ),
    (
        "interlocked paths",
        "P 0 p DD i p AA f p BB f p CC f -1 T 0 t cc r cc -1 DD z 1 m 4 t aa n aa -1 AA m 2 t bb n bb -1 BB t dd n dd -1 CC -1
         E 0 s cc 0 -1 y cc aa 1 -1 s aa 0.1 -1 y aa bb 1 -1 y aa dd 1 -1 s bb 0.1 -1 y bb dd 2 -1 s dd 0.05 -1 -1",
    ),
    (
        "a fork and a join",
        "P 0 p DD i p SS s 0.01 m 2 p UU f -1 T 0 t cc r cc -1 DD z 2 m 3 t ss n ss -1 SS m 2 t uu n uu -1 UU -1
         E 0 s cc 0.1 -1 f cc 1 -1 y cc ss 1 -1 A ss in s uu 0.2 -1 -1
         A ss s in 0.1 s xx 0.2 y xx uu 1.5 s ww 0.3 c ww 0.5 s out 0.05 : in -> xx & ww; xx & ww -> out; out[ss] -1",
    ),
    (
        "a choice",
        "P 0 p DD i p SS f -1 T 0 t cc r cc -1 DD z 2 m 2 t ss n ss -1 SS -1
         E 0 s cc 0.1 -1 y cc ss 1 -1 A ss in -1
         A ss s in 0.1 s xx 0.2 s ww 0.3 s out 0.05 : in -> (0.3)xx + (0.7)ww; xx + ww -> out; out[ss] -1",
    ),
    (
        "a loop",
        "P 0 p DD i p SS f p UU f -1 T 0 t cc r cc -1 DD z 2 m 2 t ss n ss -1 SS t uu n uu -1 UU -1
         E 0 s cc 0.1 -1 y cc ss 1 -1 A ss in s uu 0.1 -1 -1
         A ss s in 0.1 s xx 0.2 y xx uu 1 s out 0.05 : in -> 2.5 * xx, out; out[ss] -1",
    ),
    (
        "a quorum",
        "P 0 p DD i p SS i -1 T 0 t cc r cc -1 DD z 2 m 2 t ss n ss -1 SS m 2 -1 E 0 s cc 0.1 -1 y cc ss 1 -1 A ss in -1
         A ss s in 0.1 s xx 0.2 s ww 0.3 s vv 0.4 s out 0.05 : in -> xx & ww & vv; xx & ww & vv (2) -> out; out[ss] -1",
    ),
    (
        "a reply before the end",
        "P 0 p DD i p SS f -1 T 0 t cc r cc -1 DD z 2 m 3 t ss n ss -1 SS -1 E 0 s cc 0.1 -1 y cc ss 1 -1 A ss in -1
         A ss s in 0.2 s rest 0.3 : in[ss] -> rest -1",
    ),
    (
        "replicas",
        "P 0 p DD i p SS f r 4 -1 T 0 t cc r cc -1 DD z 1 m 2 r 2 t ss n ss -1 SS r 4 O cc ss 2 I cc ss 1 -1
         E 0 s cc 0.1 -1 y cc ss 1 -1 s ss 0.5 -1 -1",
    ),
    (
        "a semaphore",
        "P 0 p DD i p SS i -1 T 0 t cc r cc -1 DD z 2 m 3 t ss S take give -1 SS m 2 -1
         E 0 s cc 0.5 -1 f cc 1 -1 y cc take 1 -1 z cc give 1 -1 s take 0.2 -1 s give 0.3 -1 V take P give -1",
    ),
    (
        "a read-write lock",
        "P 0 p DD i p SS i -1 T 0 t rr r rr -1 DD z 1 m 3 t ww r ww -1 DD z 2 t ll W rl ru wl wu -1 SS m 2 -1
         E 0 s rr 0.5 -1 f rr 1 -1 y rr rl 1 -1 y rr ru 1 -1 s ww 0.5 -1 f ww 1 -1 y ww wl 1 -1 y ww wu 1 -1
           s rl 0.01 -1 s ru 0.01 -1 s wl 0.01 -1 s wu 0.01 -1 R rl U ru W wl X wu -1",
    ),
    (
        "a join of two entries",
        "P 0 p DD i p SS i -1 T 0 t cc r cc -1 DD z 1 t dd r dd -1 DD z 2 t ss n ee ff -1 SS -1
         E 0 s cc 0.1 -1 f cc 1 -1 y cc ee 1 -1 s dd 0.1 -1 f dd 1 -1 y dd ff 1 -1 A ee aa A ff bb -1
         A ss s aa 0.1 s bb 0.1 s both 0.5 : aa & bb -> both; both[ee,ff] -1",
    ),
    (
        "groups of a fair-share processor",
        "P 0 p DD i p SS c 0.1 -1 U 0 g one 0.5 SS g two 0.25 c SS -1
         T 0 t cc r cc -1 DD z 1 m 2 t dd r dd -1 DD z 1 m 2 t ss n ss -1 SS g one t uu n uu -1 SS g two -1
         E 0 s cc 0.1 -1 y cc ss 1 -1 s dd 0.1 -1 y dd uu 1 -1 s ss 0.4 -1 s uu 0.3 -1 -1",
    ),
    (
        "a queue that overflows",
        "P 0 p SS f p UU f -1 T 0 t ss n ss -1 SS q 3 t uu n uu -1 UU q 1 -1 E 0 a ss 0.9 s ss 1 -1 z ss uu 1 -1 s uu 0.5 -1 -1",
    ),
    (
        "times that must not be exceeded",
        "P 0 p DD i p SS f -1 T 0 t cc r cc -1 DD z 1 m 2 t ss n ss -1 SS -1
         E 0 s cc 0.1 -1 y cc ss 1 -1 s ss 0.4 0.1 -1 M ss 1 0.5 -1 H ss 1 0 : 2 10 -1",
    ),
    (
        "parameters",
        "$users = 4 $think = $users / 2
         P 0 p DD i p SS f -1 T 0 t cc r cc -1 DD z $think m $users t ss n ss -1 SS -1 E 0 s cc 0.1 -1 %f $x y cc ss 1.5 -1 s ss 0.2 -1 -1
         R 1 $x -1",
    ),
];

/// The model of `text`.
pub fn read(name: &str, text: &str) -> Model {
    lqn_text::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"))
}
