//! The files of a store belong to one user, who alone reads and writes them.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

/// What `SQLite` appends to the file's name for its journals, which hold the latest writes.
pub(super) const JOURNALS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Returns a path with this at its end.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Opens a file for writing. Creates it for its owner alone if there is none.
pub(super) fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    system::for_the_owner_alone(&mut options);
    options.open(path)
}

/// Returns why other users can change a store, and what to do about it: they can write to a file of
/// it, or put another one in its place. The store need not exist yet.
pub(super) fn open_to_others(path: &Path) -> io::Result<Option<String>> {
    system::open_to_others(&resolved(path)?)
}

/// Takes from other users what rights they have to the files of a store, and reports whether they
/// had any. Only the files' owner can do so.
pub(super) fn close_to_others(path: &Path) -> bool {
    let Ok(path) = resolved(path) else {
        return false;
    };
    let journals = JOURNALS.map(|suffix| with_suffix(&path, suffix));
    let files = journals.iter().map(PathBuf::as_path).chain([&*path]);
    // By its path: closing an open file would release the locks that this process has on it.
    let closed = files.map(|file| system::keep_for_the_owner(file).unwrap_or(false));
    // All of them, and not only up to the first.
    closed.fold(false, |any, changed| any | changed)
}

/// Returns the path to which a link leads: `SQLite` puts its journals there.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        resolved => resolved,
    }
}

#[cfg(unix)]
mod system {
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};

    use super::{JOURNALS, Path, fs, io, with_suffix};

    const OTHERS: u32 = 0o077;
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    const WRITABLE_BY_EVERYONE: u32 = 0o002;
    /// In such a folder each user can replace only their own files.
    const STICKY: u32 = 0o1000;

    pub(super) fn for_the_owner_alone(options: &mut fs::OpenOptions) {
        options.mode(0o600);
    }

    /// Returns whether there was anything to change.
    pub(super) fn keep_for_the_owner(file: &Path) -> io::Result<bool> {
        let mode = fs::metadata(file)?.mode() & 0o7777;
        if mode & OTHERS == 0 {
            return Ok(false);
        }
        fs::set_permissions(file, fs::Permissions::from_mode(mode & !OTHERS))?;
        Ok(true)
    }

    pub(super) fn open_to_others(path: &Path) -> io::Result<Option<String>> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        let mode = fs::metadata(folder)?.mode();
        if mode & WRITABLE_BY_EVERYONE != 0 && mode & STICKY == 0 {
            let folder = folder.display();
            return Ok(Some(format!(
                "every user can replace the files in the folder {folder} (mode {:o}): check the \
                 store, then run `chmod o-w {folder}`",
                mode & 0o7777
            )));
        }
        let Some(store) = found(path)? else {
            return Ok(None);
        };
        let journals = JOURNALS.map(|suffix| with_suffix(path, suffix));
        for file in journals.iter().map(AsRef::as_ref).chain([path]) {
            let Some(found) = found(file)? else { continue };
            let name = file.display();
            if found.mode() & WRITABLE_BY_OTHERS != 0 {
                return Ok(Some(format!(
                    "other users can write to {name} (mode {:o}): check the store, then run `chmod \
                     600 {name}`",
                    found.mode() & 0o7777
                )));
            }
            if found.uid() != store.uid() {
                return Ok(Some(format!(
                    "{name} belongs to another user than {}: check where it comes from, then give \
                     it the same owner with `chown`",
                    path.display()
                )));
            }
        }
        Ok(None)
    }

    fn found(path: &Path) -> io::Result<Option<fs::Metadata>> {
        match fs::metadata(path) {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Other systems give a file the rights of its folder.
#[cfg(not(unix))]
mod system {
    use super::{Path, fs, io};

    pub(super) fn for_the_owner_alone(_: &mut fs::OpenOptions) {}

    pub(super) fn keep_for_the_owner(_: &Path) -> io::Result<bool> {
        Ok(false)
    }

    pub(super) fn open_to_others(_: &Path) -> io::Result<Option<String>> {
        Ok(None)
    }
}
