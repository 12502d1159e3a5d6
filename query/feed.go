package query

import (
	"context"
	"sync"

	"github.com/parleyrun/parley/journal"
)

// feedPages is how many pages of changes are kept for watches that follow.
const feedPages = 32

// feed reads changes once for all the watches that stand at one position. A
// page that was read stays true: it holds what was recorded behind its
// position, all of it up to where it says to go on.
type feed struct {
	log journal.Reader

	mu    sync.Mutex
	pages map[journal.Position]*changePage
	order []journal.Position
}

// changePage is one read, done or under way.
type changePage struct {
	done    chan struct{}
	changes []journal.Change // read-only once done is closed
	next    journal.Position
	err     error
}

// after returns the changes after a position, at most changesPage batches'.
func (f *feed) after(ctx context.Context, at journal.Position) ([]journal.Change, journal.Position, error) {
	page, mine := f.page(at)
	if mine {
		page.changes, page.next, page.err = f.log.Changes(ctx, at, changesPage)
		if page.err != nil || len(page.changes) == 0 {
			f.forget(at, page) // nothing there yet: the next one has to look again
		}
		close(page.done)
		return page.changes, page.next, page.err
	}
	select {
	case <-page.done:
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	if page.err != nil || len(page.changes) == 0 { // whoever read may have been cut off, or too early
		return f.log.Changes(ctx, at, changesPage)
	}
	return page.changes, page.next, nil
}

func (f *feed) page(at journal.Position) (page *changePage, mine bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if page := f.pages[at]; page != nil {
		return page, false
	}
	if f.pages == nil {
		f.pages = map[journal.Position]*changePage{}
	}
	page = &changePage{done: make(chan struct{})}
	f.pages[at] = page
	f.order = append(f.order, at)
	if len(f.order) > feedPages {
		delete(f.pages, f.order[0])
		f.order = f.order[1:]
	}
	return page, true
}

func (f *feed) forget(at journal.Position, page *changePage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pages[at] == page {
		delete(f.pages, at)
		for i, p := range f.order {
			if p == at {
				f.order = append(f.order[:i:i], f.order[i+1:]...)
				break
			}
		}
	}
}
