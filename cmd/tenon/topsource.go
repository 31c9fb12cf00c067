package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/cloud/kwok"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/cmd/internal/program"
	"github.com/tenon-sh/tenon/internal/ask"
	"github.com/tenon-sh/tenon/internal/live"
	"github.com/tenon-sh/tenon/internal/recorded"
	"github.com/tenon-sh/tenon/internal/temporal"
	"github.com/tenon-sh/tenon/internal/top"
	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// oldAfter is how old the mirror may be before the screen says so.
	oldAfter = 15 * time.Second
	// launchPricesEvery is how often the prices at the launch of new claims are read, where AWS's are not known.
	launchPricesEvery = 15 * time.Second
)

// topSource is what `tenon top` shows: the worker's own mirror, run here, and what a worker and Temporal are asked.
type topSource struct {
	cluster  workflows.Cluster
	kube     kube.Client
	temporal client.Client
	// away is why there is no connection to Temporal.
	away    error
	mirror  *cluster.Mirror
	source  *live.Source
	watches *lastWords
	// priced says that prices are to be shown.
	priced bool

	mu sync.Mutex
	// launched are the prices at the launch, by claim.
	launched map[string]float64
}

// open connects to the cluster and to Temporal. Without Temporal, the rest is shown.
func (f *topFlags) open(ctx context.Context, kubernetes *rest.Config) (*topSource, error) {
	kubernetes = rest.CopyConfig(kubernetes)
	kubernetes.QPS = -1
	direct, err := kubeClient(kubernetes)
	if err != nil {
		return nil, err
	}
	kind := nodeclass.Kind()
	if f.provider == program.ProviderKwok {
		kind = kwok.Kind()
	}
	s := &topSource{cluster: workflows.Cluster(f.cluster), kube: direct, watches: &lastWords{}, priced: !f.noPrices, launched: map[string]float64{}}
	if s.mirror, err = cluster.NewMirror(kubernetes, cluster.Options{Kind: kind, Pauses: true, Log: s.watches.logger()}); err != nil {
		return nil, err
	}
	options := live.Options{Mirror: s.mirror, MaxAge: oldAfter, Recorded: s}
	if !f.noPrices {
		options.Types = typesOf(f.provider, f.cluster, direct)
	}
	if s.temporal, s.away = temporal.Dial(ctx, f.keys, zap.NewNop()); s.away == nil {
		worker := ask.Asker{Temporal: s.temporal, Cluster: s.cluster}
		options.Why = func(ctx context.Context, snapshot *plan.Snapshot) (map[types.UID]string, error) {
			return askWhy(ctx, worker, snapshot.Pending), nil
		}
		lately := recorded.NewLately(recorded.Reader{Temporal: s.temporal, Cluster: s.cluster})
		options.Recorded = lately
	}
	s.source = live.New(options)
	return s, nil
}

// Read implements live.Recorded where there is no connection to Temporal.
func (s *topSource) Read(context.Context) ([]*view.Workflow, []*view.Decision, error) {
	return nil, nil, s.away
}

// typesOf returns what reads instance types with their prices, as the worker does. It connects when it is first asked.
func typesOf(provider, name string, direct kube.Client) func(context.Context, cloud.NodeClass) ([]*cloud.InstanceType, error) {
	connect := sync.OnceValues(func() (cloud.Provider, error) {
		if provider == program.ProviderKwok {
			return kwok.New(kwok.Options{Cluster: name, Kube: direct})
		}
		return aws.New(context.Background(), aws.Options{Cluster: name})
	})
	return func(ctx context.Context, class cloud.NodeClass) ([]*cloud.InstanceType, error) {
		connected, err := connect()
		if err != nil {
			return nil, err
		}
		return connected.InstanceTypes(ctx, class)
	}
}

func (s *topSource) close() {
	if s.temporal != nil {
		s.temporal.Close()
	}
}

