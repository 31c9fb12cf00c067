package cluster

import (
	"context"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/tenon-sh/tenon/plan"
)

// watches are the feeds that a mirror has opened, each with the function that keeps it up to date.
type watches struct {
	*shared
	log     *zap.Logger
	clients *clients
	all     []watched
	// err is why a feed could not be opened.
	err error
}

// watched is a feed as Run and the staleness check see it.
type watched struct {
	pulse *pulse
	run   func(context.Context)
}

// open prepares the feed of one resource and adds it to those that Run runs. If changed is nil, the feed's store sets
// it later.
func open[R any](w *watches, gv schema.GroupVersion, resource string, example runtime.Object, selector fields.Selector,
	reduce func(*plan.Interner, any) (R, error), key func(R) string, changed func(old, now R, existed, exists bool),
) *feed[R] {
	return openIn(w, gv, resource, metav1.NamespaceAll, example, selector, reduce, key, changed)
}

// openIn does the work of open for the objects of one namespace.
func openIn[R any](w *watches, gv schema.GroupVersion, resource, namespace string, example runtime.Object, selector fields.Selector,
	reduce func(*plan.Interner, any) (R, error), key func(R) string, changed func(old, now R, existed, exists bool),
) *feed[R] {
	if selector == nil {
		selector = fields.Everything()
	}
	f := &feed[R]{
		mu: &w.mu, reduce: func(obj any) (R, error) { return reduce(w.interner, obj) }, key: key, changed: changed, items: map[string]R{},
		pulse: pulse{resource: resource, clock: w.clock, listed: func() { w.publish(Event{Kind: synchronized}) }, advanced: func() {}},
	}
	client, err := w.clients.client(gv)
	if err != nil {
		w.err = err
		return f
	}
	from := &source{ListWatch: cache.NewFilteredListWatchFromClient(client, resource, namespace,
		func(options *metav1.ListOptions) { options.FieldSelector = selector.String() }), mu: &w.mu, pulse: &f.pulse}
	w.all = append(w.all, watched{pulse: &f.pulse, run: func(ctx context.Context) {
		cache.NewReflectorWithOptions(from, example, f, cache.ReflectorOptions{
			Name:            resource,
			TypeDescription: resource,
			Backoff:         reconnect(),
		}).RunWithContext(ctx)
	}})
	return f
}

// reconnect is the backoff of watches after a failure. The library's default waits up to a minute, as long as a whole
// scale-out; a mirror is one client with few watches and can retry sooner.
func reconnect() *wait.Backoff {
	return &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 5 * time.Second}
}
