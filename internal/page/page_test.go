package page_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/internal/page"
	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/internal/view/viewtest"
	"github.com/tenon-sh/tenon/workflows"
)

const token = "a token of many characters"

// town is a made-up cluster as a page's source. A step lets things happen before each look.
type town struct {
	mu   sync.Mutex
	town *viewtest.Town
	step int
}

func (t *town) Look(context.Context, bool) view.Input {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.town.Step(t.step)
	return view.Input{Snapshot: t.town.Snapshot(), Prices: viewtest.Prices().Of, Reasons: t.town.Reasons()}
}

// asker answers that it does not know, and that it cannot be reached about the pod "lost".
type asker struct{}

func (asker) Pod(_ context.Context, _, name string) (workflows.PodAnswer, error) {
	if name == "lost" {
		return workflows.PodAnswer{}, errors.New("no worker answered")
	}
	return workflows.PodAnswer{Verdict: workflows.PodUnplaced, Reasons: []workflows.PodReason{{Message: "too large"}}}, nil
}

func (asker) Node(_ context.Context, name string) (workflows.NodeAnswer, error) {
	return workflows.NodeAnswer{Known: true, Claim: name, Managed: true}, nil
}

// serve starts the page of a small town.
func serve(t *testing.T, change func(*page.Options)) (address string, source *town) {
	t.Helper()
	source = &town{town: viewtest.New(1, 5, 30)}
	options := page.Options{Cluster: "blue", Source: source, Asker: asker{}, TemporalUI: "https://temporal.example/", Namespace: "tenon", Every: 20 * time.Millisecond}
	if change != nil {
		change(&options)
	}
	p, err := page.New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	server := httptest.NewServer(p.Handler())
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
	})
	return server.URL, source
}

func withToken(t *testing.T) func(*page.Options) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return func(options *page.Options) { options.TokenFile = file }
}

// reply is a response whose body is closed when the test ends.
type reply struct{ *http.Response }

func request(t *testing.T, method, address string, header http.Header) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header.Clone()
	if host := header.Get("Host"); host != "" {
		r.Host = host
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return reply{answer}
}

// everything are paths of every kind that the page serves.
var everything = []string{"/", "/page.js", "/page.css", "/api/session", "/api/events", "/api/nodes/x", "/api/why/nodes/x", "/api/why/pods/a/b", "/nothing"}

func TestPageHasNoMethodThatWrites(t *testing.T) {
	t.Parallel()
	address, _ := serve(t, nil)
	for _, path := range everything {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"} {
			if answer := request(t, method, address+path, http.Header{}); answer.StatusCode != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %s, want 405", method, path, answer.Status)
			}
		}
	}
}

func TestPageHeaders(t *testing.T) {
	t.Parallel()
	address, _ := serve(t, nil)
	for _, path := range everything {
		answer := request(t, "GET", address+path, http.Header{"Origin": {"https://elsewhere.example"}})
		policy := answer.Header.Get("Content-Security-Policy")
		directives := map[string]string{}
		for directive := range strings.SplitSeq(policy, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(directive), " ")
			directives[name] = value
		}
		if directives["default-src"] != "'none'" || directives["script-src"] != "'self'" || directives["style-src"] != "'self'" || directives["frame-ancestors"] != "'none'" ||
			strings.Contains(policy, "unsafe") {
			t.Errorf("%s has the policy %q", path, policy)
		}
		for name := range answer.Header {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s lets other sites read: %s", path, name)
			}
		}
		if answer.Header.Get("X-Content-Type-Options") != "nosniff" || strings.HasPrefix(path, "/api/") && answer.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s lacks headers: %v", path, answer.Header)
		}
	}
}

// TestPageLoadsNothingFromElsewhere reads the files that a browser gets: none names another address, and the document has no
// script, style or handler within it.
func TestPageLoadsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	address, _ := serve(t, nil)
	elsewhere := regexp.MustCompile(`(?i)https?://[^\s"']*|@import|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(`)
	for _, path := range []string{"/", "/page.js", "/model.js", "/list.js", "/grid.js", "/details.js", "/text.js", "/page.css", "/icon.svg"} {
		answer := request(t, "GET", address+path, http.Header{})
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", path, answer.Status, err)
		}
		for _, found := range elsewhere.FindAllString(string(text), -1) {
			if found != "http://www.w3.org/2000/svg" { // the name of SVG, which nothing loads
				t.Errorf("%s has %q", path, found)
			}
		}
		if path == "/" && regexp.MustCompile(`(?i)\son\w+=|<style|\sstyle=|<script(?:\s[^>]*)?>[^<]`).Match(text) {
			t.Error("the document has a script, a style or a handler within it")
		}
	}
}

