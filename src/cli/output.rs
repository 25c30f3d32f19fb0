//! Writing the files that subcommands are asked for: whole, or not at all.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::Failure;

/// A file as it is written: beside its place until it is whole.
#[derive(Debug)]
pub(super) struct Draft {
    path: PathBuf,
    file: Place,
}

#[derive(Debug)]
enum Place {
    /// With where it shall stand.
    Beside(BufWriter<NamedTempFile>, PathBuf),
    /// What is no plain file (a pipe, a device) is written at once.
    At(BufWriter<File>),
}

impl Draft {
    /// Begins the file at `path`.
    pub(super) fn new(path: &Path) -> Result<Self, Failure> {
        let file = Place::new(path).map_err(|e| unwritable(path, &e))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Ends the file: from now on it stands at its path.
    pub(super) fn finish(self) -> Result<(), Failure> {
        self.file.finish().map_err(|e| unwritable(&self.path, &e))
    }
}

impl Place {
    fn new(path: &Path) -> io::Result<Self> {
        let before = fs::metadata(path);
        if before.as_ref().is_ok_and(|m| !m.is_file()) {
            return Ok(Self::At(BufWriter::new(File::create(path)?)));
        }
        // A link stays one.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        // The error names the file beside, which nobody asked for.
        let file = builder.prefix(".layerfit-").suffix(".partial").tempfile_in(folder);
        let file = file.map_err(|e| io::Error::new(e.kind(), format!("no file can be made in {}: {}", folder.display(), e.kind())))?;
        if let Ok(before) = before {
            // What may not be written is not replaced either.
            OpenOptions::new().write(true).open(&target)?;
            file.as_file().set_permissions(before.permissions())?;
        }
        Ok(Self::Beside(BufWriter::new(file), target))
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::At(mut file) => file.flush(),
            Self::Beside(file, target) => {
                file.into_inner()?.persist(target)?;
                Ok(())
            }
        }
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Place::Beside(file, _) => file.write(bytes),
            Place::At(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.file {
            Place::Beside(file, _) => file.flush(),
            Place::At(file) => file.flush(),
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

    /// New files have the permissions that programs give them, those before keep theirs.
    #[cfg(unix)]
    #[test]
    fn permissions_are_kept() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
        fs::write(folder.path().join("plain"), "").unwrap();
        let path = folder.path().join("out");
        write_file(&path, "").unwrap();
        assert_eq!(mode("out"), mode("plain"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        write_file(&path, "").unwrap();
        assert_eq!(mode("out"), 0o640);
    }
}
