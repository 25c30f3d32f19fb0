//! Structure: events → interactions → tasks, entries, calls. One file for each technique, one road from interactions to a model.
