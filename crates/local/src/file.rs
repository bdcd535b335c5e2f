//! The file of a local store: detects what is wrong with it before it is opened, and says what to
//! do about it.

mod access;

use std::{
    collections::BTreeSet,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tempfile::TempDir;

use crate::Unusable;

/// The tables in which the engine keeps the names of all others.
const ENGINE_TABLES: [&str; 2] = ["_config", "_tables"];

/// How long to wait while another process is writing.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a command does with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Read,
    /// Reads it as it is at one instant, whatever is written meanwhile.
    ReadAtOnce,
    Change,
    /// Writes to it, and creates it if there is none.
    Create,
}

/// A store's file that can be opened.
#[derive(Debug)]
pub struct DataFile {
    path: PathBuf,
    /// The folder of a copy that stands in for the file.
    copy: Option<TempDir>,
    closed_to_others: bool,
}

impl DataFile {
    /// Checks a file, and refuses one from which no store can be opened, and one that other users
    /// can change. A read-only file is copied if it is only to be read; any other is closed to other
    /// users.
    pub fn open(path: &Path, purpose: Purpose) -> anyhow::Result<Self> {
        let mut writable = Self { path: path.to_owned(), copy: None, closed_to_others: false };
        let is_new = is_new(path)?;
        let cannot_read = || format!("cannot read the store at {}", path.display());
        if let Some(reason) = access::open_to_others(path).with_context(cannot_read)? {
            return Err(Unusable(reason).into());
        }
        if is_new {
            return match purpose {
                Purpose::Create => {
                    access::create(path).with_context(|| may_not_write_advice(path))?;
                    access::close_to_others(path);
                    Ok(writable)
                }
                Purpose::Read | Purpose::ReadAtOnce | Purpose::Change => Err(Unusable(format!(
                    "there is no store at {}: `offhours apply --data {0}` makes a new one, and \
                     `offhours restore --data {0}` one from a backup",
                    path.display()
                ))
                .into()),
            };
        }
        // SQLite would not say why it cannot be read.
        File::open(path).with_context(cannot_read)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        match Connection::open_with_flags(path, flags).and_then(|file| try_to_write(&file)) {
            Ok(tables) => {
                check_tables(path, &tables)?;
                writable.closed_to_others = access::close_to_others(path);
                if purpose == Purpose::ReadAtOnce {
                    return Self::copied_at_once(path).with_context(cannot_read);
                }
                Ok(writable)
            }
            Err(error)
                if may_not_write(&error)
                    && matches!(purpose, Purpose::Read | Purpose::ReadAtOnce) =>
            {
                Self::copied(path)
                    .with_context(|| format!("cannot look at the store at {}", path.display()))
            }
            Err(error) => Err(refusal(path, error)),
        }
    }

    /// Returns the file to open: the original, or the copy.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        match &self.copy {
            Some(directory) => directory.path().join("store.db"),
            None => self.path.clone(),
        }
    }

    /// Reports whether a copy stands in for the file.
    #[must_use]
    pub fn is_copy(&self) -> bool {
        self.copy.is_some()
    }

    /// Reports whether other users could read the file until it was opened.
    #[must_use]
    pub fn was_readable_by_others(&self) -> bool {
        self.closed_to_others
    }

    fn copied_at_once(path: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let copied = Self { path: path.to_owned(), copy: Some(directory), closed_to_others: false };
        let connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        let to = copied.path();
        let to = to.to_str().context("the temporary folder's name is not UTF-8")?;
        connection.execute("VACUUM INTO ?1", [to])?;
        Ok(copied)
    }

    fn copied(path: &Path) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let copied = Self { path: path.to_owned(), copy: Some(directory), closed_to_others: false };
        // The latest writes may not be in the file itself yet.
        for suffix in ["", "-wal"] {
            let to = access::with_suffix(&copied.path(), suffix);
            match fs::copy(access::with_suffix(path, suffix), &to) {
                Ok(_) => make_writable(&to)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound && !suffix.is_empty() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let connection = Connection::open(copied.path())?;
        let tables = try_to_write(&connection).map_err(|error| refusal(path, error))?;
        check_tables(path, &tables)?;
        Ok(copied)
    }
}

#[cfg(unix)]
fn make_writable(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn make_writable(path: &Path) -> io::Result<()> {
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_readonly(false);
    fs::set_permissions(path, permissions)
}

/// Reports whether there is nothing yet: no file, or an empty one.
fn is_new(path: &Path) -> anyhow::Result<bool> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            let message = format!("{} is a folder: name the file of a store", path.display());
            Err(Unusable(message).into())
        }
        Ok(found) => Ok(found.len() == 0),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            match folder.filter(|folder| !folder.is_dir()) {
                Some(folder) => {
                    let message = format!("there is no folder {}", folder.display());
                    Err(Unusable(message).into())
                }
                None => Ok(true),
            }
        }
        Err(error) => {
            Err(error).with_context(|| format!("cannot read the store at {}", path.display()))
        }
    }
}

/// Returns the tables of a database, after checking that it is writable.
fn try_to_write(file: &Connection) -> rusqlite::Result<BTreeSet<String>> {
    file.busy_timeout(PATIENCE)?;
    let mut names = file.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
    let names: rusqlite::Result<_> = names.query_map((), |row| row.get(0))?.collect();
    match file.execute_batch("BEGIN IMMEDIATE; ROLLBACK") {
        // Another process is writing, so the file is writable.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => names,
        Err(error) => Err(error),
        Ok(()) => names,
    }
}

fn may_not_write(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied)
    )
}

