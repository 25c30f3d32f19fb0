//! The engine: bounded nonlinear least squares on any residual function.
//!
//! | file | is |
//! |---|---|
//! | `terms` | what goes into a search and comes out of it |
//! | [`least_squares`] | the search: Gauss-Newton inside a trust region |
//! | [`trust_region`] | one step of it |
//! | [`svd`] | singular values of small matrices |
//! | [`finite_difference`] | Jacobians of functions that have none of their own |
//! | [`view`] | a residual function with some parameters held and others on another scale |
//! | [`loss`] | losses that bound the pull of outliers |

pub mod finite_difference;
pub mod least_squares;
pub mod loss;
pub mod svd;
mod terms;
pub mod trust_region;
pub mod view;
