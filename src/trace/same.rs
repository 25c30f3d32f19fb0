//! Message logs as the SAME technique reads them.
