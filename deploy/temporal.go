package deploy

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/yaml"
)

// TemporalValues are the values of deploy/temporal/values.yaml that decide how a Temporal server works, whatever it runs on.
// The laboratory sets up a server with them.
type TemporalValues struct {
	Server struct {
		Config struct {
			Persistence   TemporalPersistence   `json:"persistence"`
			Authorization TemporalAuthorization `json:"authorization"`
			Namespaces    struct {
				Create    bool `json:"create"`
				Namespace []struct {
					Name      string `json:"name"`
					Retention string `json:"retention"`
				} `json:"namespace"`
			} `json:"namespaces"`
		} `json:"config"`
		DynamicConfig map[string][]TemporalSetting `json:"dynamicConfig"`
	} `json:"server"`
}

// TemporalAuthorization is how a server judges requests; empty for one that refuses none.
type TemporalAuthorization struct {
	Authorizer           string `json:"authorizer"`
	ClaimMapper          string `json:"claimMapper"`
	PermissionsClaimName string `json:"permissionsClaimName"`
	JWTKeyProvider       struct {
		KeySourceURIs   []string `json:"keySourceURIs"`
		RefreshInterval string   `json:"refreshInterval"`
	} `json:"jwtKeyProvider"`
}

// TemporalPersistence is where a server keeps its data.
type TemporalPersistence struct {
	DefaultStore     string `json:"defaultStore"`
	VisibilityStore  string `json:"visibilityStore"`
	NumHistoryShards int    `json:"numHistoryShards"`
	Datastores       map[string]struct {
		SQL TemporalStore `json:"sql"`
	} `json:"datastores"`
}

// TemporalStore is one database of a server.
type TemporalStore struct {
	PluginName      string `json:"pluginName"`
	DatabaseName    string `json:"databaseName"`
	ConnectAddr     string `json:"connectAddr"`
	User            string `json:"user"`
	Password        string `json:"password"`
	ExistingSecret  string `json:"existingSecret"`
	MaxConns        int    `json:"maxConns"`
	MaxIdleConns    int    `json:"maxIdleConns"`
	MaxConnLifetime string `json:"maxConnLifetime"`
}

// TemporalSetting is a value of Temporal's dynamic configuration, and where it applies.
type TemporalSetting struct {
	Value       any            `json:"value"`
	Constraints map[string]any `json:"constraints,omitempty"`
}

// Temporal returns the values for Temporal's own Helm chart: those of values.yaml, and those that authorizer.yaml adds if a server
// is to have an authorizer.
func Temporal() (*TemporalValues, error) {
	var values TemporalValues
	for _, name := range []string{"temporal/values.yaml", "temporal/authorizer.yaml"} {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the values of Temporal's chart: %w", err)
		}
		if err := yaml.Unmarshal(data, &values); err != nil {
			return nil, fmt.Errorf("read the values of Temporal's chart (%s): %w", name, err)
		}
	}
	return &values, nil
}

// DynamicConfigFor returns the file of the server's dynamic configuration, with the settings for Tenon's namespace applied to
// another one.
func (v *TemporalValues) DynamicConfigFor(namespace string) ([]byte, error) {
	settings := map[string][]TemporalSetting{}
	for name, values := range v.Server.DynamicConfig {
		for _, setting := range values {
			if _, constrained := setting.Constraints["namespace"]; constrained {
				setting.Constraints = map[string]any{"namespace": namespace}
			}
			settings[name] = append(settings[name], setting)
		}
	}
	data, err := yaml.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("write Temporal's dynamic configuration: %w", err)
	}
	return bytes.TrimSpace(data), nil
}
