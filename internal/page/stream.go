package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// idleEvery is how often the cluster is looked at while nobody reads, for the record of what it has cost.
	idleEvery = 5 * time.Minute
	// maxReaders bounds the readers at once, and behind how many events one may fall back before it has to begin anew.
	maxReaders, behind = 64, 16
	// aliveEvery is how often a reader hears something even if nothing changes, and writeFor how long it may take to hear it.
	aliveEvery, writeFor = 15 * time.Second, 20 * time.Second
)

// Source looks at the cluster. Only one goroutine calls it. It must not wait for anything outside of this process.
type Source interface {
	// Look returns what a view is made of. watched says that somebody reads the page, so that costlier parts are worth
	// keeping up to date.
	Look(ctx context.Context, watched bool) view.Input
}

// stream tells readers what changes.
type stream struct {
	source  Source
	builder *view.Builder
	links   string
	every   time.Duration
	// joining are readers that have come, leaving those that have gone.
	joining, leaving chan *reader

	mu       sync.Mutex
	last     *view.Cluster
	snapshot *plan.Snapshot
}

// reader is one open connection. Its channel is closed if it cannot keep up.
type reader struct{ events chan []byte }

func newStream(cluster string, source Source, links string, every time.Duration) *stream {
	if every <= 0 {
		every = time.Second
	}
	return &stream{source: source, builder: view.NewBuilder(cluster), links: links, every: every, joining: make(chan *reader), leaving: make(chan *reader)}
}

// run looks at the cluster and tells readers until ctx ends.
func (s *stream) run(ctx context.Context) error {
	var readers []*reader
	watched, idle := time.NewTicker(s.every), time.NewTicker(idleEvery)
	defer watched.Stop()
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			for _, r := range readers {
				close(r.events)
			}
			return ctx.Err()
		case r := <-s.joining:
			// Others hear first what the new reader's view already has.
			readers = s.tell(readers, s.look(ctx, true))
			whole, err := event("view", map[string]any{"view": s.last, "temporal": s.links})
			if err != nil || len(readers) >= maxReaders {
				close(r.events)
				continue
			}
			r.events <- whole // its channel is empty and has room
			readers = append(readers, r)
		case r := <-s.leaving:
			readers = slices.DeleteFunc(readers, func(other *reader) bool { return other == r })
		case <-watched.C:
			if len(readers) > 0 {
				readers = s.tell(readers, s.look(ctx, true))
			}
		case <-idle.C:
			if len(readers) == 0 {
				s.look(ctx, false)
			}
		}
	}
}

// look makes a new view, and returns the event that tells what has changed since the last one; nil if nothing has.
func (s *stream) look(ctx context.Context, watched bool) []byte {
	in := s.source.Look(ctx, watched)
	now := s.builder.Build(in)
	s.mu.Lock()
	old := s.last
	s.last, s.snapshot = now, in.Snapshot
	s.mu.Unlock()
	if old == nil || old == now {
		return nil
	}
	delta, changed := view.Since(old, now)
	if !changed {
		return nil
	}
	encoded, err := event("delta", delta)
	if err != nil {
		return nil // a delta consists of text, numbers and times
	}
	return encoded
}

// tell passes an event to all readers, and returns those that could take it.
func (s *stream) tell(readers []*reader, event []byte) []*reader {
	if event == nil {
		return readers
	}
	return slices.DeleteFunc(readers, func(r *reader) bool {
		select {
		case r.events <- event:
			return false
		default:
			close(r.events)
			return true
		}
	})
}

// event encodes a server-sent event. JSON has no line breaks.
func event(name string, data any) ([]byte, error) {
	encoded, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", name, err)
	}
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, encoded), nil
}

// details returns the details of a node of the last view, by its key.
func (s *stream) details(key string) (view.Details, bool) {
	s.mu.Lock()
	last, snapshot := s.last, s.snapshot
	s.mu.Unlock()
	if last == nil {
		return view.Details{}, false
	}
	at, seen := slices.BinarySearchFunc(last.Nodes, key, func(n *view.Node, key string) int { return strings.Compare(n.Key, key) })
	from := slices.IndexFunc(snapshot.Nodes, func(n *plan.Node) bool { return n.Key() == key })
	if !seen || from < 0 {
		return view.Details{}, false
	}
	return view.DetailsOf(snapshot.Nodes[from], last.Nodes[at]), true
}

// serve streams to one reader until it goes, or until the loop ends.
func (s *stream) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // proxies must not collect events
	if r.Method == http.MethodHead {
		return
	}
	me := &reader{events: make(chan []byte, behind)}
	select {
	case s.joining <- me:
	case <-r.Context().Done():
		return
	}
	// The loop may be telling something just now, or may have ended.
	defer func() {
		for {
			select {
			case s.leaving <- me:
				return
			case _, more := <-me.events:
				if !more {
					return
				}
			}
		}
	}()
	connection := http.NewResponseController(w)
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	for {
		text := []byte(": alive\n\n")
		select {
		case told, more := <-me.events:
			if !more {
				return
			}
			text = told
		case <-alive.C:
		case <-r.Context().Done():
			return
		}
		if connection.SetWriteDeadline(time.Now().Add(writeFor)) != nil {
			return
		}
		if _, err := w.Write(text); err != nil {
			return
		}
		if connection.Flush() != nil {
			return
		}
	}
}
