package ec2sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/cloud/catalogue"
)

// Server is a simulated AWS account with one region. It is an http.Handler; Start serves it on an address of its own.
type Server struct {
	*parts
	opts     Options
	log      *zap.Logger
	calls    *callLog
	handlers map[string]map[string]handler // by service and action
	kubelets *kubelets                     // nil: nothing joins a cluster

	listener net.Listener
	http     *http.Server
	stop     context.CancelFunc
	done     sync.WaitGroup
}

// New returns a simulator, with the state of Options.StateFile if there is one. It does not listen yet.
func New(opts Options) (*Server, error) {
	opts.fill()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	types, err := catalogue.LoadOrBuiltin(opts.CatalogueFile)
	if err != nil {
		return nil, err
	}
	account, err := opts.account()
	if err != nil {
		return nil, err
	}
	j := newJournal(opts.StateFile)
	s := &Server{parts: newParts(&opts, account, types, j), opts: opts, log: opts.Log, calls: newCallLog()}
	s.handlers = s.actions()
	if err := j.open(); err != nil {
		return nil, err
	}
	if err := s.begin(&opts); err != nil {
		return nil, errors.Join(err, j.close())
	}
	if opts.Kubernetes != nil {
		s.kubelets = s.newKubelets(&opts)
	}
	return s, nil
}

// Start listens and serves in the background until Close, and registers instances with the cluster.
func (s *Server) Start() error {
	listener, err := net.Listen("tcp", s.opts.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.listener, s.stop = listener, stop
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: 30 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog: zap.NewStdLog(s.log),
	}
	s.done.Go(func() {
		if err := s.http.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("serve", zap.Error(err))
		}
	})
	if s.kubelets != nil {
		s.done.Go(func() { s.kubelets.run(ctx) })
	}
	s.log.Info("simulated AWS is listening", zap.String("url", s.URL()), zap.String("cluster", s.opts.Cluster),
		zap.String("region", s.opts.Region), zap.Int("instanceTypes", len(s.types.catalogue.Types())))
	return nil
}

// URL returns the address for AWS_ENDPOINT_URL. It is empty before Start.
func (s *Server) URL() string {
	if s.listener == nil {
		return ""
	}
	return "http://" + s.listener.Addr().String()
}

// Close stops serving, aborts open requests and closes the state file. Instances stay as they are.
func (s *Server) Close() error {
	var err error
	if s.http != nil {
		s.stop()
		err = s.http.Close()
	}
	s.done.Wait()
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	return errors.Join(err, s.guard.journal.close())
}
