//! Structures against each other on the same trials.
//!
//! | file | is |
//! |---|---|
//! | [`f_test`] | the statistic |
//! | [`compare`] | two fits of nested structures |
//! | [`family`], `family_text` | many structures: fitted, tested, ranked, the simplest that explains the trials proposed |

pub mod compare;
pub mod f_test;
pub mod family;
mod family_text;