func TestPageToken(t *testing.T) {
	t.Parallel()
	address, _ := serve(t, withToken(t))
	session := request(t, "GET", address+"/api/session", http.Header{"Authorization": {"Bearer " + token}})
	if session.StatusCode != http.StatusNoContent || len(session.Cookies()) != 1 {
		t.Fatalf("the token gives %s with %d cookies", session.Status, len(session.Cookies()))
	}
	given := session.Cookies()[0]
	if !given.HttpOnly || given.SameSite != http.SameSiteStrictMode || strings.Contains(given.Value, token) {
		t.Errorf("the cookie is %v", given)
	}
	for name, row := range map[string]struct {
		reason string
		header http.Header
		want   int
	}{
		"None":        {"a token is needed", http.Header{}, http.StatusUnauthorized},
		"Bearer":      {"programs send the token", http.Header{"Authorization": {"Bearer " + token}}, http.StatusOK},
		"Cookie":      {"browsers send what they got for it", http.Header{"Cookie": {given.Name + "=" + given.Value}}, http.StatusOK},
		"Wrong":       {"it is another token", http.Header{"Authorization": {"Bearer " + token + "x"}}, http.StatusUnauthorized},
		"Prefix":      {"the beginning is not enough", http.Header{"Authorization": {"Bearer " + token[:20]}}, http.StatusUnauthorized},
		"Empty":       {"nothing is not the token", http.Header{"Authorization": {"Bearer "}}, http.StatusUnauthorized},
		"Basic":       {"only bearers are known", http.Header{"Authorization": {"Basic " + token}}, http.StatusUnauthorized},
		"RawCookie":   {"the token itself is no cookie", http.Header{"Cookie": {given.Name + "=" + token}}, http.StatusUnauthorized},
		"WrongBearer": {"a wrong bearer is refused whatever the cookie says", http.Header{"Authorization": {"Bearer no"}, "Cookie": {given.Name + "=" + given.Value}}, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"/api/events", "/api/why/nodes/x", "/api/why/pods/a/b"} {
				method := "GET"
				if path == "/api/events" {
					method = "HEAD" // the stream itself does not end
				}
				if answer := request(t, method, address+path, row.header); answer.StatusCode != row.want {
					t.Errorf("%s: %s, want %d: %s", path, answer.Status, row.want, row.reason)
				}
			}
		})
	}
}

// TestPageTokenMayBeRotated shows that a new token counts at once and ends the cookies of the old one, and that a token that
// cannot be read lets nobody in.
func TestPageTokenMayBeRotated(t *testing.T) {
	t.Parallel()
	var file string
	address, _ := serve(t, func(options *page.Options) {
		withToken(t)(options)
		file = options.TokenFile
	})
	old := http.Header{"Authorization": {"Bearer " + token}}
	given := request(t, "GET", address+"/api/session", old).Cookies()[0]
	cookie := http.Header{"Cookie": {given.Name + "=" + given.Value}}
	const other = "another token of many characters"
	if err := os.WriteFile(file, []byte(other), 0o600); err != nil {
		t.Fatal(err)
	}
	status := func(header http.Header) int {
		return request(t, "GET", address+"/api/why/nodes/x", header).StatusCode
	}
	if status(old) != http.StatusUnauthorized || status(cookie) != http.StatusUnauthorized || status(http.Header{"Authorization": {"Bearer " + other}}) != http.StatusOK {
		t.Error("after the rotation the old token or its cookie counts, or the new token does not")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	for _, header := range []http.Header{old, {}, {"Authorization": {"Bearer "}}} {
		if status(header) != http.StatusUnauthorized {
			t.Errorf("without a readable token %v is admitted", header)
		}
	}
}

func TestPageOptions(t *testing.T) {
	t.Parallel()
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		reason  string
		options page.Options
		want    string
	}{
		"NoFile":     {"the file must exist", page.Options{TokenFile: short + "er"}, "read the page's token"},
		"Short":      {"a short token can be guessed", page.Options{TokenFile: short}, "at least 16"},
		"Scheme":     {"a link must not be a script", page.Options{TemporalUI: "javascript:alert(1)"}, "must begin with http"},
		"NotAddress": {"an address has a host", page.Options{TemporalUI: "temporal"}, "must begin with http"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := page.New(row.options); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want %q: %s", err, row.want, row.reason)
			}
		})
	}
}

// TestPageIsNotForOtherSites shows that scripts of other sites get nothing, neither across origins nor after their own name
// was made to resolve to the page.
func TestPageIsNotForOtherSites(t *testing.T) {
	t.Parallel()
	open, _ := serve(t, nil)
	locked, _ := serve(t, withToken(t))
	bearer := "Bearer " + token
	for name, row := range map[string]struct {
		reason  string
		address string
		header  http.Header
		want    int
	}{
		"CrossSite": {"browsers say where a request comes from", open, http.Header{"Sec-Fetch-Site": {"cross-site"}}, http.StatusForbidden},
		"SameSite":  {"a sibling domain is another site", open, http.Header{"Sec-Fetch-Site": {"same-site"}}, http.StatusForbidden},
		"Own":       {"the page's own requests", open, http.Header{"Sec-Fetch-Site": {"same-origin"}}, http.StatusOK},
		"Rebound":   {"the name of another site resolves to the page", open, http.Header{"Host": {"evil.example"}}, http.StatusForbidden},
		"Suffix":    {"a name that only ends like a private one", open, http.Header{"Host": {"localhost.evil.example"}}, http.StatusForbidden},
		"Localhost": {"kubectl port-forward", open, http.Header{"Host": {"localhost:8090"}}, http.StatusOK},
		"Service":   {"a name of the cluster", open, http.Header{"Host": {"tenon.kube-system.svc:8090"}}, http.StatusOK},
		"IPv6":      {"an address is nobody's name", open, http.Header{"Host": {"[::1]:8090"}}, http.StatusOK},
		"Published": {"with a token it may have a public name", locked, http.Header{"Host": {"tenon.example"}, "Authorization": {bearer}}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if answer := request(t, "GET", row.address+"/api/why/nodes/x", row.header); answer.StatusCode != row.want {
				t.Errorf("%s, want %d: %s", answer.Status, row.want, row.reason)
			}
		})
	}
}

