package why_test

import (
	"bufio"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
)

// secrets are texts that are planted where people keep secrets, by where that is.
type secrets struct {
	// never are those that Tenon has no reason to keep or to say anywhere.
	never map[string]string
	// kept are those that histories need, and that only those may read who have the codec's key.
	kept map[string]string
}

func newSecrets(t *testing.T) secrets {
	t.Helper()
	planted := func(where ...string) map[string]string {
		texts := map[string]string{}
		for _, name := range where {
			text := make([]byte, 12)
			_, _ = rand.Read(text) // it never fails
			texts[name] = "planted" + hex.EncodeToString(text)
		}
		return texts
	}
	return secrets{
		never: planted("user data", "a pod's environment", "a pod's annotation", "a pod's arguments", "Temporal's API key", "the page's token", "AWS's secret key", "AWS's session token"),
		kept:  planted("a tag", "a context", "an error of AWS", "a note"),
	}
}

// env is the environment of a worker that has the secrets which belong to workers.
func (s secrets) env(t *testing.T) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(s.never["the page's token"]), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"TENON_UI_TOKEN_FILE=" + file, "TEMPORAL_TLS=false", "TEMPORAL_API_KEY=" + s.never["Temporal's API key"],
		"AWS_SECRET_ACCESS_KEY=" + s.never["AWS's secret key"], "AWS_SESSION_TOKEN=" + s.never["AWS's session token"]}
}

