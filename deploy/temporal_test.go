package deploy_test

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestTemporalValues(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("temporal/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Server struct {
			Config struct {
				Persistence struct {
					DefaultStore, VisibilityStore string
					Datastores                    map[string]struct {
						SQL struct{ DatabaseName, ConnectAddr, ExistingSecret, Password string }
					}
				}
				Namespaces struct {
					Create    bool
					Namespace []struct{ Name, Retention string }
				}
			}
		}
	}
	if err := yaml.Unmarshal(data, &values); err != nil {
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
