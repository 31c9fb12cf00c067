package world

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Request is one request to the API server, from its audit log.
type Request struct {
	Verb string
	// URI is the path and the query of the request.
	URI string
	// Resource is the resource and the subresource, if any: nodeclaims/status.
	Resource        string
	Namespace, Name string
	Code            int
	At              time.Time
}

// Reads reports whether the request only reads.
func (r Request) Reads() bool { return r.Verb == "get" || r.Verb == "list" || r.Verb == "watch" }

// OfAll reports whether the request lists or watches all objects of a resource, not only those of one namespace or those
// that a selector admits. Further pages of a list do not count as lists.
func (r Request) OfAll() bool {
	path, query, _ := strings.Cut(r.URI, "?")
	return (r.Verb == "list" || r.Verb == "watch") && !strings.Contains(path, "/namespaces/") && !strings.Contains(query, "Selector=") && !strings.Contains(query, "continue=")
}

// Writes returns the writes that Tenon's worker has made so far, refused ones included.
func (w *World) Writes() []Request {
	w.T.Helper()
	return w.WritesOf("tenon")
}

// WritesOf returns the writes that a user of the API server has made so far, refused ones included.
func (w *World) WritesOf(user string) []Request {
	w.T.Helper()
	return slices.DeleteFunc(w.requestsOf(user), func(r Request) bool { return r.Reads() })
}

// Requests returns the requests that Tenon's workers have made so far: all of them with Options.Reads, otherwise only the
// writes. A watch is included once it has ended.
func (w *World) Requests() []Request {
	w.T.Helper()
	return w.requestsOf("tenon")
}

func (w *World) requestsOf(user string) []Request {
	w.T.Helper()
	file, err := os.Open(filepath.Join(w.Lab.Dir(), "audit.log"))
	if err != nil {
		w.T.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var requests []Request
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb string    `json:"verb"`
			URI  string    `json:"requestURI"`
			At   time.Time `json:"requestReceivedTimestamp"`
			User struct {
				Username string `json:"username"`
			} `json:"user"`
			ObjectRef struct {
				Resource    string `json:"resource"`
				Subresource string `json:"subresource"`
				Namespace   string `json:"namespace"`
				Name        string `json:"name"`
			} `json:"objectRef"`
			ResponseStatus struct {
				Code int `json:"code"`
			} `json:"responseStatus"`
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil || event.User.Username != user {
			continue // an API server that was killed may leave half a line
		}
		resource := strings.TrimSuffix(event.ObjectRef.Resource+"/"+event.ObjectRef.Subresource, "/")
		requests = append(requests, Request{event.Verb, event.URI, resource, event.ObjectRef.Namespace, event.ObjectRef.Name, event.ResponseStatus.Code, event.At})
	}
	if err := lines.Err(); err != nil {
		w.T.Fatalf("audit log: %v", err)
	}
	return requests
}
