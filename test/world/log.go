package world

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/logs"
)

// line is a line of a worker's log.
type line struct {
	Caller     string `json:"caller"`
	Message    string `json:"msg"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Activity   string `json:"activity"`
	Attempt    int    `json:"attempt"`
}

// checkWorkerLog checks that every line of a worker's log is JSON, and that every line that an activity has written says of
// which workflow it is: that is whoever wrote it from package activities, but for those who tell pods their nodes, which
// they do for all plans at once.
func checkWorkerLog(t testing.TB, path string) {
	t.Helper()
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		return // this laboratory had no worker of its own
	}
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = file.Close() }()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<20)
	of := 0
	for scanner.Scan() {
		var l line
		if !strings.HasPrefix(scanner.Text(), "{") {
			continue // what a program that is killed, or has a wrong flag, says
		}
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			t.Logf("a line of the worker's log is cut off: %s", scanner.Text())
			continue
		}
		if !strings.HasPrefix(l.Caller, "activities/") {
			continue
		}
		of++
		if l.WorkflowID == "" || l.RunID == "" || l.Activity == "" || l.Attempt == 0 {
			t.Errorf("a line of an activity lacks %s, %s, %s or %s: %s", logs.WorkflowID, logs.RunID, logs.Activity, logs.Attempt, scanner.Text())
		}
	}
	if err := scanner.Err(); err != nil {
		t.Error(err)
	}
	t.Logf("%d lines of activities in the worker's log name their workflows", of)
}