/// Refuses a database that holds something other than a store.
fn check_tables(path: &Path, tables: &BTreeSet<String>) -> Result<(), Unusable> {
    let is_store = ENGINE_TABLES.iter().any(|table| tables.contains(*table));
    let Some(foreign) = tables.iter().find(|_| !is_store) else {
        return Ok(());
    };
    Err(Unusable(format!(
        "{} is a database of something else (it has a table `{foreign}`), and was left as it is: \
         name another file",
        path.display()
    )))
}

/// Explains why a file cannot be opened, and what to do.
fn refusal(path: &Path, error: rusqlite::Error) -> anyhow::Error {
    let file = path.display();
    let advice = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            let message =
                format!("{file} is not a store, and was left as it is: name another file");
            return Unusable(message).into();
        }
        Some(ErrorCode::DatabaseCorrupt) => format!(
            "the store at {file} is damaged: restore a copy of it, or move it away and apply the \
             configuration again; only the copy has the sizes that stopped resources are owed"
        ),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            may_not_write_advice(path)
        }
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => {
            format!("cannot write to the store at {file}: check that its disk has room and works")
        }
        Some(_) | None => format!("cannot open the store at {file}"),
    };
    anyhow::Error::new(error).context(advice)
}

fn may_not_write_advice(path: &Path) -> String {
    format!(
        "cannot write to the store at {}: check that you may write to the file and to its folder",
        path.display()
    )
}

/// Returns what to do about an error from an open store, if the message contains one of `SQLite`'s.
#[must_use]
pub fn advice(words: &str) -> Option<&'static str> {
    let advices = [
        (
            "database or disk is full",
            "make room on the disk of the store, and give the command again",
        ),
        (
            "disk I/O error",
            "check that the disk of the store has room and works, and give the command again",
        ),
        (
            "database disk image is malformed",
            "the store is damaged: restore a copy of it; only the copy has the sizes that stopped \
             resources are owed",
        ),
        ("readonly database", "check that you may write to the store's file and to its folder"),
    ];
    let (_, advice) = advices.into_iter().find(|(says, _)| words.contains(says))?;
    Some(advice)
}

/// A lock that one process at a time may hold. It is released when the process ends, however it
/// ends.
#[derive(Debug)]
pub struct Lock {
    #[expect(dead_code, reason = "it is locked for as long as it is open")]
    file: File,
    path: PathBuf,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Deleted while it is locked, so that a process that has opened it meanwhile finds it
        // deleted. A leftover file does no harm.
        fs::remove_file(&self.path).ok();
    }
}

impl Lock {
    /// Reports whether another process holds the lock.
    #[must_use]
    pub fn is_taken(path: &Path) -> bool {
        let file = File::open(path);
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Takes the lock, unless another process holds it. Returns `None` for a file that cannot be
    /// opened or locked: not every file system has locks.
    pub fn take(path: &Path, has_it: &str) -> anyhow::Result<Option<Self>> {
        loop {
            let Ok(file) = access::create(path) else {
                return Ok(None);
            };
            match file.try_lock() {
                Ok(()) if is_at(&file, path) => {
                    return Ok(Some(Self { file, path: path.to_owned() }));
                }
                // The process that held the lock deleted the file after it was opened here.
                Ok(()) => {}
                // It may be free in a moment: no usage error, after which a unit is not started again.
                Err(TryLockError::WouldBlock) => anyhow::bail!(has_it.to_owned()),
                Err(TryLockError::Error(_)) => return Ok(None),
            }
        }
    }
}

/// Reports whether an open file is the one at a path now.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let (Ok(opened), Ok(there)) = (file.metadata(), fs::metadata(path)) else {
        return false;
    };
    (opened.dev(), opened.ino()) == (there.dev(), there.ino())
}

/// On other systems, an open file is not deleted.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn an_empty_file_that_others_can_read_is_closed_to_them() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store.db");
        File::create(&path).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        DataFile::open(&path, Purpose::Create).unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    #[tokio::test]
    async fn what_is_read_at_once_does_not_see_what_is_written_meanwhile() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store.db");
        let tables = || store::Tables::prefixed("t-");
        let written = crate::engine::Engine::on_file(&path).unwrap().store(tables());
        let file = DataFile::open(&path, Purpose::ReadAtOnce).unwrap();
        written.create_tables().await.unwrap();
        let read = crate::engine::Engine::on_file(&file.path()).unwrap().store(tables());
        assert!(read.head().await.unwrap_err().is_missing_table());
        assert!(written.head().await.is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_journal_of_another_user_is_refused() {
        use std::os::unix::fs::{PermissionsExt as _, chown};

        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store.db");
        crate::engine::Engine::on_file(&path).unwrap();
        let journal = access::with_suffix(&path, "-wal");
        File::create(&journal).unwrap();
        if chown(&journal, Some(65534), None).is_err() {
            #[expect(clippy::print_stderr, reason = "a test that was skipped says why")]
            {
                eprintln!("skipped: only root can give a file to another user");
            }
            return;
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(&journal, fs::Permissions::from_mode(0o600)).unwrap();
        let refused = DataFile::open(&path, Purpose::Read).unwrap_err();
        let refused = refused.downcast::<Unusable>().unwrap().0;
        assert!(refused.contains("-wal belongs to another user than"), "{refused}");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_was_deleted_after_it_was_opened_is_not_the_lock() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store.lock");
        let opened = File::create(&path).unwrap();
        assert!(is_at(&opened, &path));
        fs::remove_file(&path).unwrap();
        assert!(!is_at(&opened, &path));
        File::create(&path).unwrap();
        assert!(!is_at(&opened, &path));
    }
}
