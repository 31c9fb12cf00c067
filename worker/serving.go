package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tenon-sh/tenon/cluster"
)

// probes answers the kubelet's probes.
type probes struct {
	mirror *cluster.Mirror
	reach  *reach
	// synced says that the mirror has been complete once. Readiness does not depend on whether the worker acts: one that
	// only observes, because another controller holds the Lease, is ready to take over.
	synced atomic.Bool
}

// serve answers /healthz, which only says that the process runs, and /readyz, which says that it can do its work.
func (p *probes) serve(ctx context.Context, address string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := p.ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return serve(ctx, address, mux)
}

func (p *probes) ready() error {
	if !p.synced.Load() {
		return errors.New("the view of the cluster is not complete yet")
	}
	return errors.Join(p.mirror.Fresh(maxMirrorAge), p.reach.away(time.Now()))
}

// metricsHandler serves Prometheus metrics and, with profiles, Go's profiles of memory and time under the paths that Karpenter
// serves them at.
func metricsHandler(profiles bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.Handler())
	if profiles {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	return mux
}

// serve serves until ctx ends; without an address it only waits.
func serve(ctx context.Context, address string, handler http.Handler) error {
	if address == "" {
		<-ctx.Done()
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve on %s: %w", address, err)
	}
	return nil
}
