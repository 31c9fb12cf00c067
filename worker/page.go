package worker

import (
	"context"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/internal/ask"
	"github.com/tenon-sh/tenon/internal/live"
	"github.com/tenon-sh/tenon/internal/page"
	"github.com/tenon-sh/tenon/internal/recorded"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// servePage serves the page if it has an address.
func servePage(ctx context.Context, config Config, to Connections, mirror live.Mirror, why func(context.Context) (map[types.UID]string, error), log *zap.Logger) error {
	if config.UIAddress == "" {
		<-ctx.Done()
		return nil
	}
	name := workflows.Cluster(config.Cluster)
	source := live.New(live.Options{Mirror: mirror, MaxAge: maxMirrorAge, Types: to.Cloud.InstanceTypes, Recorded: recorded.NewLately(recorded.Reader{Temporal: to.Temporal, Cluster: name}),
		Why: func(ctx context.Context, _ *plan.Snapshot) (map[types.UID]string, error) { return why(ctx) }, Log: log})
	served, err := page.New(page.Options{Cluster: config.Cluster, Source: source, Asker: ask.Asker{Temporal: to.Temporal, Cluster: name},
		TokenFile: config.UITokenFile, TemporalUI: config.UITemporalURL, Namespace: to.Namespace, Log: log})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return served.Run(ctx) })
	group.Go(func() error { return serve(ctx, config.UIAddress, served.Handler()) })
	group.Go(func() error { return source.Run(ctx) })
	return group.Wait()
}
