// Package page serves the page on which people watch a cluster. It can only be read: every method but GET and HEAD is
// refused, and nothing that is served changes the cluster.
//
// One loop (stream.go) looks at the cluster every second while somebody reads, and every five minutes otherwise, so that the
// page can say what the cluster has cost. Readers get the whole view once, and then what has changed, as server-sent events.
//
// Who may read (guard.go): with a token, whoever has it; without one, whoever reaches the address under a name that only the
// cluster or this machine resolves. The browser's part is a handful of files without a framework (assets). They put what
// the cluster says into the page as text only, and the Content-Security-Policy allows neither scripts within the document
// nor anything from elsewhere.
//
// Reading order: guard, stream, page.
package page

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/workflows"
)

//go:embed assets
var assets embed.FS

// Asker asks a worker why something is as it is, as `tenon why` does.
type Asker interface {
	Pod(ctx context.Context, namespace, name string) (workflows.PodAnswer, error)
	Node(ctx context.Context, name string) (workflows.NodeAnswer, error)
}

// Options say what a Server shows.
type Options struct {
	// Cluster is the cluster's name.
	Cluster string
	Source  Source
	Asker   Asker
	// TokenFile has the token that readers need; empty means that they need none. The file is read for every request, so that
	// a Secret may be rotated.
	TokenFile string
	// TemporalUI is the address of Temporal's web UI, and Namespace is Temporal's; without the address there are no links.
	TemporalUI, Namespace string
	Log                   *zap.Logger
	// Every is how often the cluster is looked at while somebody reads; zero means a second.
	Every time.Duration
}

// Server serves the page of one cluster.
type Server struct {
	guard  guard
	stream *stream
	asker  Asker
	// asking has room for as many questions as may be asked at once.
	asking chan struct{}
}

const (
	// askedAtOnce bounds the questions to workers, each of which plans or evaluates the whole cluster. askFor bounds the wait
	// for an answer.
	askedAtOnce = 2
	askFor      = 30 * time.Second
)

// New returns a server, or an error about an option.
func New(options Options) (*Server, error) {
	links := ""
	if options.TemporalUI != "" {
		base, err := url.Parse(options.TemporalUI)
		if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
			return nil, fmt.Errorf("the address of Temporal's UI, %q, must begin with http:// or https://", options.TemporalUI)
		}
		links = strings.TrimSuffix(base.String(), "/") + "/namespaces/" + url.PathEscape(options.Namespace) + "/workflows/"
	}
	s := &Server{guard: guard{tokenFile: options.TokenFile}, asker: options.Asker, asking: make(chan struct{}, askedAtOnce),
		stream: newStream(options.Cluster, options.Source, links, options.Every)}
	if _, err := s.guard.token(); err != nil {
		return nil, err
	}
	if options.TokenFile == "" && options.Log != nil {
		options.Log.Info("the page needs no token: whoever reaches its address can read it")
	}
	return s, nil
}

// Run keeps the view up to date until ctx ends, which is not an error.
func (s *Server) Run(ctx context.Context) error { return s.stream.run(ctx) }

// Handler returns what answers requests.
func (s *Server) Handler() http.Handler {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the path is a constant
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /api/session", s.guard.session)
	mux.Handle("GET /api/events", s.guard.needsToken(s.stream.serve))
	mux.Handle("GET /api/nodes/{key}", s.guard.needsToken(s.node))
	mux.Handle("GET /api/why/nodes/{name}", s.guard.needsToken(func(w http.ResponseWriter, r *http.Request) {
		s.ask(w, r, func(ctx context.Context) (any, error) { return s.asker.Node(ctx, r.PathValue("name")) })
	}))
	mux.Handle("GET /api/why/pods/{namespace}/{name}", s.guard.needsToken(func(w http.ResponseWriter, r *http.Request) {
		s.ask(w, r, func(ctx context.Context) (any, error) {
			return s.asker.Pod(ctx, r.PathValue("namespace"), r.PathValue("name"))
		})
	}))
	return s.guard.wrap(mux)
}

// node answers with the details of a node.
func (s *Server) node(w http.ResponseWriter, r *http.Request) {
	details, ok := s.stream.details(r.PathValue("key"))
	if !ok {
		http.Error(w, "there is no such node", http.StatusNotFound)
		return
	}
	answer(w, details)
}

// ask puts a question to a worker when its turn has come.
func (s *Server) ask(w http.ResponseWriter, r *http.Request, question func(context.Context) (any, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), askFor)
	defer cancel()
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		http.Error(w, "too many questions at once; ask again in a moment", http.StatusServiceUnavailable)
		return
	}
	found, err := question(ctx)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		http.Error(w, fmt.Sprintf("no worker answered within %s", askFor), http.StatusGatewayTimeout)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
	default:
		answer(w, found)
	}
}

func answer(w http.ResponseWriter, what any) {
	encoded, err := json.Marshal(what)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encoded) // a reader that is gone needs no answer
}
