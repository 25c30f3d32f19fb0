//! Tracking: parameters that drift, followed over trials in the order of time.
//!
//! ```text
//! θ_{t+1} = θ_t + w_t,  w_t ~ N(0, diag(q²) Δ_t)          z_t = h(x(θ_t), u_t) + v_t,  v_t ~ N(0, R_t)
//! ```
//!
//! | symbol | is | unit |
//! |---|---|---|
//! | `θ` | the parameters; their logarithms where they are searched by those | of the parameter; none |
//! | `q` | *drift*: standard deviation of the walk over one unit of time | of `θ`, per root of time |
//! | `Δ_t` | time since the trial before; 1 where the trials have no times | time |
//! | `R_t` | error covariance of a trial, as a fit takes it, times a factor that is estimated where it is not known | of the measures |
//!
//! | file | is |
//! |---|---|
//! | [`linear`] | filter, smoother and likelihood of a linear track |
//! | [`noise`] | drifts and factors of the errors by maximum likelihood |
//! | `track` | the model linearised along its track until that settles; the filter as it would have run |
//! | `options` | how to track, why there is no track |
//! | [`change`] | what the innovations say: of each trial, of jumps, of the filter itself |
//! | `jump` | one jump, beyond the walk or instead of it |
//! | [`report`], `text` | the result, in JSON, CSV and in words |
//!
//! **Two passes.** The *smoothed* track is the most likely one given all trials: the model is linearised along it, filtered and smoothed, and linearised
//! again until it no longer moves, which is Gauss-Newton over the whole track (B. Bell, SIAM Journal on Optimization 4 (1994)); without drift it is the
//! fit. The *filtered* one is what would have been known at each trial: an extended Kalman filter whose update is iterated. Until the trials
//! determine the parameters it is linearised at the fit of all trials. Innovations are those of the filter.
//!
//! **Start.** Nothing is known of a parameter before the first trial (exactly diffuse), unless it has a prior.
//!
//! **Bounds.** A track on the logarithmic scale stays above 0 by itself. Any other is projected: a point outside the box is moved to its edge,
//! where the model is linearised; covariances are not cut.
//!
//! **Assumptions.** Drifts of different parameters are independent; errors are independent over trials. Source: Y. Bar-Shalom, X. Li and
//! T. Kirubarajan, Estimation with Applications to Tracking and Navigation (2001), chapters 5, 8 and 10; T. Zheng, M. Woodside and M. Litoiu, IEEE
//! Transactions on Software Engineering 34 (2008), for performance models.

pub mod change;
mod jump;
pub mod linear;
pub mod noise;
mod options;
pub mod report;
mod text;
mod track;

pub use options::{Drift, TrackError, TrackOptions};
pub use report::Track;
pub use track::{track, track_with};
