package disruption_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/hook"
	"github.com/tenon-sh/tenon/workflows"
)

// hookScene is the scenario whose NodePool has hooks, and with it the namespace in which they may run Jobs.
const hookScene = "hooks"

// hookServer answers hooks: those before a drain with a failure until it is opened.
type hookServer struct {
	*httptest.Server
	mu   sync.Mutex
	open bool
	told []hook.About
}

func newHookServer(t *testing.T) *hookServer {
	s := &hookServer{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *hookServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var about hook.About
	if err := json.NewDecoder(request.Body).Decode(&about); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if about.When == karpv1.BeforeDrain && !s.open {
		http.Error(w, "the gate is closed", http.StatusForbidden)
		return
	}
	s.told = append(s.told, about)
}

// heard returns what hooks of a name have been told.
func (s *hookServer) heard(name string) []hook.About {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []hook.About
	for _, about := range s.told {
		if about.Hook == name {
			all = append(all, about)
		}
	}
	return all
}

// hookObjects are a CronJob that never runs by itself, and the right to create Jobs from it, as the chart grants it.
const hookObjects = `
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: SCENE, name: hooks}, rules: [
  {apiGroups: [batch], resources: [cronjobs], verbs: [get]}, {apiGroups: [batch], resources: [jobs], verbs: [get, create]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: SCENE, name: hooks},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: hooks}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenon}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {namespace: SCENE, name: dump}
spec:
  schedule: "0 0 1 1 *"
  suspend: true
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: dump}]}}}}
`

// hookScenarios are about what NodePools have to happen outside Tenon.
func hookScenarios(l *laboratory) []scenario {
	list := fmt.Sprintf(`[{"name":"up","when":"AfterReady","http":{"url":"%[1]s/up"}},
		{"name":"gate","when":"BeforeDrain","http":{"url":"%[1]s/gate"},"failurePolicy":"Fail"},
		{"name":"dump","when":"BeforeDrain","job":{"namespace":"%[2]s","cronJob":"dump","onNode":true},"timeout":"3m","failurePolicy":"Fail"}]`, l.hooks.URL, hookScene)
	web := workload{name: "web", count: 1}
	greeted := func(p *play) {
		p.T.Helper()
		p.Await("the hook of the new node", p.within(), func() (bool, string) { return len(l.hooks.heard("up")) == 1, fmt.Sprint(l.hooks.heard("up")) })
		if up := l.hooks.heard("up")[0]; up.When != karpv1.AfterReady || up.NodePool != p.name || up.ProviderID == "" || up.Node == "" {
			p.T.Errorf("the hook is told %+v", up)
		}
	}
	openGate := func(*play) {
		l.hooks.mu.Lock()
		defer l.hooks.mu.Unlock()
		l.hooks.open = true
	}
	dumped := func(p *play) {
		p.T.Helper()
		gate := l.hooks.heard("gate")
		if len(gate) != 1 || gate[0].Reason != "Empty" || gate[0].Node != l.hooks.heard("up")[0].Node {
			p.T.Errorf("the hook before the drain is told %+v", gate)
		}
		var jobs batchv1.JobList
		if err := p.List(p.Context(), &jobs, client.InNamespace(p.name)); err != nil || len(jobs.Items) != 1 {
			p.T.Fatalf("%d Jobs, %v", len(jobs.Items), err)
		}
		job := jobs.Items[0]
		if job.Status.Succeeded != 1 || job.Spec.Template.Spec.NodeName != l.hooks.heard("up")[0].Node || !strings.HasPrefix(job.Name, "tenon-dump-") {
			p.T.Errorf("Job %s on %s: %+v", job.Name, job.Spec.Template.Spec.NodeName, job.Status)
		}
		for _, run := range p.Runs(fmt.Sprintf("WorkflowType IN (%q, %q) AND NodePool = %q", workflows.DrainType, workflows.NodeClaimType, p.name)) {
			p.Record(run, "hooks")
		}
	}
	return []scenario{{
		name: hookScene, rule: "hooks run once a node has come up, and before its first pod is evicted, and one that must succeed keeps the node until it does",
		objects: hookObjects, pools: []pool{{annotations: "tenon.sh/hooks: '" + strings.Join(strings.Fields(list), " ") + "'"}},
		steps: []step{deploy(web), greeted, scale("web", 0), opened("0s"), told("HookFailed", "gate keeps the node from being drained"), openGate, serve(0), dumped},
		takes: takes{"Empty": 1}, patience: 6 * time.Minute,
	}}
}
