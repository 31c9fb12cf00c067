package worker

import (
	"context"
	"fmt"

	"go.uber.org/zap"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/internal/tracing"
)

// trace exports traces of nodes until ctx ends, while this replica leads. Unless something says where they go, it does
// nothing.
func trace(ctx context.Context, config Config, mirror tracing.Mirror, pods kube.Reader, histories tracing.Histories, exported *exported, log *zap.Logger) error {
	options := config.tracing(config.BuildID)
	if !options.Enabled() {
		return nil
	}
	tracer, err := tracing.New(ctx, options, mirror, pods, histories, exported.leads.Load, log.Named(logs.Tracing))
	if err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	return tracer.Run(ctx)
}
