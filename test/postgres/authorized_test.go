package postgres_test

import (
	"os"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/tenon-sh/tenon/deploy"
	"github.com/tenon-sh/tenon/internal/temporal"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
)

// tokenFile is the file of the worker's token.
type tokenFile string

// write replaces the token, as the kubelet replaces what a Secret holds: at once.
func (f tokenFile) write(w *world.World, token string) {
	w.T.Helper()
	partial := string(f) + ".partial"
	if err := os.WriteFile(partial, []byte(token+"\n"), 0o600); err != nil {
		w.T.Fatal(err)
	}
	if err := os.Rename(partial, string(f)); err != nil {
		w.T.Fatal(err)
	}
}

// authorized gives the server Temporal's own authorizer and claim mapper, as deploy/temporal/README.md describes it. The worker's
// token is at first for another namespace, and is then replaced in its file: from then on the worker works. Commands with other
// tokens may do what the README says.
func authorized(w *world.World, guard *world.Guard, file tokenFile) {
	values, err := deploy.Temporal()
	if err != nil {
		w.T.Fatal(err)
	}
	authorization := values.Server.Config.Authorization
	trusted := newIssuer(w.T)
	file.write(w, trusted.token(time.Hour, "other:write"))
	w.Lab.Setenv(lab.Temporal,
		"TEMPORAL_AUTH_AUTHORIZER="+authorization.Authorizer, "TEMPORAL_AUTH_CLAIM_MAPPER="+authorization.ClaimMapper,
		"TEMPORAL_JWT_PERMISSIONS_CLAIM="+authorization.PermissionsClaimName, "TEMPORAL_JWT_KEY_REFRESH="+authorization.JWTKeyProvider.RefreshInterval,
		"TEMPORAL_JWT_KEY_SOURCE1="+trusted.publish(), "USE_INTERNAL_FRONTEND=true")
	if err := w.Lab.Reconfigure(w.Context(), lab.Temporal, "--service=frontend", "--service=internal-frontend", "--service=history", "--service=matching", "--service=worker"); err != nil {
		w.T.Fatal(err)
	}
	w.Await("the worker to be refused", time.Minute, func() (bool, string) {
		log, err := os.ReadFile(w.Lab.LogFile(lab.Worker))
		return strings.Contains(string(log), "Request unauthorized"), errorText(err)
	})
	w.Apply(pods("trusted", 1))
	file.write(w, trusted.token(time.Hour, "default:write"))
	w.AwaitRunning("trusted", 1, 2*time.Minute)

	node, pod := hosts(w, "trusted")[0], "trusted/"+w.Pods("trusted")[0].Name
	w.Apply(budget("trusted", 0))
	const hour, past = time.Hour, -time.Hour
	for _, test := range []struct {
		reason, token string
		args          []string
		refused       bool
	}{
		{"readers read nodes", trusted.token(hour, "default:read"), []string{"get", "nodes"}, false},
		{"readers read histories", trusted.token(hour, "default:read"), []string{"history", "node", node}, false},
		{"readers are told why a pod is where it is", trusted.token(hour, "default:read"), []string{"why", "pod", pod}, false},
		{"the planner is asked by an Update, which is a write", trusted.token(hour, "default:read"), []string{"why", "node", node}, true},
		{"readers see drains", trusted.token(hour, "default:read"), []string{"drain", "status"}, false},
		{"readers check the namespace", trusted.token(hour, "default:read"), []string{"setup", "--check", "--retention=24h"}, false},
		{"readers drain nothing", trusted.token(hour, "default:read"), []string{"drain", "--keep", node}, true},
		{"the role named worker is not even a reader's", trusted.token(hour, "default:worker"), []string{"get", "nodes"}, true},
		{"writers of another namespace see nothing of this one", trusted.token(hour, "other:write"), []string{"get", "nodes"}, true},
		{"nobody's token is refused", "", []string{"get", "nodes"}, true},
		{"a token that has expired", trusted.token(past, "default:write"), []string{"get", "nodes"}, true},
		{"a token of another issuer", newIssuer(w.T).token(hour, "default:write"), []string{"get", "nodes"}, true},
		{"writers raise no retention", trusted.token(hour, "default:write"), []string{"setup"}, true},
		{"administrators of the namespace do", trusted.token(hour, "default:admin"), []string{"setup"}, false},
		{"writers ask the planner", trusted.token(hour, "default:write"), []string{"why", "node", node}, false},
		{"writers drain", trusted.token(hour, "default:write"), []string{"drain", "--keep", node}, false},
		{"readers cancel no drain", trusted.token(hour, "default:read"), []string{"drain", "cancel", node}, true},
		{"writers do", trusted.token(hour, "default:write"), []string{"drain", "cancel", node}, false},
	} {
		command := w.Command(test.args...)
		command.Env = append(command.Env, "TEMPORAL_API_KEY="+test.token, "TEMPORAL_TLS=false")
		out, err := command.CombinedOutput()
		if refused := strings.Contains(string(out), "unauthorized"); refused != test.refused || (err != nil) != test.refused {
			w.T.Errorf("%s: tenon %s: %v\n%s", test.reason, strings.Join(test.args, " "), err, out)
		}
	}

	admin, err := client.Dial(client.Options{HostPort: w.Lab.TemporalAddress(), Credentials: client.NewAPIKeyStaticCredentials(trusted.token(hour, "default:read")),
		ConnectionOptions: client.ConnectionOptions{TLSDisabled: true}})
	if err != nil {
		w.T.Fatal(err)
	}
	defer admin.Close()
	w.Temporal = admin
	w.Apply(budget("trusted", 1))
	empty(w, guard, "trusted")
}

func errorText(err error) string {
	if err != nil {
		return err.Error()
	}
	return "its log does not say so"
}

// workerVariables are the environment of a worker whose token is in a file.
func (f tokenFile) workerVariables() []string {
	return []string{temporal.KeyFileVariable + "=" + string(f), "TEMPORAL_TLS=false"}
}