// secretive is a NodePool with a class that has secrets wherever there is room for one.
const secretive = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: secretive}
spec:
  role: KarpenterNodeRole-CLUSTER
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: CLUSTER}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: CLUSTER}}]
  userData: "#!/bin/sh\nexport PASSWORD=<user data>\n"
  tags: {password: <a tag>}
  context: <a context>
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: secretive}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: secretive}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
`

// secretivePod has to have a node of that NodePool.
const secretivePod = `
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: secretive, annotations: {example.com/password: <a pod's annotation>}}
spec:
  nodeSelector: {karpenter.sh/nodepool: secretive}
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: nginx
    args: [--password, <a pod's arguments>]
    env: [{name: PASSWORD, value: <a pod's environment>}]
    resources: {requests: {cpu: 100m}}
`

// secretsStayHidden has a node live and end whose class, pod and launch are full of secrets. Then it searches for them what
// Temporal keeps, as it keeps it and decrypted, what the worker has logged, counted and served, the cluster's Events, nodes and
// claims, and what commands print.
func secretsStayHidden(t *testing.T, w *world.World, page watched, hidden secrets) {
	t.Helper()
	hidden.never["the codec's key"] = strings.TrimRight(w.Codec.Key, "=")
	kubernetes, err := clientcmd.BuildConfigFromFlags("", filepath.Join(w.Lab.Dir(), "config", "tenon.kubeconfig"))
	if err != nil || kubernetes.BearerToken == "" {
		t.Fatalf("the worker's kubeconfig has no token: %v", err)
	}
	hidden.never["the worker's token for the API server"] = kubernetes.BearerToken

	w.Apply(hidden.planted(strings.ReplaceAll(secretive, "CLUSTER", w.Lab.Cluster())))
	w.Await("the class with secrets is ready", time.Minute, func() (bool, string) {
		out, err := w.Kubectl("get", "ec2nodeclass", "secretive", "--output", "jsonpath={.status.conditions[?(@.type=='Ready')].status}")
		return err == nil && out == "True", out
	})
	// A class is judged by a launch that is none. The refusal is for the first that is one.
	w.Faults(ec2sim.Faults{Errors: []ec2sim.ErrorFault{{Occurrence: ec2sim.Occurrence{Times: 1}, Action: "CreateFleet", Code: "InvalidParameterValue", Message: hidden.kept["an error of AWS"]}}})
	w.Apply(hidden.planted(secretivePod))
	node, claim := "", ""
	w.Await("the pod with secrets runs", 3*time.Minute, func() (bool, string) {
		for _, c := range w.Claims() {
			if c.Labels["karpenter.sh/nodepool"] == "secretive" && c.Status.NodeName != "" {
				node, claim = c.Status.NodeName, c.Name
			}
		}
		for _, pod := range w.Pods("default") {
			if pod.Name == "secretive" {
				return pod.Spec.NodeName != "" && pod.Spec.NodeName == node && pod.Status.Phase == "Running", string(pod.Status.Phase)
			}
		}
		return false, "there is no such pod"
	})

	said := map[string]string{}
	ask := func(args ...string) {
		out, err := w.Tenon(args...)
		if err != nil {
			t.Errorf("tenon %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		said["tenon "+strings.Join(args, " ")] += out
	}
	for _, output := range []string{"", "json"} {
		for _, args := range [][]string{{"get", "nodes"}, {"get", "claims"}, {"get", "pods"}, {"why", "pod", "default/secretive"}, {"why", "node", node}} {
			ask(append(args, "--output", output)...)
		}
	}
	for _, path := range []string{"/api/events", "/api/nodes/" + url.PathEscape(claim), "/api/why/nodes/" + url.PathEscape(claim), "/api/why/pods/default/secretive"} {
		said["the page's "+path] = page.read(t, path)
	}
	ask("drain", node, "--wait", "--note", hidden.kept["a note"])
	for _, output := range []string{"", "json"} {
		ask("history", "claim", claim, "--output", output)
		ask("why", "node", claim, "--output", output)
	}
	for _, kinds := range []string{"events", "nodes,nodeclaims,nodepools.karpenter.sh"} {
		if said["kubectl get "+kinds], err = w.Kubectl("get", kinds, "--all-namespaces", "--output", "yaml"); err != nil {
			t.Fatal(err)
		}
	}
	for name, file := range map[string]string{"the worker's log": w.Lab.LogFile(lab.Worker), "Prometheus' log": filepath.Join(w.Lab.Dir(), "logs", "prometheus.log")} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		said[name] = string(text)
	}
	metrics, err := http.Get(w.Lab.WorkerMetricsURL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer metrics.Body.Close()
	text, err := io.ReadAll(metrics.Body)
	if err != nil {
		t.Fatal(err)
	}
	said["metrics"] = string(text)

	plain, err := temporal.Dial(temporal.Options{HostPort: w.Lab.TemporalAddress()})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	decrypted, raw := temporalKeeps(t, w.Temporal), temporalKeeps(t, plain)
	for where, text := range hidden.never {
		for place, content := range said {
			if found := spelled(content, text); found != "" {
				t.Errorf("%s: the secret in %s: %s", place, where, found)
			}
		}
		if found := spelled(decrypted, text); found != "" {
			t.Errorf("Temporal keeps the secret in %s, though encrypted: %q", where, found)
		}
	}
	for where, text := range hidden.kept {
		if spelled(decrypted, text) == "" {
			t.Errorf("no history has the secret in %s: nothing is shown by its absence elsewhere", where)
		}
	}
	for where, text := range hidden.all() {
		if found := spelled(raw, text); found != "" {
			t.Errorf("Temporal keeps the secret in %s in clear: %q", where, found)
		}
	}
	t.Logf("searched %d texts, %d and %d bytes of Temporal's for %d secrets", len(said), len(decrypted), len(raw), len(hidden.all()))
}

// planted puts the secrets into manifests, at the places that are named after them.
func (s secrets) planted(manifests string) string {
	for where, text := range s.all() {
		manifests = strings.ReplaceAll(manifests, "<"+where+">", text)
	}
	return manifests
}

func (s secrets) all() map[string]string {
	all := maps.Clone(s.never)
	maps.Copy(all, s.kept)
	return all
}

// read reads what the page answers; of a stream its first message.
func (p watched) read(t *testing.T, path string) string {
	t.Helper()
	answer := p.get(t.Context(), t, path)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", path, answer.Status)
	}
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for lines := bufio.NewReader(answer.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "data: ") {
			return line
		}
	}
}

// temporalKeeps returns what a client reads of all workflows: their list, descriptions and histories.
func temporalKeeps(t *testing.T, c temporal.Client) string {
	t.Helper()
	var all strings.Builder
	add := func(message proto.Message) {
		content, err := proto.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(content)
	}
	for request := (&workflowservice.ListWorkflowExecutionsRequest{}); ; {
		page, err := c.ListWorkflow(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		add(page)
		for _, execution := range page.GetExecutions() {
			id, run := execution.GetExecution().GetWorkflowId(), execution.GetExecution().GetRunId()
			described, err := c.DescribeWorkflowExecution(t.Context(), id, run)
			if err != nil {
				t.Fatal(err)
			}
			add(described)
			for history := c.GetWorkflowHistory(t.Context(), id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); history.HasNext(); {
				event, err := history.Next()
				if err != nil {
					t.Fatal(err)
				}
				add(event)
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return all.String()
		}
	}
}

// spelled returns where a text stands in a content, in clear or in base64 at any alignment; empty if it does not.
func spelled(content, text string) string {
	spellings := []string{text}
	for shift := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat(" ", shift) + text))
		// The first and the last characters also depend on what stands beside the text.
		spellings = append(spellings, encoded[4:len(encoded)-4])
	}
	for _, spelling := range slices.Compact(spellings) {
		if at := strings.Index(content, spelling); at >= 0 {
			return fmt.Sprintf("... %s ...", content[max(0, at-100):min(len(content), at+len(spelling)+50)])
		}
	}
	return ""
}

// TestSpelled shows that a secret is found wherever it stands, in base64 too.
func TestSpelled(t *testing.T) {
	t.Parallel()
	const text = "planted0123456789abcdef"
	for before := range 4 {
		content := strings.Repeat("x", before) + text + "y"
		if spelled(content, text) == "" || spelled("data: "+base64.StdEncoding.EncodeToString([]byte(content)), text) == "" {
			t.Errorf("after %d other bytes, the text is not found", before)
		}
	}
	if found := spelled("planted0123456789", text); found != "" {
		t.Errorf("found %s", found)
	}
}
