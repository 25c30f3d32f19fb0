//! What `GET /metrics` shows, in the Prometheus text format. Every service has its own registry.

use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram, with_local_recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::{
    jobs::EndedJob,
    store::{Usage, jobs::State},
};

/// Upper edges of the latency histogram, seconds: from a read of one row to the request time-out.
const LATENCY_BUCKETS_S: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 25.0, 110.0];

/// Upper edges of the histogram of jobs, seconds: from a fit of a few trials to one that is corrected by simulation.
const JOB_BUCKETS_S: [f64; 9] = [0.01, 0.1, 0.5, 2.0, 10.0, 60.0, 300.0, 1800.0, 7200.0];

const REQUESTS: &str = "layerfit_http_requests_total";
const LATENCY: &str = "layerfit_http_request_duration_seconds";
const IN_FLIGHT: &str = "layerfit_http_requests_in_flight";
const JOBS: &str = "layerfit_jobs";
const JOB_DURATION: &str = "layerfit_job_duration_seconds";
const SPANS: &str = "layerfit_spans_received_total";
const WORKERS: &str = "layerfit_workers_alive";
const DATABASE_SIZE: &str = "layerfit_database_size_bytes";
const DATABASE_CONNECTIONS: &str = "layerfit_database_connections";

/// The service's metrics.
#[derive(Debug)]
pub(super) struct Telemetry {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
}

/// What is read at the moment of a scrape.
#[derive(Debug)]
pub(super) struct Gauges {
    /// Number of jobs in each state that has any.
    pub jobs: Vec<(State, i64)>,
    /// Workers that are alive.
    pub n_workers: usize,
    /// What the database takes up.
    pub database: Usage,
}

impl Telemetry {
    pub(super) fn new() -> Self {
        // Refused is only an empty list of edges.
        let jobs = Matcher::Full(JOB_DURATION.into());
        let builder = PrometheusBuilder::new().set_buckets(&LATENCY_BUCKETS_S).unwrap_or_default();
        let builder = builder.set_buckets_for_metric(jobs, &JOB_BUCKETS_S).unwrap_or_default();
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        with_local_recorder(&recorder, || {
            describe_counter!(REQUESTS, "Requests answered, by method, route and status");
            describe_histogram!(LATENCY, "Time until the head of the response, by method and route");
            describe_gauge!(IN_FLIGHT, "Requests being answered");
            describe_gauge!(JOBS, "Jobs by state");
            describe_histogram!(JOB_DURATION, "Time that a worker was at a job that ended, by kind and state");
            describe_counter!(SPANS, "Spans received from exporters, by what became of them");
            describe_gauge!(WORKERS, "Job workers alive");
            describe_gauge!(DATABASE_SIZE, "Size of the database without its write-ahead log");
            describe_gauge!(DATABASE_CONNECTIONS, "Open connections that read, by state");
        });
        Self { recorder, handle }
    }

    pub(super) fn begin_request(&self) {
        with_local_recorder(&self.recorder, || gauge!(IN_FLIGHT).increment(1.0));
    }

    /// `route` is the route's template, never the path: paths are without number.
    pub(super) fn end_request(&self, method: &'static str, route: &str, status: u16, duration: Duration) {
        let route = route.to_owned();
        with_local_recorder(&self.recorder, || {
            gauge!(IN_FLIGHT).decrement(1.0);
            counter!(REQUESTS, "method" => method, "route" => route.clone(), "status" => status.to_string()).increment(1);
            histogram!(LATENCY, "method" => method, "route" => route).record(duration.as_secs_f64());
        });
    }

    /// The request was given up by its client.
    pub(super) fn abandon_request(&self) {
        with_local_recorder(&self.recorder, || gauge!(IN_FLIGHT).decrement(1.0));
    }

    /// Spans of a request that were taken, and that could not be.
    pub(super) fn count_spans(&self, n_taken: u64, n_rejected: u64) {
        with_local_recorder(&self.recorder, || {
            counter!(SPANS, "outcome" => "taken").increment(n_taken);
            counter!(SPANS, "outcome" => "rejected").increment(n_rejected);
        });
    }

    /// Jobs that have ended.
    pub(super) fn count_jobs(&self, ended: &[EndedJob]) {
        with_local_recorder(&self.recorder, || {
            for job in ended {
                histogram!(JOB_DURATION, "kind" => job.kind, "state" => job.state.name()).record(job.duration.as_secs_f64());
            }
        });
    }

    /// Everything, as Prometheus reads it.
    #[expect(clippy::cast_precision_loss, reason = "counts and sizes are far below 2^53")]
    pub(super) fn render(&self, gauges: &Gauges) -> String {
        with_local_recorder(&self.recorder, || {
            for state in State::ALL {
                let count = gauges.jobs.iter().find(|(s, _)| *s == state).map_or(0, |(_, count)| *count);
                gauge!(JOBS, "state" => state.name()).set(count as f64);
            }
            gauge!(WORKERS).set(gauges.n_workers as f64);
            gauge!(DATABASE_SIZE).set(gauges.database.size_bytes as f64);
            let open = f64::from(gauges.database.reader_connections);
            let idle = gauges.database.idle_connections as f64;
            gauge!(DATABASE_CONNECTIONS, "state" => "idle").set(idle);
            gauge!(DATABASE_CONNECTIONS, "state" => "busy").set((open - idle).max(0.0));
        });
        self.handle.render()
    }

    /// Folds what the histograms have gathered, so that it stays bounded when nobody scrapes.
    pub(super) fn fold(&self) {
        self.handle.run_upkeep();
    }
}
