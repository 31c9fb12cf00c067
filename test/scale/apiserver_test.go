package scale_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// apiServer is the part of an API server that a mirror needs: watches with streamed initial state, in JSON over HTTP. It
// builds the objects as it sends them, so a large cluster costs this process nothing.
type apiServer struct {
	resources map[string]kind

	mu sync.Mutex
	// generation is raised by churn, which closes and replaces news.
	generation int
	news       chan struct{}
}

// kind describes the objects of one kind.
type kind struct {
	apiVersion, name string
	count            int
	// object builds one of them, as it is in a generation.
	object func(i, generation int) metav1.Object
	// churns is how many of them change with each generation.
	churns int
}

func newAPIServer(resources map[string]kind) *apiServer {
	return &apiServer{resources: resources, news: make(chan struct{})}
}

// churn changes objects.
func (s *apiServer) churn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	close(s.news)
	s.news = make(chan struct{})
}

func (s *apiServer) now() (int, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation, s.news
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	served, known := s.resources[name]
	switch {
	case name == "readyz":
		_, _ = w.Write([]byte("ok"))
	case !known:
		w.WriteHeader(http.StatusNotFound)
	case r.URL.Query().Get("watch") != "true" && r.URL.Query().Get("watch") != "1":
		// Nothing that a worker does here may list what its mirror has.
		w.WriteHeader(http.StatusForbidden)
	default:
		s.watch(w, r, served)
	}
}

// watch streams all objects and then their changes.
func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, of kind) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	generation, news := s.now()
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for i := range of.count {
			if s.send(w, watch.Added, of, i, generation) != nil {
				return
			}
		}
		_, _ = fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"%d","annotations":{%q:"true"}}}}`+"\n",
			of.apiVersion, of.name, versionOf(generation+1, 0), metav1.InitialEventsAnnotationKey)
	}
	for {
		w.(http.Flusher).Flush()
		select {
		case <-news:
		case <-r.Context().Done():
			return
		}
		generation, news = s.now()
		for i := range of.churns {
			if s.send(w, watch.Modified, of, i, generation) != nil {
				return
			}
		}
	}
}

func (s *apiServer) send(w http.ResponseWriter, event watch.EventType, of kind, i, generation int) error {
	object := of.object(i, generation)
	object.SetResourceVersion(strconv.Itoa(versionOf(generation, i)))
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	_, err = fmt.Fprintf(w, `{"type":%q,"object":{"apiVersion":%q,"kind":%q,%s}`+"\n", event, of.apiVersion, of.name, raw[1:])
	return err
}

// versionOf returns an object's resource version, so that versions are ordered.
func versionOf(generation, i int) int { return (generation+1)*10_000_000 + i }
