package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The states of what a worker needs of a Temporal server.
const (
	// Present is as it should be.
	Present = "present"
	// Created was missing.
	Created = "created"
	// Changed was there and not as it should be.
	Changed = "changed"
	// Missing is not there, and nobody was to create it.
	Missing = "missing"
	// Different is not as it should be, and nobody was to change it.
	Different = "different"
)

// Part is something that a worker needs of a Temporal server.
type Part struct {
	// Kind is namespace, retention or search attribute.
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	State string `json:"state"`
	// Detail says what is wrong, or what has been changed.
	Detail string `json:"detail,omitempty"`
}

// Preparation says what a namespace should be like.
type Preparation struct {
	// Attributes are names of search attributes of type Keyword.
	Attributes []string
	// Retention is for how long the histories of closed workflows are kept at least.
	Retention time.Duration
	// Check only looks.
	Check bool
}

// namespaceWithin is how long a new namespace takes at most until all parts of the server know it, and askAgain how often it
// is looked for. Servers read the list of namespaces every two to ten seconds.
const (
	namespaceWithin = time.Minute
	askAgain        = 500 * time.Millisecond
)

// Prepare makes the namespace what a worker needs: it creates the namespace and the search attributes that are missing, and
// raises a retention that is too short. It removes nothing and shortens nothing, so it may be repeated. It reports each part
// as soon as it is known.
func (s *Server) Prepare(ctx context.Context, want Preparation, report func(Part)) error {
	there, err := s.Client.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: s.namespace})
	var unknown *serviceerror.NamespaceNotFound
	switch {
	case errors.As(err, &unknown) && want.Check:
		report(Part{Kind: "namespace", Name: s.namespace, State: Missing})
		return nil // whatever belongs to it is missing too
	case errors.As(err, &unknown):
		if err := s.register(ctx, want.Retention); err != nil {
			return err
		}
		report(Part{Kind: "namespace", Name: s.namespace, State: Created})
		report(Part{Kind: "retention", Name: s.namespace, State: Created, Detail: want.Retention.String()})
	case err != nil:
		return refused(s.address, s.namespace, err)
	default:
		report(Part{Kind: "namespace", Name: s.namespace, State: Present})
		if err := s.retain(ctx, there.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(), want, report); err != nil {
			return err
		}
	}
	return s.addAttributes(ctx, want, report)
}

// register creates the namespace and waits until the server uses it.
func (s *Server) register(ctx context.Context, retention time.Duration) error {
	_, err := s.Client.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: s.namespace, Description: "The nodes of Kubernetes clusters, by Tenon.", WorkflowExecutionRetentionPeriod: durationpb.New(retention)})
	var exists *serviceerror.NamespaceAlreadyExists
	if err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("create the namespace %q at %s; on Temporal Cloud, namespaces are created in its console or with tcld: %w", s.namespace, s.address, err)
	}
	ctx, cancel := context.WithTimeout(ctx, namespaceWithin)
	defer cancel()
	for {
		_, err := s.Client.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: s.namespace})
		var unknown *serviceerror.NamespaceNotFound
		if !errors.As(err, &unknown) {
			return nil // other errors show again when the list is needed
		}
		if smithytime.SleepWithContext(ctx, askAgain) != nil {
			return fmt.Errorf("the namespace %q was created, but the server at %s does not use it yet; try again in a minute: %w", s.namespace, s.address, err)
		}
	}
}

// retain makes sure that closed workflows are kept for long enough.
func (s *Server) retain(ctx context.Context, now time.Duration, want Preparation, report func(Part)) error {
	part := Part{Kind: "retention", Name: s.namespace, State: Present, Detail: now.String()}
	switch {
	case now >= want.Retention:
	case want.Check:
		part.State, part.Detail = Different, fmt.Sprintf("%s, wanted at least %s", now, want.Retention)
	default:
		_, err := s.Client.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
			Namespace: s.namespace, Config: &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(want.Retention)}})
		if err != nil {
			return fmt.Errorf("keep the closed workflows of the namespace %q for %s instead of %s: %w", s.namespace, want.Retention, now, err)
		}
		part.State, part.Detail = Changed, fmt.Sprintf("%s, was %s", want.Retention, now)
	}
	report(part)
	return nil
}

// addAttributes registers the search attributes that are missing, all at once.
func (s *Server) addAttributes(ctx context.Context, want Preparation, report func(Part)) error {
	known, err := s.Client.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: s.namespace})
	if err != nil {
		return fmt.Errorf("list the search attributes of the namespace %q: %w", s.namespace, err)
	}
	missing := map[string]enums.IndexedValueType{}
	var parts []Part
	for _, name := range slices.Sorted(slices.Values(want.Attributes)) {
		part := Part{Kind: "search attribute", Name: name, State: Present}
		switch has := known.GetCustomAttributes()[name]; {
		case has == enums.INDEXED_VALUE_TYPE_KEYWORD:
		case has != enums.INDEXED_VALUE_TYPE_UNSPECIFIED:
			part.State, part.Detail = Different, fmt.Sprintf("its type is %s and must be Keyword; Temporal cannot change the type of a search attribute: remove it, or use another namespace", has)
		case want.Check:
			part.State = Missing
		default:
			part.State = Created
			missing[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
		}
		parts = append(parts, part)
	}
	if len(missing) > 0 {
		_, err := s.Client.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: s.namespace, SearchAttributes: missing})
		if err != nil {
			return fmt.Errorf("add search attributes to the namespace %q; on Temporal Cloud, they are added in its console or with tcld: %w", s.namespace, err)
		}
	}
	for _, part := range parts {
		report(part)
	}
	return nil
}
