-- The chain from a trace to a prediction. Conventions:
--   ids         uuid v7 as hyphenated text: they sort by time of creation, so they are also the keyset of every list
--   *_ms        milliseconds since 1970-01-01T00:00:00Z
--   sha256      hex digest of what the client sent, after decompression: equal inputs are recognised by it
--   system_id   every row belongs to one system and is deleted with it, and in no other way
-- Inputs and results are never changed once stored (the triggers at the end see to it): a new version is a new row, and
-- a fit names the versions it came from.

-- A system under study: the folder that everything else lies in.
CREATE TABLE systems (
    id            TEXT    PRIMARY KEY NOT NULL,
    -- For people; two systems may have the same name.
    name          TEXT    NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    created_at_ms INTEGER NOT NULL
) STRICT;

-- An uploaded trace, and how it is to be read.
CREATE TABLE traces (
    id            TEXT    PRIMARY KEY NOT NULL,
    system_id     TEXT    NOT NULL REFERENCES systems (id) ON DELETE CASCADE,
    -- Wire format by its public name: same, otlp, ...
    format        TEXT    NOT NULL,
    -- JSON: how the structure is extracted.
    options       TEXT    NOT NULL CHECK (json_valid(options)),
    -- The bytes as sent, recompressed with gzip.
    content_gzip  BLOB    NOT NULL,
    -- Their number before compression.
    content_bytes INTEGER NOT NULL CHECK (content_bytes > 0),
    sha256        TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX traces_by_system ON traces (system_id, id);

-- What was extracted from a trace.
CREATE TABLE structures (
    id            TEXT    PRIMARY KEY NOT NULL,
    system_id     TEXT    NOT NULL REFERENCES systems (id) ON DELETE CASCADE,
    -- One structure for each trace.
    trace_id      TEXT    NOT NULL UNIQUE REFERENCES traces (id),
    -- JSON as `layerfit extract --format json` prints it, the model included.
    extraction    TEXT    NOT NULL CHECK (json_valid(extraction)),
    created_at_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX structures_by_system ON structures (system_id, id);

-- A version of the system's model.
CREATE TABLE models (
    id            TEXT    PRIMARY KEY NOT NULL,
    system_id     TEXT    NOT NULL REFERENCES systems (id) ON DELETE CASCADE,
    -- 1, 2, 3 ... within the system.
    version       INTEGER NOT NULL CHECK (version > 0),
    -- What the client sent: a file format, or `structure` for a derivation.
    source        TEXT    NOT NULL CHECK (source IN ('lqnx', 'lqn', 'json', 'structure')),
    -- The text that the client sent.
    content       TEXT    NOT NULL,
    -- The structure it was derived from; NULL for an uploaded model.
    structure_id  TEXT    REFERENCES structures (id),
    -- The model as it is solved, in the project's JSON.
    model         TEXT    NOT NULL CHECK (json_valid(model)),
    sha256        TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    UNIQUE (system_id, version),
    CHECK ((source = 'structure') = (structure_id IS NOT NULL))
) STRICT;
CREATE INDEX models_by_system ON models (system_id, id);

-- A version of the system's measurements.
CREATE TABLE trials (
    id            TEXT    PRIMARY KEY NOT NULL,
    system_id     TEXT    NOT NULL REFERENCES systems (id) ON DELETE CASCADE,
    version       INTEGER NOT NULL CHECK (version > 0),
    source        TEXT    NOT NULL CHECK (source IN ('csv', 'json')),
    content       TEXT    NOT NULL,
    -- The trials as they are fitted, in JSON.
    trials        TEXT    NOT NULL CHECK (json_valid(trials)),
    -- Number of operating points.
    n_trials      INTEGER NOT NULL CHECK (n_trials > 0),
    sha256        TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    UNIQUE (system_id, version)
) STRICT;
CREATE INDEX trials_by_system ON trials (system_id, id);

-- A fit of one model version to one version of the trials.
CREATE TABLE fits (
    id             TEXT    PRIMARY KEY NOT NULL,
    system_id      TEXT    NOT NULL REFERENCES systems (id) ON DELETE CASCADE,
    model_id       TEXT    NOT NULL REFERENCES models (id),
    trials_id      TEXT    NOT NULL REFERENCES trials (id),
    -- JSON: what is estimated, what is assumed, weighting, confidence.
    options        TEXT    NOT NULL CHECK (json_valid(options)),
    -- JSON as `layerfit fit --format json` prints it; NULL until the fit has succeeded.
    report         TEXT    CHECK (report IS NULL OR json_valid(report)),
    created_at_ms  INTEGER NOT NULL
) STRICT;
CREATE INDEX fits_by_system ON fits (system_id, id);
CREATE INDEX fits_by_model ON fits (model_id, id);

-- The queue of work that is done off the request threads, and its history.
CREATE TABLE jobs (
    id               TEXT    PRIMARY KEY NOT NULL,
    system_id        TEXT    NOT NULL REFERENCES systems (id) ON DELETE CASCADE,
    -- What is worked on: exactly one of the two.
    trace_id         TEXT    UNIQUE REFERENCES traces (id),
    fit_id           TEXT    UNIQUE REFERENCES fits (id),
    state            TEXT    NOT NULL DEFAULT 'queued'
                             CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    -- How often the work was started; the bound on it stops a job that takes the process down with it.
    attempts         INTEGER NOT NULL DEFAULT 0,
    -- 1 once a client has asked for the job to be cancelled.
    cancel_requested INTEGER NOT NULL DEFAULT 0 CHECK (cancel_requested IN (0, 1)),
    -- JSON: how far the work has come; NULL where it has not said.
    progress         TEXT    CHECK (progress IS NULL OR json_valid(progress)),
    -- Why the job failed: a stable code, and words.
    error_code       TEXT,
    error_message    TEXT,
    created_at_ms    INTEGER NOT NULL,
    -- Start of the latest attempt.
    started_at_ms    INTEGER,
    finished_at_ms   INTEGER,
    CHECK ((trace_id IS NULL) <> (fit_id IS NULL)),
    CHECK ((state = 'failed') = (error_code IS NOT NULL)),
    CHECK ((state IN ('succeeded', 'failed', 'cancelled')) = (finished_at_ms IS NOT NULL))
) STRICT;
CREATE INDEX jobs_by_state ON jobs (state, id);
CREATE INDEX jobs_by_system ON jobs (system_id, id);

CREATE TRIGGER traces_are_immutable BEFORE UPDATE ON traces
BEGIN SELECT RAISE(ABORT, 'traces are immutable'); END;
CREATE TRIGGER structures_are_immutable BEFORE UPDATE ON structures
BEGIN SELECT RAISE(ABORT, 'structures are immutable'); END;
CREATE TRIGGER models_are_immutable BEFORE UPDATE ON models
BEGIN SELECT RAISE(ABORT, 'models are immutable'); END;
CREATE TRIGGER trials_are_immutable BEFORE UPDATE ON trials
BEGIN SELECT RAISE(ABORT, 'trials are immutable'); END;
-- A fit changes once: when its report comes.
CREATE TRIGGER fits_change_once BEFORE UPDATE ON fits
WHEN OLD.report IS NOT NULL
    OR NEW.report IS NULL
    OR NEW.id <> OLD.id
    OR NEW.system_id <> OLD.system_id
    OR NEW.model_id <> OLD.model_id
    OR NEW.trials_id <> OLD.trials_id
    OR NEW.options <> OLD.options
BEGIN SELECT RAISE(ABORT, 'fits are immutable'); END;
