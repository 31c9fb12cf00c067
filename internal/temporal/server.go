package temporal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/tenon-sh/tenon/internal/codec"
)

// Server is a Temporal server that may not answer yet.
type Server struct {
	// Client connects when it is first used.
	Client             client.Client
	address, namespace string
	log                *zap.Logger
}

// Connect returns a server without contacting it. Payloads are encrypted with the keys. The SDK's metrics are counted in the
// registry.
func Connect(registry prometheus.Registerer, keys codec.Options, log *zap.Logger) (*Server, error) {
	options, _, err := configuration(log)
	if err != nil {
		return nil, err
	}
	if options.MetricsHandler, err = newMetrics(registry, log); err != nil {
		return nil, err
	}
	counted, err := newActions(registry)
	if err != nil {
		return nil, err
	}
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(counted.intercept))
	if err := encodeWith(&options, keys); err != nil {
		return nil, err
	}
	lazy, err := client.NewLazyClient(options)
	if err != nil {
		return nil, fmt.Errorf("configure the client of Temporal at %s: %w", options.HostPort, err)
	}
	return &Server{Client: lazy, address: options.HostPort, namespace: options.Namespace, log: log}, nil
}

// Namespace is the namespace of the configuration.
func (s *Server) Namespace() string { return s.namespace }

// Ask returns nil if the server answers for the namespace, which it reads from its database.
func (s *Server) Ask(ctx context.Context) error {
	_, err := s.Client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: s.namespace})
	if err != nil {
		return refused(s.address, s.namespace, err)
	}
	return nil
}

// CheckAttributes returns an error if the namespace lacks any of these search attributes, all of them Keywords. If the server refuses the request, it returns nil; a missing attribute then shows when a workflow is
// started.
func (s *Server) CheckAttributes(ctx context.Context, attributes []string) error {
	known, err := s.Client.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: s.namespace})
	if err != nil {
		s.log.Info("search attributes could not be checked", zap.Error(err))
		return nil
	}
	missing := slices.DeleteFunc(slices.Sorted(slices.Values(attributes)), func(name string) bool {
		return known.GetCustomAttributes()[name] == enums.INDEXED_VALUE_TYPE_KEYWORD
	})
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("the Temporal namespace %q lacks the search attributes %s of type Keyword; create them with tenon setup", s.namespace, strings.Join(missing, ", "))
}