// run follows the cluster until ctx ends.
func (s *topSource) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.mirror.Run(ctx) })
	group.Go(func() error {
		if err := s.synced(ctx); err != nil {
			return ctx.Err() // whoever waits for it says so
		}
		s.source.Look(ctx, true) // somebody watches from the beginning
		return s.source.Run(ctx)
	})
	group.Go(func() error {
		again := time.NewTicker(launchPricesEvery)
		defer again.Stop()
		for {
			if s.source.Unpriced() != nil {
				s.readLaunchPrices(ctx)
			}
			select {
			case <-again.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	return group.Wait()
}

// synced waits until the whole cluster is known.
func (s *topSource) synced(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	if err := s.mirror.WaitSynced(ctx); err != nil {
		if said := s.watches.last(); said != "" && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("read the cluster: %w; the API server said: %s", err, said)
		}
		return fmt.Errorf("read the cluster: %w", err)
	}
	return nil
}

// waiting says what the first look waits for.
func (s *topSource) waiting() top.Waiting {
	why := ""
	if err := s.mirror.Fresh(oldAfter); err != nil {
		why = err.Error()
	}
	if said := s.watches.last(); said != "" {
		why += "\n" + said
	}
	return top.Waiting(why)
}

// readAll reads once what run reads in the background.
func (s *topSource) readAll(ctx context.Context) {
	s.source.ReadAll(ctx)
	if s.source.Unpriced() != nil {
		s.readLaunchPrices(ctx)
	}
}

// readLaunchPrices reads the prices at the launch of claims whose price is not known yet.
func (s *topSource) readLaunchPrices(ctx context.Context) {
	if s.temporal == nil {
		return
	}
	var missing []*plan.Node
	s.mu.Lock()
	known := maps.Clone(s.launched)
	s.mu.Unlock()
	for _, node := range s.mirror.Snapshot().Nodes {
		if node.Claim != "" && known[node.Claim] == 0 {
			missing = append(missing, node)
		}
	}
	prices, err := launchPrices(ctx, s.temporal, s.cluster, missing)
	if err != nil {
		return // ctx has ended
	}
	maps.Copy(known, prices)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.launched = known
}

// look makes the view of this moment.
func (s *topSource) look(ctx context.Context, builder *view.Builder) top.Look {
	in, unpriced := s.source.Look(ctx, true), ""
	if in.Prices == nil && s.priced {
		unpriced = "prices are being read ..."
	}
	if err := s.source.Unpriced(); err != nil {
		unpriced = "prices are those at the launch, as far as recorded: " + err.Error()
		s.mu.Lock()
		now, launched := in.Prices, s.launched
		s.mu.Unlock()
		in.Prices = func(n *plan.Node) view.Price {
			price := now(n)
			if price.PerHour == 0 {
				price.PerHour = launched[n.Claim]
			}
			return price
		}
	}
	return top.Look{View: builder.Build(in), Snapshot: in.Snapshot, Unpriced: unpriced}
}

// why says what `tenon why` says.
func (s *topSource) why(ctx context.Context, kind top.Kind, name string) (string, error) {
	if s.away != nil {
		return "", s.away
	}
	var said bytes.Buffer
	i := &inquiry{cluster: s.cluster, kube: s.kube, temporal: s.temporal, out: &said}
	if kind == top.KindNode {
		err := i.node(ctx, name)
		return said.String(), err
	}
	namespace, short, err := splitPod(name)
	if err == nil {
		err = i.pod(ctx, namespace, short)
	}
	return said.String(), err
}

// lastWords keeps the last error that was logged.
type lastWords struct {
	mu   sync.Mutex
	said string
}

func (l *lastWords) logger() *zap.Logger {
	encoder := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "message"})
	return zap.New(zapcore.NewCore(encoder, zapcore.AddSync(l), zapcore.ErrorLevel))
}

// Write implements io.Writer for one line of a log.
func (l *lastWords) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = oneLine(string(bytes.TrimSpace(line)))
	return len(line), nil
}

func (l *lastWords) last() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said
}
