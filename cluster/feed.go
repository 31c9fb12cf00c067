package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// settling is how long a watch that was resumed after a gap does not count as current: the changes of the gap are still
// on their way.
const settling = time.Second

// feed mirrors one resource of the API server. It is the store that a client-go Reflector fills: an object is reduced
// when it is decoded, and the original becomes garbage at once; there is no second store behind it. All fields but the
// constant ones are guarded by the mirror's lock.
type feed[R any] struct {
	mu *sync.RWMutex
	// reduce converts an API object into the form that is kept.
	reduce func(obj any) (R, error)
	// key names an object within its resource.
	key func(R) string
	// changed is called for every change, with the lock held. The zero value of R means that there is no object.
	changed func(old, now R, existed, exists bool)

	items map[string]R
	pulse pulse
}

// pulse is what a feed knows about its own freshness.
type pulse struct {
	resource string
	clock    clock.PassiveClock
	// version is the resourceVersion up to which everything has been seen; empty until the first list is complete.
	version string
	// streams counts the open watches; the store is current while one is open and replacing is false.
	streams   int
	replacing bool
	// settled is the time from which the open watch is taken to have delivered the changes it missed.
	settled time.Time
	// current is the last time at which the store was known to be current, while it is not.
	current time.Time
	// first is when the first list was complete.
	first time.Time
	// listed is called when the first list is complete, with the lock held.
	listed func()
	// advanced is called when version has changed, with the lock held.
	advanced func()
	// idle says that the resource is not watched, because it is not served or not needed. Its store is then empty.
	idle bool
	// unserved is called when the API server does not serve the resource; nil where it always does.
	unserved func()
}

// synced says that the resource has been listed completely at least once.
func (p *pulse) synced() bool { return p.version != "" }

// asOf is the time up to which the feed has certainly seen every change.
func (p *pulse) asOf(now time.Time) time.Time {
	if p.streams > 0 && !p.replacing && !now.Before(p.settled) {
		return now
	}
	return p.current
}

// reached says that everything up to a resourceVersion has been seen. It is false for versions that cannot be compared.
func (p *pulse) reached(version string) bool {
	return p.version != "" && atLeast(p.version, version)
}

// atLeast says that a resourceVersion is not older than another. It is false for versions that cannot be compared.
func atLeast(version, other string) bool {
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order >= 0
}

func (p *pulse) advance(version string) {
	if version == "" || version == p.version {
		return
	}
	if !p.synced() {
		p.first = p.clock.Now()
		defer p.listed()
	}
	p.version = version
	p.advanced()
}

// opened is called when the API server has accepted a watch. With initial, the watch sends the initial state first,
// which replaces the store later.
func (p *pulse) opened(initial bool) {
	now := p.clock.Now()
	p.current = p.asOf(now)
	p.streams++
	p.replacing = initial
	p.settled = now
	if p.synced() && now.Sub(p.current) > settling {
		p.settled = now.Add(settling)
	}
}

func (p *pulse) closed() {
	p.current = p.asOf(p.clock.Now())
	p.streams--
}

// The methods below implement cache.TransformingStore and cache.ResourceVersionUpdater for the Reflector.

// Transformer lets the Reflector reduce objects in its temporary store while the initial state streams in.
func (f *feed[R]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return f.reduced(obj) }
}

func (f *feed[R]) reduced(obj any) (R, error) {
	if done, ok := obj.(R); ok {
		// A reduced object that is still a complete API object cannot be told from an unreduced one; reducing it twice
		// changes nothing.
		if _, complete := obj.(runtime.Object); !complete {
			return done, nil
		}
	}
	return f.reduce(obj)
}

// Add implements cache.ReflectorStore.
func (f *feed[R]) Add(obj any) error { return f.Update(obj) }

// Update implements cache.ReflectorStore.
func (f *feed[R]) Update(obj any) error {
	item, err := f.reduced(obj)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put(item)
	return nil
}

// Delete implements cache.ReflectorStore. The object is the last state the server knew; only its name matters.
func (f *feed[R]) Delete(obj any) error {
	item, err := f.reduced(obj)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(f.key(item))
	return nil
}

// Replace implements cache.ReflectorStore: the list is complete, and what is not in it is gone.
func (f *feed[R]) Replace(list []any, version string) error {
	items := make([]R, 0, len(list))
	listed := make(map[string]struct{}, len(list))
	for i, obj := range list {
		item, err := f.reduced(obj)
		if err != nil {
			return err
		}
		list[i] = nil
		items = append(items, item)
		listed[f.key(item)] = struct{}{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for key := range f.items {
		if _, still := listed[key]; !still {
			f.drop(key)
		}
	}
	for _, item := range items {
		f.put(item)
	}
	f.pulse.replacing = false
	f.pulse.current = f.pulse.clock.Now()
	f.pulse.advance(version)
	return nil
}

// Resync implements cache.ReflectorStore. It does nothing: no object needs periodic reprocessing.
func (f *feed[R]) Resync() error { return nil }

// UpdateResourceVersion implements cache.ResourceVersionUpdater. The Reflector calls it after every event, bookmarks
// included.
func (f *feed[R]) UpdateResourceVersion(version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pulse.advance(version)
}

func (f *feed[R]) put(item R) {
	key := f.key(item)
	old, existed := f.items[key]
	f.items[key] = item
	f.changed(old, item, existed, true)
}

func (f *feed[R]) drop(key string) {
	old, existed := f.items[key]
	if !existed {
		return
	}
	delete(f.items, key)
	var none R
	f.changed(old, none, true, false)
}

// emptied drops everything a feed holds. The lock is held.
func (f *feed[R]) emptied() {
	for key := range f.items {
		f.drop(key)
	}
}

// sorted returns the values of a map in the order of their keys.
func sorted[R any](items map[string]R) []R {
	values := make([]R, 0, len(items))
	for _, key := range slices.Sorted(maps.Keys(items)) {
		values = append(values, items[key])
	}
	return values
}

// source lists and watches one resource and notifies the feed's pulse when its watch opens and closes.
type source struct {
	*cache.ListWatch
	mu    *sync.RWMutex
	pulse *pulse
}

// WatchWithContext implements cache.WatcherWithContext.
func (s *source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	stream, err := s.ListWatch.WatchWithContext(ctx, options)
	if err != nil {
		s.missing(err)
		return nil, fmt.Errorf("watch %s: %w", s.pulse.resource, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pulse.opened(options.SendInitialEvents != nil && *options.SendInitialEvents)
	return &trackedStream{Interface: stream, source: s}, nil
}

// ListWithContext implements cache.ListerWithContext.
func (s *source) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := s.ListWatch.ListWithContext(ctx, options)
	s.missing(err)
	return list, err
}

// missing calls unserved if the API server does not know the resource.
func (s *source) missing(err error) {
	if !apierrors.IsNotFound(err) {
		return
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.pulse.unserved != nil {
		s.pulse.unserved()
	}
}

// trackedStream is a watch that records its end. The Reflector stops every watch it has finished with, also those that
// the server or the network ended.
type trackedStream struct {
	watch.Interface
	source *source
	once   sync.Once
}

// Stop implements watch.Interface.
func (t *trackedStream) Stop() {
	t.once.Do(func() {
		t.source.mu.Lock()
		t.source.pulse.closed()
		t.source.mu.Unlock()
	})
	t.Interface.Stop()
}
