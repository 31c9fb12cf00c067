package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tenon-sh/tenon/deploy"
)

// temporalDynamicConfig is the name of the file of Temporal's dynamic configuration.
const temporalDynamicConfig = "temporal-dynamic.yaml"

// temporalServerPorts returns the listeners of Temporal's released server beside that of the frontend, and the names of the
// variables that set them.
func temporalServerPorts() []port {
	ports := make([]port, 0, len(temporalServerVariables))
	for _, variable := range temporalServerVariables {
		ports = append(ports, port(variable))
	}
	return ports
}

// temporalServerVariables name the ports in the environment of Temporal's released server.
var temporalServerVariables = []string{
	"FRONTEND_MEMBERSHIP_PORT", "FRONTEND_HTTP_PORT",
	"HISTORY_GRPC_PORT", "HISTORY_MEMBERSHIP_PORT",
	"MATCHING_GRPC_PORT", "MATCHING_MEMBERSHIP_PORT",
	"WORKER_GRPC_PORT", "WORKER_MEMBERSHIP_PORT",
	"INTERNAL_FRONTEND_GRPC_PORT", "INTERNAL_FRONTEND_MEMBERSHIP_PORT", "INTERNAL_FRONTEND_HTTP_PORT",
}

// temporalStore returns what deploy/temporal/values.yaml says about the database of Temporal's workflows.
func temporalStore() (deploy.TemporalStore, error) {
	values, err := deploy.Temporal()
	if err != nil {
		return deploy.TemporalStore{}, err
	}
	persistence := values.Server.Config.Persistence
	return persistence.Datastores[persistence.DefaultStore].SQL, nil
}

// temporalServer returns the spec of Temporal's released server, which takes its configuration from its environment as the
// image does.
func (c components) temporalServer() spec {
	values, err := deploy.Temporal()
	s := spec{
		name:    Temporal,
		needs:   []Component{Postgres},
		ports:   append(temporalServerPorts(), portTemporal, portTemporalUI),
		args:    []string{"--allow-no-auth", "start"},
		prepare: func(context.Context) error { return err },
		healthy: allOf(c.temporalPrepared, c.temporalServes),
	}
	if err != nil {
		return s
	}
	persistence := values.Server.Config.Persistence
	store, visibility := persistence.Datastores[persistence.DefaultStore].SQL, persistence.Datastores[persistence.VisibilityStore].SQL
	s.env = []string{
		"LOG_LEVEL=warn",
		"DB=" + store.PluginName,
		"POSTGRES_SEEDS=127.0.0.1",
		"DB_PORT=" + strconv.Itoa(c.state.Ports[portPostgres]),
		"POSTGRES_USER=" + store.User,
		"DBNAME=" + store.DatabaseName,
		"SQL_MAX_CONNS=" + strconv.Itoa(store.MaxConns),
		"SQL_MAX_IDLE_CONNS=" + strconv.Itoa(store.MaxIdleConns),
		"SQL_MAX_CONN_TIME=" + store.MaxConnLifetime,
		"VISIBILITY_DBNAME=" + visibility.DatabaseName,
		"SQL_VIS_MAX_CONNS=" + strconv.Itoa(visibility.MaxConns),
		"SQL_VIS_MAX_IDLE_CONNS=" + strconv.Itoa(visibility.MaxIdleConns),
		"SQL_VIS_MAX_CONN_TIME=" + visibility.MaxConnLifetime,
		"NUM_HISTORY_SHARDS=" + strconv.Itoa(persistence.NumHistoryShards),
		"BIND_ON_IP=127.0.0.1",
		"TEMPORAL_BROADCAST_ADDRESS=127.0.0.1",
		"FRONTEND_GRPC_PORT=" + strconv.Itoa(c.state.Ports[portTemporal]),
		"DYNAMIC_CONFIG_FILE_PATH=" + c.layout.config(temporalDynamicConfig),
	}
	for _, variable := range temporalServerVariables {
		s.env = append(s.env, variable+"="+strconv.Itoa(c.state.Ports[port(variable)]))
	}
	s.prepare = func(ctx context.Context) error { return c.prepareTemporalServer(ctx, values, store, visibility) }
	return s
}

// prepareTemporalServer writes the dynamic configuration, and creates both databases and their tables with Temporal's own
// tool unless that has been done.
func (c components) prepareTemporalServer(ctx context.Context, values *deploy.TemporalValues, stores ...deploy.TemporalStore) error {
	// A lab makes no outside calls.
	values.Server.DynamicConfig["frontend.enableServerVersionCheck"] = []deploy.TemporalSetting{{Value: false}}
	dynamic, err := values.DynamicConfigFor(client.DefaultNamespace)
	if err != nil {
		return err
	}
	if err := writeAtomically(c.layout.config(temporalDynamicConfig), dynamic); err != nil {
		return fmt.Errorf("writing Temporal's dynamic configuration: %w", err)
	}
	if _, err := os.Stat(c.layout.postgresReady()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for i, schema := range []string{"temporal", "visibility"} {
		for _, args := range [][]string{
			{"create-database"},
			{"setup-schema", "--version", "0.0"},
			{"update-schema", "--schema-name", "postgresql/v12/" + schema},
		} {
			if err := c.temporalSQL(ctx, stores[i], args...); err != nil {
				return err
			}
		}
	}
	return writeAtomically(c.layout.postgresReady(), nil)
}

// temporalSQL runs Temporal's tool for databases.
func (c components) temporalSQL(ctx context.Context, store deploy.TemporalStore, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(c.opts.Bin, "temporal-sql-tool"), append([]string{
		"--plugin", store.PluginName, "--endpoint", "127.0.0.1", "--port", strconv.Itoa(c.state.Ports[portPostgres]),
		"--user", store.User, "--database", store.DatabaseName,
	}, args...)...)
	cmd.Env = Environ()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("temporal-sql-tool %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}

// temporalPrepared checks that the default namespace and the search attributes are there, and creates what is missing, as
// the development server does by itself.
func (s site) temporalPrepared(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	connection, err := client.NewLazyClient(client.Options{HostPort: s.TemporalAddress(), Logger: discardLogger{}})
	if err != nil {
		return fmt.Errorf("connecting to Temporal: %w", err)
	}
	defer connection.Close()
	_, err = connection.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: client.DefaultNamespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if refused(err) {
		return nil // the server has an authorizer, and whoever has set that up has to prepare the namespace
	}
	if exists := new(serviceerror.NamespaceAlreadyExists); err != nil && !errors.As(err, &exists) {
		return fmt.Errorf("creating Temporal's namespace %s: %w", client.DefaultNamespace, err)
	}
	known, err := connection.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: client.DefaultNamespace})
	if err != nil {
		return fmt.Errorf("listing Temporal's search attributes: %w", err)
	}
	missing := map[string]enums.IndexedValueType{}
	for _, name := range searchAttributes() {
		if known.GetCustomAttributes()[name] != enums.INDEXED_VALUE_TYPE_KEYWORD {
			missing[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
		}
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = connection.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: client.DefaultNamespace, SearchAttributes: missing})
	if err != nil {
		return fmt.Errorf("adding search attributes to Temporal: %w", err)
	}
	return nil
}

// refused reports whether a server with an authorizer has refused a request of the lab's, which has no token. It serves then.
func refused(err error) bool {
	denied := new(serviceerror.PermissionDenied)
	return errors.As(err, &denied)
}
