package why_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/recorded"
	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/test/world"
)

// freeAddress returns an address of this machine on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// tenonJSON runs a command with -o json and decodes what it prints.
func tenonJSON(t *testing.T, w *world.World, into any, args ...string) {
	t.Helper()
	out, err := w.Command(append(args, "-o", "json")...).Output()
	if err != nil {
		t.Fatalf("tenon %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("tenon %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// listsAndHistories asks tenon get and tenon history about a node that serves, and about pods that wait.
func listsAndHistories(t *testing.T, w *world.World, served, impossible story) {
	t.Helper()
	var nodes, claims []view.Node
	tenonJSON(t, w, &nodes, "get", "nodes")
	tenonJSON(t, w, &claims, "get", "claims", "--pool", "default")
	if len(nodes) != 1 || len(claims) != 1 || nodes[0].Name != served.Node || claims[0].Claim != served.NodeClaim || nodes[0].State != view.NodeServing ||
		nodes[0].PerHour != served.PricePerHour || nodes[0].InstanceType != served.InstanceType || nodes[0].Fill.CPU <= 0 {
		t.Errorf("tenon get nodes and claims say %+v and %+v, tenon why says %+v", nodes, claims, served)
	}
	var pods []view.Pod
	tenonJSON(t, w, &pods, "get", "pods")
	states := map[string]view.Pod{}
	for _, pod := range pods {
		states[pod.Name] = pod
	}
	if states["served"].Node != served.Node || states["gated"].State != view.PodGated || states["unjudged"].State != view.PodUnjudged ||
		states["impossible"].State != view.PodWaits || !strings.Contains(states["impossible"].Reason, impossible.Reasons[0].Message) {
		t.Errorf("tenon get pods says %+v", states)
	}
	if out, err := w.Tenon("get", "nodes"); err != nil || !strings.Contains(out, served.Node) || !strings.Contains(out, "1 nodes with") {
		t.Errorf("tenon get nodes: %v\n%s", err, out)
	}

	for _, args := range [][]string{{"history", "node", served.Node}, {"history", "claim", served.NodeClaim}} {
		var told recorded.Story
		tenonJSON(t, w, &told, args...)
		if len(told.Lives) != 1 || told.Lives[0].Claim != served.NodeClaim || told.Lives[0].PerHour != served.PricePerHour || told.Lives[0].Cost <= 0 {
			t.Errorf("tenon %s: the lives are %+v", strings.Join(args, " "), told.Lives)
		}
		var what []string
		for _, event := range told.Events {
			what = append(what, event.What)
		}
		if all := strings.Join(what, "\n"); !strings.Contains(all, "launch 1 for NodePool default") || !strings.Contains(all, "is launched: ") || !strings.Contains(all, " serves") {
			t.Errorf("tenon %s tells\n%s", strings.Join(args, " "), all)
		}
	}
	if out, err := w.Tenon("history", "pod", "default/served"); err != nil || !strings.Contains(out, "is bound to node "+served.Node) {
		t.Errorf("tenon history pod: %v\n%s", err, out)
	}
	if out, err := w.Tenon("history", "node", "none"); err == nil || !strings.Contains(out, "remembers a node or NodeClaim none") {
		t.Errorf("a wrong name is to be said to be one: %v\n%s", err, out)
	}
}

// watched is the page of a running worker.
type watched struct{ address, token string }

// get asks the page as a reader does who has the token.
func (p watched) get(ctx context.Context, t *testing.T, path string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+p.token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("the page: %v", err)
	}
	return answer
}

// watchable reads the page of a running worker: it knows the node with its price, why a pod waits, and the launch, and asks
// as tenon why does.
func watchable(t *testing.T, w *world.World, page watched, served, impossible story) {
	t.Helper()
	// A new reader gets the whole view. What costs something is read only from the time on at which somebody watches.
	look := func() (seen view.Cluster, watching context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		answer := page.get(ctx, t, "/api/events")
		t.Cleanup(func() { _ = answer.Body.Close() })
		lines := bufio.NewReader(answer.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("the page's stream: %v", err)
			}
			if data, is := strings.CutPrefix(line, "data: "); is {
				var first struct {
					View view.Cluster `json:"view"`
				}
				if err := json.Unmarshal([]byte(data), &first); err != nil {
					t.Fatal(err)
				}
				return first.View, cancel
			}
		}
	}
	_, stop := look()
	defer stop()
	w.Await("the page knows everything", time.Minute, func() (bool, string) {
		seen, stop := look()
		stop()
		reason, launched := "", false
		for _, pod := range seen.Pending {
			if pod.Name == "impossible" {
				reason = pod.Reason
			}
		}
		for _, decision := range seen.Decisions {
			launched = launched || decision.Type == "Launch" && decision.What == "launch 1 for NodePool default" && decision.Outcome == view.OutcomeCompleted
		}
		state, _ := json.Marshal(seen)
		return len(seen.Nodes) == 1 && seen.Nodes[0].Name == served.Node && seen.Cost.PerHour > 0 && seen.Cost.PerHour == seen.Nodes[0].PerHour && launched &&
			strings.Contains(reason, impossible.Reasons[0].Message) && len(seen.Pools) == 1 && seen.Trouble == "" && seen.Stale == "", string(state)
	})
	for path, want := range map[string]string{
		"/api/why/pods/default/impossible":                   impossible.Reasons[0].Message,
		"/api/why/nodes/" + url.PathEscape(served.NodeClaim): `"managed":true`,
		"/api/nodes/" + url.PathEscape(served.NodeClaim):     "karpenter.sh/nodepool",
		"/": "<title>Tenon</title>",
	} {
		answer := page.get(t.Context(), t, path)
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(html(string(text)), want) {
			t.Errorf("%s: %s, %v; want %q in\n%s", path, answer.Status, err, want, text)
		}
	}
}

// html undoes what Go's encoder does to signs that mean something in HTML.
func html(text string) string {
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(text)
}
