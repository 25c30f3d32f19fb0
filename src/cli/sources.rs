//! The files that are extracted from: opened as streams, with a bar of how much has been read.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Failure;
use crate::trace::StreamSource;

/// Bytes read from the system at once.
const BUFFER_BYTES: usize = 1 << 18;

/// The name of standard input.
pub(super) const STDIN: &str = "-";

/// A file that is opened when it is first read, so that a thousand traces do not take a thousand handles at once.
struct Lazy {
    path: PathBuf,
    file: Option<Box<dyn Read + Send>>,
    bar: ProgressBar,
}

impl Lazy {
    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(if self.path.as_os_str() == STDIN {
            Box::new(io::stdin())
        } else {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, File::open(&self.path)?))
        })
    }
}

impl Read for Lazy {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.file.is_none() {
            self.file = Some(self.open()?);
        }
        let n_read = self.file.as_mut().map_or(Ok(0), |file| file.read(buffer))?;
        self.bar.inc(n_read as u64);
        Ok(n_read)
    }
}

/// The files in `paths`; of a folder, all files in it (Kieker's logs are folders), in order of their names, but those without a byte, as
/// the one that a log is just being rotated to, beside others.
pub(super) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let failed = |path: &Path, error: io::Error| Failure::input_text(format!("{}: {error}", path.display()));
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        if path.as_os_str() == STDIN || !path.metadata().map_err(|e| failed(path, e))?.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut inside = Vec::new();
        for entry in path.read_dir().map_err(|e| failed(path, e))? {
            let entry = entry.map_err(|e| failed(path, e))?;
            if entry.file_type().map_err(|e| failed(path, e))?.is_file() {
                inside.push(entry.path());
            }
        }
        if inside.is_empty() {
            return Err(Failure::input_text(format!("{}: the folder has no files", path.display())));
        }
        inside.sort();
        let is_empty = |path: &PathBuf| path.metadata().is_ok_and(|m| m.len() == 0);
        let (empty, others): (Vec<PathBuf>, Vec<PathBuf>) = inside.into_iter().partition(is_empty);
        if others.is_empty() {
            files.extend(empty);
            continue;
        }
        empty.iter().for_each(|path| note!("warning: {} is empty: passed over", path.display()));
        files.extend(others);
    }
    Ok(files)
}

/// Opens the files; the bar is drawn on standard error where that is a terminal.
pub(super) fn open(files: &[PathBuf]) -> Result<(Vec<StreamSource<'static>>, ProgressBar), Failure> {
    let mut total_bytes = 0;
    for path in files.iter().filter(|path| path.as_os_str() != STDIN) {
        // Opened once now, so that a file that cannot be read is said before hours of work.
        let file = File::open(path).map_err(|e| Failure::input_text(format!("{}: {e}", path.display())))?;
        total_bytes += file.metadata().map_or(0, |m| m.len());
    }
    let bar = ProgressBar::with_draw_target(Some(total_bytes), ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}") {
        bar.set_style(style);
    }
    let source = |path: &PathBuf| {
        let reader = Lazy { path: path.clone(), file: None, bar: bar.clone() };
        StreamSource { name: path.to_string_lossy().into_owned(), reader: Box::new(reader) }
    };
    Ok((files.iter().map(source).collect(), bar))
}