// events reads server-sent events.
type events struct{ lines *bufio.Reader }

func (e *events) next(t *testing.T) (name string, data []byte) {
	t.Helper()
	for {
		line, err := e.lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("read the stream: %v", err)
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		switch {
		case bytes.HasPrefix(line, []byte("event: ")):
			name = string(line[len("event: "):])
		case bytes.HasPrefix(line, []byte("data: ")):
			data = line[len("data: "):]
		case len(line) == 0 && name != "":
			return name, data
		}
	}
}

// TestPageTellsChanges shows that a reader gets the whole view once and then only what has changed, and that two readers who
// came at different times end up with the same.
func TestPageTellsChanges(t *testing.T) {
	t.Parallel()
	address, source := serve(t, nil)
	first := &events{bufio.NewReader(request(t, "GET", address+"/api/events", http.Header{}).Body)}
	name, data := first.next(t)
	var whole struct {
		View     view.Cluster `json:"view"`
		Temporal string       `json:"temporal"`
	}
	if err := json.Unmarshal(data, &whole); err != nil || name != "view" {
		t.Fatalf("the first event is %s: %v", name, err)
	}
	if whole.Temporal != "https://temporal.example/namespaces/tenon/workflows/" || whole.View.Name != "blue" || len(whole.View.Nodes) != 5 {
		t.Errorf("links %q, cluster %q, %d nodes", whole.Temporal, whole.View.Name, len(whole.View.Nodes))
	}
	source.mu.Lock()
	source.step = 2
	source.mu.Unlock()
	nodes := map[string]*view.Node{}
	for _, n := range whole.View.Nodes {
		nodes[n.Key] = n
	}
	heard := whole.View.Generation
	told := func(upTo uint64) {
		for heard < upTo {
			name, data := first.next(t)
			var delta view.Delta
			if err := json.Unmarshal(data, &delta); err != nil || name != "delta" {
				t.Fatalf("a later event is %s: %v", name, err)
			}
			for _, key := range delta.NodesGone {
				delete(nodes, key)
			}
			for _, n := range delta.Nodes {
				nodes[n.Key] = n
			}
			heard = delta.Generation
		}
	}
	told(whole.View.Generation + 5)
	source.mu.Lock()
	source.step = 0
	source.mu.Unlock()
	second := &events{bufio.NewReader(request(t, "GET", address+"/api/events", http.Header{}).Body)}
	_, data = second.next(t)
	if err := json.Unmarshal(data, &whole); err != nil {
		t.Fatal(err)
	}
	told(whole.View.Generation)
	want := map[string]*view.Node{}
	for _, n := range whole.View.Nodes {
		want[n.Key] = n
	}
	if diff := cmp.Diff(want, nodes); diff != "" {
		t.Errorf("a reader of deltas knows something else (-late reader +early reader):\n%s", diff)
	}
}

func TestPageAnswersQuestions(t *testing.T) {
	t.Parallel()
	address, source := serve(t, nil)
	stream := &events{bufio.NewReader(request(t, "GET", address+"/api/events", http.Header{}).Body)}
	stream.next(t)
	node := source.town.Snapshot().Nodes[0]
	for name, row := range map[string]struct {
		reason, path string
		status       int
		want         string
	}{
		"Node":        {"details have labels", "/api/nodes/" + node.Key(), http.StatusOK, `"topology.kubernetes.io/zone"`},
		"NoNode":      {"there is no such node", "/api/nodes/nowhere", http.StatusNotFound, "no such node"},
		"WhyNode":     {"the asker is asked", "/api/why/nodes/" + node.Claim, http.StatusOK, `"claim":"` + node.Claim},
		"WhyPod":      {"the reasons are those of tenon why", "/api/why/pods/a/b", http.StatusOK, "too large"},
		"Unreachable": {"the reader learns why there is no answer", "/api/why/pods/a/lost", http.StatusBadGateway, "no worker answered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := request(t, "GET", address+row.path, http.Header{})
			text, err := io.ReadAll(answer.Body)
			if err != nil || answer.StatusCode != row.status || !strings.Contains(string(text), row.want) {
				t.Errorf("%s: %s (%v), want %d and %q: %s", answer.Status, text, err, row.status, row.want, row.reason)
			}
		})
	}
}
