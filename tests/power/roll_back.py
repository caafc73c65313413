"""What a power cut leaves of a tree of files whose changes a journal has noted (journal.h): all
processes have ended; what no fsync has settled is forgotten, wholly or in part.

A file's sectors are each as after all, none, or some first ones of the writes that were under way, so
that pages are torn; names are as they were at one moment since the last that is settled."""

import os
import shutil
import struct

FILE_HEAD = struct.Struct("<QQ")
FILE_RECORD = struct.Struct("<QQQQ")
NAMES_HEAD = struct.Struct("<QQ")
NAME_RECORD = struct.Struct("<IIQQII")
CREATED, MADE_FOLDER, UNLINKED, RENAMED, REMOVED_FOLDER = 1, 2, 3, 4, 5


class Forgotten:
    """Counts what a cut has taken back."""

    def __init__(self):
        self.files = self.sectors = self.names = 0

    def __str__(self):
        return f"{self.sectors} sectors of {self.files} files, {self.names} names"


class FileRecord:
    def __init__(self, offset, length, size_before, old):
        self.offset, self.size_before, self.old = offset, size_before, old
        self.end = offset + length


class NameRecord:
    def __init__(self, fields, paths):
        self.change, self.settled, self.inode, self.number, self.replaced, _ = fields
        self.path, self.second = [os.fsdecode(path) for path in paths.split(b"\0")[:2]]


def read_file_journal(path):
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < FILE_HEAD.size:
        return []
    end = FILE_HEAD.size + FILE_HEAD.unpack_from(data)[0]
    records = []
    at = FILE_HEAD.size
    while at < end:
        offset, length, size_before, kept = FILE_RECORD.unpack_from(data, at)
        at += FILE_RECORD.size
        records.append(FileRecord(offset, length, size_before, data[at:at + kept]))
        at += kept
    return records


def read_names(path):
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        data = file.read()
    end = NAMES_HEAD.size + NAMES_HEAD.unpack_from(data)[0] if data else 0
    records = []
    at = NAMES_HEAD.size
    while at < end:
        fields = NAME_RECORD.unpack_from(data, at)
        at += NAME_RECORD.size
        records.append(NameRecord(fields, data[at:at + fields[-1]]))
        at += fields[-1]
    return records


def content_after(current, records, undone_at, undone_of_size, sector):
    """`undone_at(sector)` says how many of the last records a sector has not seen."""
    content = bytearray(current)
    sectors = set()
    longest = max([len(content), *(record.size_before for record in records)])
    content.extend(bytes(longest - len(content)))
    for number, record in enumerate(reversed(records)):
        end = min(record.end, longest)
        for at in range(record.offset - record.offset % sector, end, sector):
            if undone_at(at // sector) <= number:
                continue
            first, last = max(at, record.offset), min(at + sector, end)
            old = record.old[first - record.offset:last - record.offset]
            content[first:last] = old + bytes(last - first - len(old))
            sectors.add(at)
    if undone_of_size > 0:
        del content[records[len(records) - undone_of_size].size_before:]
    else:
        del content[len(current):]
    return bytes(content), sectors


class PowerCut:
    """`randomness`: None forgets all that can be forgotten."""

    def __init__(self, tree, journal, randomness=None, sector=512):
        self.tree, self.journal = tree, journal
        self.randomness = randomness
        self.sector = sector
        self.forgotten = Forgotten()

    def roll_back(self):
        self.roll_back_files()
        self.roll_back_names()
        for name in ("files", "kept"):
            for entry in os.scandir(os.path.join(self.journal, name)):
                os.unlink(entry.path)
        names = os.path.join(self.journal, "names")
        if os.path.exists(names):
            os.unlink(names)
        return self.forgotten

    def draw(self, count):
        """How many of the last records are undone."""
        if self.randomness is None:
            return count
        return self.randomness.choice((0, count, self.randomness.randint(0, count)))

    def files(self):
        """Paths by inode, those without a name in the tree, too."""
        found = {}
        for top in (os.path.join(self.journal, "kept"), self.tree):
            for folder, _, names in os.walk(top):
                for name in names:
                    path = os.path.join(folder, name)
                    if not os.path.islink(path):
                        found[os.stat(path).st_ino] = path
        return found

    def roll_back_files(self):
        for inode, path in self.files().items():
            journal = os.path.join(self.journal, "files", str(inode))
            records = read_file_journal(journal) if os.path.exists(journal) else []
            if records:
                self.roll_back_file(path, records)

    def roll_back_file(self, path, records):
        with open(path, "r+b") as file:
            current = file.read()
            depths = {}

            def undone_at(sector):
                if sector not in depths:
                    depths[sector] = self.draw(len(records))
                return depths[sector]

            content, sectors = content_after(current, records, undone_at,
                                             self.draw(len(records)), self.sector)
            if content != current:
                self.forgotten.files += 1
                self.forgotten.sectors += len(sectors)
                file.seek(0)
                file.write(content)
                file.truncate()

    def roll_back_names(self):
        records = read_names(os.path.join(self.journal, "names"))
        for record in reversed(records[len(records) - self.draw(len(records)):]):
            if not record.settled and self.undo_name(record):
                self.forgotten.names += 1

    def undo_name(self, record):
        """False when there is nothing to undo: it had not happened, or a later one has."""
        kept = os.path.join(self.journal, "kept", str(record.number))
        if record.change == CREATED:
            return self.has(record.path, record.inode) and remove(os.unlink, record.path)
        if record.change == MADE_FOLDER:
            return self.has(record.path, record.inode) and remove(os.rmdir, record.path)
        if record.change == REMOVED_FOLDER:
            return self.make_folder(record.path)
        if record.change == UNLINKED:
            return record.replaced != 0 and self.put_back(kept, record.path)
        if not self.has(record.second, record.inode) or os.path.lexists(record.path):
            return False
        os.rename(record.second, record.path)
        if record.replaced:
            self.put_back(kept, record.second)
        return True

    @staticmethod
    def has(path, inode):
        return os.path.lexists(path) and os.lstat(path).st_ino == inode

    @staticmethod
    def put_back(kept, path):
        if os.path.lexists(path) or not os.path.isdir(os.path.dirname(path)):
            return False
        os.link(kept, path)
        return True

    @staticmethod
    def make_folder(path):
        parent = os.path.dirname(path)
        if os.path.lexists(path) or not os.path.isdir(parent):
            return False
        os.mkdir(path, 0o700)
        status = os.stat(parent)
        os.chown(path, status.st_uid, status.st_gid)
        return True


def remove(how, path):
    """A folder with files that are settled is, too."""
    try:
        how(path)
    except OSError:
        return False
    return True


def clear(journal):
    """Makes the folder, for a tree that is on disk as it is."""
    shutil.rmtree(journal, ignore_errors=True)
    for name in ("files", "kept"):
        os.makedirs(os.path.join(journal, name))
