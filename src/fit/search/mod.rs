//! The fit, all of it in order.
//!
//! | file | is |
//! |---|---|
//! | [`weights`], [`whitening`], `covariances` | what makes measures comparable |
//! | [`solver`] | the solver as a function from parameters to measures; residuals of a problem |
//! | [`start`], [`multistart`] | where the search starts when nobody says; several starts |
//! | [`run`] | the search: weights, loss and priors until they settle |
//! | `settle`, [`reweigh`] | what is estimated beside the parameters, anew after each minimum |
//! | [`whole`] | parameters that are whole numbers |

mod covariances;
pub mod multistart;
pub(crate) mod reweigh;
pub mod run;
mod settle;
pub mod solver;
pub mod start;
pub mod weights;
pub mod whitening;
pub mod whole;
