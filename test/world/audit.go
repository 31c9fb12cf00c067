package world

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Write is one write to the API server, as its audit log has it.
type Write struct {
	Verb string
	// Resource is the resource and, where there is one, the subresource: nodeclaims/status.
	Resource        string
	Namespace, Name string
	Code            int
	At              time.Time
}

// Writes returns the writes Tenon's worker has made so far, refused ones included.
func (w *World) Writes() []Write {
	w.T.Helper()
	return w.WritesOf("tenon")
}

// WritesOf returns the writes that a user of the API server has made so far, refused ones included.
func (w *World) WritesOf(user string) []Write {
	w.T.Helper()
	file, err := os.Open(filepath.Join(w.Lab.Dir(), "audit.log"))
	if err != nil {
		w.T.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var writes []Write
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb string    `json:"verb"`
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
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			w.T.Fatalf("audit log: %v", err)
		}
		if event.User.Username != user {
			continue
		}
		resource := strings.TrimSuffix(event.ObjectRef.Resource+"/"+event.ObjectRef.Subresource, "/")
		writes = append(writes, Write{event.Verb, resource, event.ObjectRef.Namespace, event.ObjectRef.Name, event.ResponseStatus.Code, event.At})
	}
	if err := lines.Err(); err != nil {
		w.T.Fatalf("audit log: %v", err)
	}
	return writes
}
