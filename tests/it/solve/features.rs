//! Small models, one for every feature of the language, in its text grammar.

use layerfit::model::{Model, lqn_text};

/// Name and text of each model.
pub const MODELS: &[(&str, &str)] = &[
    (
        "three phases",
        "G \"three phases\" 1e-5 50 0 0.9 -1 P 0 p D i p S f -1 T 0 t c r c -1 D z 2 m 4 t s n s -1 S -1
         E 0 s c 0.1 -1 y c s 2.5 -1 s s 0.05 0.02 0.03 -1 -1",
    ),
    (
        "calls from second phases",
        "P 0 p D i p S f p U f -1 T 0 t c r c -1 D z 1 m 3 t s n s -1 S t u n u -1 U m 2 -1
         E 0 s c 0 -1 y c s 1 -1 s s 0.1 0.2 -1 y s u 0.5 1.25 -1 s u 0.1 -1 -1",
    ),
    (
        "asynchronous calls",
        "P 0 p D i p S f p U f -1 T 0 t c r c -1 D z 4 m 2 t s n s -1 S t u n u -1 U -1
         E 0 s c 0.2 -1 y c s 1 -1 s s 0.3 -1 z s u 2 -1 s u 0.2 0.1 -1 -1",
    ),
    (
        "forwarding along a chain",
        "P 0 p D i p A f p B f p C f -1 T 0 t c r c -1 D z 1 m 3 t a n a -1 A t b n b -1 B t d n d -1 C m 2 -1
         E 0 s c 0 -1 y c a 1 -1 s a 0.1 0.1 -1 F a b 0.7 -1 s b 0.2 -1 F b d 0.5 -1 s d 0.3 -1 -1",
    ),
    (
        "open arrivals",
        "P 0 p S f p U f -1 T 0 t s n s v -1 S m 2 t u n u -1 U -1
         E 0 a s 0.5 s s 0.4 -1 y s u 1 -1 a v 0.25 s v 0.3 0.2 -1 s u 0.5 -1 -1",
    ),
    (
        "open arrivals beside customers",
        "P 0 p D i p S s 0.01 m 2 -1 T 0 t c r c -1 D z 3 m 5 t s i s o -1 S -1
         E 0 s c 0.1 -1 y c s 1.5 -1 s s 0.4 -1 a o 0.6 s o 0.5 -1 -1",
    ),
    (
        "preemptive priorities",
        "P 0 p D i p S p -1 T 0 t c r c -1 D z 2 m 2 t d r d -1 D z 2 m 2 t s n s -1 S 5 t u n u -1 S 1 -1
         E 0 s c 0 -1 y c s 1 -1 s d 0 -1 y d u 1 -1 s s 0.5 -1 s u 0.5 -1 -1",
    ),
    (
        "head-of-line priorities",
        "P 0 p D i p S h -1 T 0 t c r c -1 D 3 z 2 m 2 t d r d -1 D 1 z 2 m 2 t s h s v -1 S -1
         E 0 s c 0 -1 y c s 1 -1 s d 0 -1 y d v 1 -1 s s 0.5 -1 s v 0.5 -1 p s 2 p v 1 -1",
    ),
    (
        "laws and exact calls",
        "P 0 p D i p S f -1 T 0 t c r c -1 D z 1 m 2 t s n s -1 S -1
         E 0 s c 0.5 -1 c c 0 -1 f c 1 -1 y c s 3 -1 s s 0.2 0.1 -1 c s 0.25 2.5 -1 -1",
    ),
    (
        "think times of phases",
        "P 0 p D i p S f -1 T 0 t c r c -1 D z 1 m 3 t s n s -1 S m 2 -1
         E 0 s c 0.1 -1 y c s 1 -1 s s 0.2 0.1 -1 Z s 0.5 0.25 -1 -1",
    ),
    (
        "fast processors of several servers",
        "P 0 p D i p S f m 3 R 2 -1 T 0 t c r c -1 D z 1 m 8 t s n s -1 S m 5 -1 E 0 s c 0.1 -1 y c s 2 -1 s s 0.6 -1 -1",
    ),
    (
        "random, shared and last-come processors",
        "P 0 p D i p S r p U s 0.1 -1 T 0 t c r c -1 D z 1 m 4 t s n s -1 S m 2 t u i u -1 U -1
         E 0 s c 0.1 -1 y c s 1 -1 y c u 0.5 -1 s s 0.3 -1 s u 0.4 -1 -1",
    ),
    (
        "customers of other kinds",
        "P 0 p D i p S f -1 T 0 t b b b -1 D z 4 m 2 t u u u -1 D z 2 t s n s -1 S -1
         E 0 s b 0.1 -1 y b s 1 -1 s u 0.1 -1 y u s 1 -1 s s 0.3 -1 -1",
    ),
    (
        "interlocked paths",
        "P 0 p D i p A f p B f p C f -1 T 0 t c r c -1 D z 1 m 4 t a n a -1 A m 2 t b n b -1 B t d n d -1 C -1
         E 0 s c 0 -1 y c a 1 -1 s a 0.1 -1 y a b 1 -1 y a d 1 -1 s b 0.1 -1 y b d 2 -1 s d 0.05 -1 -1",
    ),
    (
        "a fork and a join",
        "P 0 p D i p S s 0.01 m 2 p U f -1 T 0 t c r c -1 D z 2 m 3 t s n s -1 S m 2 t u n u -1 U -1
         E 0 s c 0.1 -1 f c 1 -1 y c s 1 -1 A s in s u 0.2 -1 -1
         A s s in 0.1 s x 0.2 y x u 1.5 s w 0.3 c w 0.5 s out 0.05 : in -> x & w; x & w -> out; out[s] -1",
    ),
    (
        "a choice",
        "P 0 p D i p S f -1 T 0 t c r c -1 D z 2 m 2 t s n s -1 S -1
         E 0 s c 0.1 -1 y c s 1 -1 A s in -1
         A s s in 0.1 s x 0.2 s w 0.3 s out 0.05 : in -> (0.3)x + (0.7)w; x + w -> out; out[s] -1",
    ),
    (
        "a loop",
        "P 0 p D i p S f p U f -1 T 0 t c r c -1 D z 2 m 2 t s n s -1 S t u n u -1 U -1
         E 0 s c 0.1 -1 y c s 1 -1 A s in s u 0.1 -1 -1
         A s s in 0.1 s x 0.2 y x u 1 s out 0.05 : in -> 2.5 * x, out; out[s] -1",
    ),
    (
        "a quorum",
        "P 0 p D i p S i -1 T 0 t c r c -1 D z 2 m 2 t s n s -1 S m 2 -1 E 0 s c 0.1 -1 y c s 1 -1 A s in -1
         A s s in 0.1 s x 0.2 s w 0.3 s v 0.4 s out 0.05 : in -> x & w & v; x & w & v (2) -> out; out[s] -1",
    ),
    (
        "a reply before the end",
        "P 0 p D i p S f -1 T 0 t c r c -1 D z 2 m 3 t s n s -1 S -1 E 0 s c 0.1 -1 y c s 1 -1 A s in -1
         A s s in 0.2 s rest 0.3 : in[s] -> rest -1",
    ),
    (
        "replicas",
        "P 0 p D i p S f r 4 -1 T 0 t c r c -1 D z 1 m 2 r 2 t s n s -1 S r 4 O c s 2 I c s 1 -1
         E 0 s c 0.1 -1 y c s 1 -1 s s 0.5 -1 -1",
    ),
    (
        "a semaphore",
        "P 0 p D i p S i -1 T 0 t c r c -1 D z 2 m 3 t s S take give -1 S m 2 -1
         E 0 s c 0.5 -1 f c 1 -1 y c take 1 -1 z c give 1 -1 s take 0.2 -1 s give 0.3 -1 V take P give -1",
    ),
    (
        "a read-write lock",
        "P 0 p D i p S i -1 T 0 t r r r -1 D z 1 m 3 t w r w -1 D z 2 t l W rl ru wl wu -1 S m 2 -1
         E 0 s r 0.5 -1 f r 1 -1 y r rl 1 -1 y r ru 1 -1 s w 0.5 -1 f w 1 -1 y w wl 1 -1 y w wu 1 -1
           s rl 0.01 -1 s ru 0.01 -1 s wl 0.01 -1 s wu 0.01 -1 R rl U ru W wl X wu -1",
    ),
    (
        "a join of two entries",
        "P 0 p D i p S i -1 T 0 t c r c -1 D z 1 t d r d -1 D z 2 t s n e f -1 S -1
         E 0 s c 0.1 -1 f c 1 -1 y c e 1 -1 s d 0.1 -1 f d 1 -1 y d f 1 -1 A e a A f b -1
         A s s a 0.1 s b 0.1 s both 0.5 : a & b -> both; both[e,f] -1",
    ),
    (
        "groups of a fair-share processor",
        "P 0 p D i p S c 0.1 -1 U 0 g one 0.5 S g two 0.25 c S -1
         T 0 t c r c -1 D z 1 m 2 t d r d -1 D z 1 m 2 t s n s -1 S g one t u n u -1 S g two -1
         E 0 s c 0.1 -1 y c s 1 -1 s d 0.1 -1 y d u 1 -1 s s 0.4 -1 s u 0.3 -1 -1",
    ),
    ("a queue that overflows", "P 0 p S f p U f -1 T 0 t s n s -1 S q 3 t u n u -1 U q 1 -1 E 0 a s 0.9 s s 1 -1 z s u 1 -1 s u 0.5 -1 -1"),
    (
        "times that must not be exceeded",
        "P 0 p D i p S f -1 T 0 t c r c -1 D z 1 m 2 t s n s -1 S -1
         E 0 s c 0.1 -1 y c s 1 -1 s s 0.4 0.1 -1 M s 1 0.5 -1 H s 1 0 : 2 10 -1",
    ),
    (
        "parameters",
        "$users = 4 $think = $users / 2
         P 0 p D i p S f -1 T 0 t c r c -1 D z $think m $users t s n s -1 S -1 E 0 s c 0.1 %f $x -1 y c s 1.5 -1 s s 0.2 -1 -1
         R 1 $x -1",
    ),
];

/// The model of `text`.
pub fn read(name: &str, text: &str) -> Model {
    lqn_text::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"))
}
