package world

import (
	"context"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/worker"
)

// Observe watches some kinds of objects until the test ends, with its own connection. It calls a kind's function, which may
// be nil, for every object that is added, changed or deleted. It returns once the watches have begun. The objects are shared
// with the cache and must not be changed.
func (w *World) Observe(kinds map[client.Object]func(object any, deleted bool)) cache.Cache {
	w.T.Helper()
	config, err := w.Lab.RESTConfig()
	if err != nil {
		w.T.Fatal(err)
	}
	c, err := cache.New(config, cache.Options{Scheme: worker.Scheme(), DefaultUnsafeDisableDeepCopy: new(true)})
	if err != nil {
		w.T.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	for kind, handle := range kinds {
		informer, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			w.T.Fatal(err)
		}
		if handle == nil {
			continue
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { handle(object, false) },
			UpdateFunc: func(_, object any) { handle(object, false) },
			DeleteFunc: func(object any) {
				if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
					object = unknown.Obj
				}
				handle(object, true)
			},
		}); err != nil {
			w.T.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	w.T.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.T.Error(err)
		}
	})
	if !c.WaitForCacheSync(ctx) {
		w.T.Fatal("the watches did not begin")
	}
	return c
}
