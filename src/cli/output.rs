//! Writing the files that subcommands are asked for: whole, or not at all.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::Failure;
use crate::model::{Model, format::Format, json, lqnx};

/// Most links that are followed, one to the other.
const LINKS_LIMIT: usize = 40;

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
        let target = end_of_links(path)?;
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

/// Where a file at `path` stands: links stay, also those that lead to what is not there yet.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    if let Ok(place) = fs::canonicalize(path) {
        return Ok(place);
    }
    let mut place = path.to_owned();
    for _ in 0..LINKS_LIMIT {
        let Ok(target) = fs::read_link(&place) else { return Ok(place) };
        place = place.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(io::Error::other("too many links, one to the other"))
}

/// Checks, before the work, that its `outputs` (an option, and the file that it names) can be written: that files can be made there, that they
/// are different ones, and none of the files that the command reads.
pub(super) fn check_outputs(outputs: &[(&str, Option<&Path>)], inputs: &[&Path]) -> Result<(), Failure> {
    let asked: Vec<(&str, &Path)> = outputs.iter().filter_map(|(option, path)| Some((*option, (*path)?))).collect();
    for (i, (option, path)) in asked.iter().enumerate() {
        check_place(path).map_err(|e| unwritable(path, &e))?;
        if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
            continue;
        }
        let place = |path: &Path| end_of_links(path).ok().and_then(|place| std::path::absolute(place).ok());
        let is_same = |other: &Path| place(path).is_some_and(|at| place(other) == Some(at));
        if inputs.iter().any(|input| is_same(input)) {
            let message = format!("{option} {}: the command reads this file, which would be overwritten", path.display());
            return Err(Failure::with_hint(message, "name another file"));
        }
        if let Some((before, _)) = asked[..i].iter().find(|(_, other)| is_same(other)) {
            return Err(Failure::input_text(format!("{option} {}: {before} names this file, too", path.display())));
        }
    }
    Ok(())
}

/// Checks that a file can be made at `path`; pipes and devices are not opened before there is something to write.
fn check_place(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(m) if m.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(m) if !m.is_file() => Ok(()),
        _ => Place::new(path).map(drop),
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

/// What writes a model to a file of that name.
pub(super) fn model_writer(path: &Path) -> Result<fn(&Model) -> String, Failure> {
    match Format::from_file_name(&path.to_string_lossy()) {
        Some(Format::Lqnx) => Ok(lqnx::write),
        Some(Format::Json) => Ok(json::write),
        Some(Format::LqnText) | None => Err(Failure::with_hint(
            format!("{}: a model is written to a file ending in .lqnx or .json", path.display()),
            "the text grammar is read, not written",
        )),
    }
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

    #[cfg(unix)]
    #[test]
    fn links_to_nothing_stay_and_circles_are_refused() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        symlink("second", path("first")).unwrap();
        symlink(path("third"), path("second")).unwrap();
        write_file(&path("first"), "text").unwrap();
        assert_eq!(fs::read_to_string(path("third")).unwrap(), "text");
        assert!(fs::symlink_metadata(path("first")).unwrap().is_symlink());
        symlink("a", path("b")).unwrap();
        symlink("b", path("a")).unwrap();
        assert!(write_file(&path("a"), "").unwrap_err().to_string().contains("links"));
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
