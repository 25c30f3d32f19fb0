//! Writing the files that subcommands are asked for: whole, or not at all.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use super::Failure;

/// A file as it is written: under another name beside its own until it is whole.
#[derive(Debug)]
pub(super) struct Draft {
    path: PathBuf,
    /// Where it is written; `None` for what is no plain file (a pipe, a device), which is written at once.
    beside: Option<PathBuf>,
    file: BufWriter<File>,
}

impl Draft {
    /// Begins the file at `path`.
    pub(super) fn new(path: &Path) -> Result<Self, Failure> {
        let is_special = fs::metadata(path).is_ok_and(|m| !m.is_file());
        let beside = (!is_special).then(|| {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{}.partial", std::process::id()));
            PathBuf::from(name)
        });
        let file = File::create(beside.as_deref().unwrap_or(path)).map_err(|e| unwritable(path, &e))?;
        Ok(Self { path: path.to_owned(), beside, file: BufWriter::new(file) })
    }

    /// Ends the file: from now on it stands at its path.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let path = self.path.clone();
        let ended = self.file.flush().and_then(|()| match self.beside.take() {
            None => Ok(()),
            // A link stays one.
            Some(beside) => fs::rename(&beside, fs::canonicalize(&path).unwrap_or_else(|_| path.clone())).inspect_err(|_| {
                let _ = fs::remove_file(&beside);
            }),
        });
        ended.map_err(|e| unwritable(&path, &e))
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            let _ = fs::remove_file(beside);
        }
    }
}

/// Writes a file.
pub(super) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    let mut draft = Draft::new(path)?;
    draft.write_all(text.as_bytes()).map_err(|e| unwritable(path, &e))?;
    draft.finish()
}

/// The error of a file that cannot be written.
pub(super) fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::input_text(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_or_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        write_file(&path, "before").unwrap();
        let mut draft = Draft::new(&path).unwrap();
        draft.write_all(b"half").unwrap();
        draft.flush().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        drop(draft);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        write_file(&path, "after").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), fs::read_dir(folder.path()).unwrap().count()), ("after", 1));
        assert!(write_file(&folder.path().join("nowhere/out.csv"), "").unwrap_err().to_string().contains("nowhere/out.csv"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_one() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        write_file(&path, "before").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_file(&link, "after").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
    }
}
