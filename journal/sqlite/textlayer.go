package sqlite

import (
	"hash/crc32"
	"sync"

	sqlite3 "github.com/ncruces/go-sqlite3"
)

// The pages of the index carry a checksum each, which SQLite's layer for that
// writes and compares in the file itself (dialTexts). What stands in the WAL has
// none there that anybody would compare: SQLite looks at it after a crash, and
// not when a page is read, or moved into the file, where it would get a checksum
// as if it were sound. So the sums of those pages are kept here, in memory.

// In front of the first frame of a WAL, and of the page in each.
// https://sqlite.org/fileformat.html#the_write_ahead_log
const (
	walHeadBytes   = 32
	frameHeadBytes = 24
)

// walSums are the sums of the pages of one WAL, by where they stand in it. All
// connections to the index share them.
type walSums struct {
	mu    sync.Mutex
	pages map[int64]uint32
	users int
}

// textsWAL is the WAL of the index, as one connection has it open.
type textsWAL struct {
	*layerFile
	sums *walSums
}

// summed opens a WAL whose pages are compared with what was written.
func (l *layer) summed(f *layerFile) *textsWAL {
	l.mu.Lock()
	defer l.mu.Unlock()
	sums := l.sums[f.path]
	if sums == nil {
		sums = &walSums{pages: map[int64]uint32{}}
		l.sums[f.path] = sums
	}
	sums.users++
	return &textsWAL{f, sums}
}

// Close forgets the sums with the last connection: what the WAL holds by then is
// checked by SQLite when it is opened again.
func (f *textsWAL) Close() error {
	f.layer.mu.Lock()
	if f.sums.users--; f.sums.users == 0 && f.layer.sums[f.path] == f.sums {
		delete(f.layer.sums, f.path)
	}
	f.layer.mu.Unlock()
	return f.layerFile.Close()
}

// pageOf finds the page in what is read or written at an offset: SQLite does it
// with a page alone, or with the head of its frame. ok is false for heads alone.
func pageOf(p []byte, off int64) (page []byte, at int64, ok bool) {
	if len(p) == frameHeadBytes+pageBytes {
		p, off = p[frameHeadBytes:], off+frameHeadBytes
	}
	within := (off - walHeadBytes) % (frameHeadBytes + pageBytes)
	return p, off, len(p) == pageBytes && within == frameHeadBytes
}

// ReadAt refuses a page that is not what was written. One of before the file was
// opened was looked at by SQLite, which then reads all of them, and is remembered.
func (f *textsWAL) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.layerFile.ReadAt(p, off)
	page, at, ok := pageOf(p[:n], off)
	if err != nil || !ok {
		return n, err
	}
	sum := crc32.Checksum(page, castagnoli)
	f.sums.mu.Lock()
	defer f.sums.mu.Unlock()
	if was, known := f.sums.pages[at]; known && was != sum {
		return 0, sqlite3.IOERR_DATA
	}
	f.sums.pages[at] = sum
	return n, nil
}

func (f *textsWAL) WriteAt(p []byte, off int64) (int, error) {
	page, at, ok := pageOf(p, off)
	if !ok {
		return f.layerFile.WriteAt(p, off)
	}
	sum := crc32.Checksum(page, castagnoli)
	n, err := f.layerFile.WriteAt(p, off)
	f.sums.mu.Lock()
	defer f.sums.mu.Unlock()
	if f.sums.pages[at] = sum; err != nil {
		delete(f.sums.pages, at) // nobody knows what stands there
	}
	return n, err
}

func (f *textsWAL) Truncate(size int64) error {
	f.sums.mu.Lock()
	for at := range f.sums.pages {
		if at+pageBytes > size {
			delete(f.sums.pages, at)
		}
	}
	f.sums.mu.Unlock()
	return f.layerFile.Truncate(size)
}
