//! The walk through documents that all JSON formats share.

use super::{
    super::json::{ScanError, Scanner},
    intake::{Intake, Stop},
};

/// Calls `document` at each document of the stream; after text that is not JSON goes on at the next line that starts one.
pub(in crate::trace) fn each_document(
    scanner: &mut Scanner<'_>,
    intake: &mut Intake<'_>,
    mut document: impl FnMut(&mut Scanner<'_>, &mut Intake<'_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    loop {
        let read = match scanner.next_document() {
            Ok(false) => return Ok(()),
            Ok(true) => document(scanner, intake),
            Err(error) => Err(Stop::Scan(error)),
        };
        match read {
            Ok(()) => {}
            Err(Stop::Scan(error)) => {
                intake.broken(error)?;
                match scanner.next_line_of_json() {
                    Ok(true) => {}
                    Ok(false) => return Ok(()),
                    Err(error) => return go_no_further(intake, error),
                }
            }
            Err(stop) => return Err(stop),
        }
    }
}

fn go_no_further(intake: &mut Intake<'_>, error: ScanError) -> Result<(), Stop> {
    match error {
        ScanError::Read(_) => intake.broken(error),
        ScanError::Syntax { .. } | ScanError::Ended { .. } => Ok(()),
    }
}

/// Calls `element` at each element of the array that comes next; skips anything that is not an array.
pub(in crate::trace) fn each_element(
    scanner: &mut Scanner<'_>,
    mut element: impl FnMut(&mut Scanner<'_>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    if scanner.peek()? != b'[' {
        return Ok(scanner.skip()?);
    }
    scanner.enter()?;
    while scanner.next_element()? {
        element(scanner)?;
    }
    Ok(())
}

/// Whether an object or array comes next.
pub(in crate::trace) fn is_container(scanner: &mut Scanner<'_>) -> Result<bool, Stop> {
    Ok(matches!(scanner.peek()?, b'{' | b'['))
}
