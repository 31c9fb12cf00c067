package deploy_test

import (
	"testing"

	"github.com/tenon-sh/tenon/deploy"
)

func TestTemporalValues(t *testing.T) {
	t.Parallel()
	values, err := deploy.Temporal()
	if err != nil {
		t.Fatal(err)
	}
	config := values.Server.Config
	databases := map[string]bool{}
	for _, store := range []string{config.Persistence.DefaultStore, config.Persistence.VisibilityStore} {
		sql := config.Persistence.Datastores[store].SQL
		if sql.ConnectAddr == "" || sql.ExistingSecret == "" || sql.Password != "" {
			t.Errorf("store %s: want an address, and the password in a Secret; got %+v", store, sql)
		}
		databases[sql.DatabaseName] = true
	}
	if len(databases) != 2 {
		t.Errorf("databases are %v, want one for each store", databases)
	}
	if len(config.Namespaces.Namespace) != 1 || config.Namespaces.Namespace[0].Name != chartValues(t).Temporal.Namespace {
		t.Errorf("the namespaces %v are not the one the chart's worker uses", config.Namespaces.Namespace)
	}
}
