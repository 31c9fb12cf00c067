package temporal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
)

// DialWorker is Dial for a process that starts workflows with search attributes, all of them Keywords: a namespace that
// lacks some is an error that says how to create them. Where the server does not let the process ask, it finds out when
// it starts a workflow.
func DialWorker(ctx context.Context, attributes []string, log *zap.Logger) (client.Client, error) {
	connection, namespace, err := dial(ctx, log)
	if err != nil {
		return nil, err
	}
	known, err := connection.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		log.Info("search attributes could not be checked", zap.Error(err))
		return connection, nil
	}
	missing := slices.DeleteFunc(slices.Sorted(slices.Values(attributes)), func(name string) bool {
		return known.GetCustomAttributes()[name] == enums.INDEXED_VALUE_TYPE_KEYWORD
	})
	if len(missing) > 0 {
		connection.Close()
		return nil, fmt.Errorf("the Temporal namespace %q lacks search attributes of type Keyword; create them with\n  temporal operator search-attribute create --namespace %s --type Keyword --name %s",
			namespace, namespace, strings.Join(missing, " --name "))
	}
	return connection, nil
}
