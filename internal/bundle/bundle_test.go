package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	commandpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// planted is the word that is part of every planted secret. It has no shape of its own: only where it is, and the names and
// shapes around it, tell that it is a secret.
const planted = "xyzzyplugh"

// shaped is a key without a name before it, of which planted is a part.
const shaped = "wJalrXUtnFEMI/K7" + planted + "/bPxRfiCY"

func secretMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		"example.com/token": planted,
		"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"password":"` + planted + `"}}`,
	}}
}

// secretObjects have a secret in every place where people put them.
func secretObjects() []kube.Object {
	worker := map[string]string{"app.kubernetes.io/name": "tenon"}
	containers := []corev1.Container{
		{Name: "controller", Args: []string{"worker", "--ui-token=" + planted}, Ports: []corev1.ContainerPort{{Name: "http-metrics", ContainerPort: 9000}}, Env: []corev1.EnvVar{
			{Name: "TENON_CLUSTER", Value: "blue"}, {Name: "TENON_UI_TEMPORAL_URL", Value: "https://robot:" + planted + "@temporal"}, {Name: "TENON_API_KEY", Value: planted},
			{Name: "TEMPORAL_API_KEY", Value: planted}, {Name: "AWS_SECRET_ACCESS_KEY", Value: planted}, {Name: "HTTPS_PROXY", Value: "http://" + planted}, {Name: "OTEL_EXPORTER_OTLP_HEADERS", Value: "x=" + planted},
			{Name: "TEMPORAL_NAMESPACE", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "kept-name"}, Key: "kept-key"}}}}},
		{Name: "sidecar", Command: []string{"sh", "-c", "login " + planted}, Args: []string{planted}, Env: []corev1.EnvVar{{Name: "TENON_CLUSTER", Value: planted}, {Name: "DSN", Value: planted}}},
	}
	deployment := &appsv1.Deployment{ObjectMeta: secretMeta("tenon")}
	deployment.Namespace, deployment.Labels = "fleet", worker
	deployment.Spec.Template.ObjectMeta = secretMeta("")
	deployment.Spec.Template.Spec = corev1.PodSpec{Containers: containers, InitContainers: []corev1.Container{{Name: "init", Args: []string{planted}, Env: []corev1.EnvVar{{Name: "GOGC", Value: planted}}}}}
	pod := &corev1.Pod{ObjectMeta: secretMeta("tenon-1"), Spec: *deployment.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Labels = "fleet", worker
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "controller", RestartCount: 1, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "token: " + planted}}}}
	pool := &karpv1.NodePool{ObjectMeta: secretMeta("web")}
	pool.Annotations[karpv1.PauseAnnotationKey] = `[{"what":"disruption","reason":"password=` + planted + `","by":"ann"}]`
	pool.Spec.Template.Annotations = map[string]string{"note": planted}
	class := &awsv1.EC2NodeClass{ObjectMeta: secretMeta("default")}
	data, about := "#!/bin/sh\nregister "+planted, planted
	class.Spec.UserData, class.Spec.Context = &data, &about
	class.Spec.Tags = map[string]string{"owner": planted}
	class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"kept-tag": planted}}}
	claim := &karpv1.NodeClaim{ObjectMeta: secretMeta("web-1")}
	node := &corev1.Node{ObjectMeta: secretMeta("kept-node")}
	node.Status.Images = []corev1.ContainerImage{{Names: []string{planted}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Message: "registry refused " + shaped}}
	lease := &coordinationv1.Lease{ObjectMeta: secretMeta("karpenter-leader-election")}
	lease.Namespace = "fleet"
	event := &corev1.Event{ObjectMeta: secretMeta("kept-event"), Source: corev1.EventSource{Component: "tenon"}, Reason: "LaunchFailed", Message: "EC2 said: Authorization: Bearer " + planted + ", " + shaped}
	event.Namespace = "default"
	foreign := &corev1.Event{ObjectMeta: secretMeta("foreign"), Source: corev1.EventSource{Component: "other"}, Message: planted}
	foreign.Namespace = "default"
	pauses := &corev1.ConfigMap{ObjectMeta: secretMeta(karpv1.PauseConfigMapName), Data: map[string]string{karpv1.PauseConfigMapKey: `[{"what":"disruption","reason":"secret: ` + planted + `","by":"ann"}]`, "other": planted}}
	pauses.Namespace = karpv1.PauseNamespace
	secret := &corev1.Secret{ObjectMeta: secretMeta("tenon-key"), Data: map[string][]byte{"key": []byte(planted)}}
	secret.Namespace = "fleet"
	return []kube.Object{deployment, pod, pool, class, claim, node, lease, event, foreign, pauses, secret}
}

// asked records what is asked of the API server, as rules have it: "list nodes".
type asked struct{ verbs []string }

func (a *asked) ask(verb, resource string) { a.verbs = append(a.verbs, verb+" "+resource) }

// Log implements Pods.
func (a *asked) Log(_ context.Context, _, _, container string, previous bool) (io.ReadCloser, error) {
	a.ask("get", "pods/log")
	if container != "controller" {
		return nil, fmt.Errorf("the log of %s is nobody's business", container)
	}
	lines := strings.Repeat("an old line\n", 4000) + `{"msg":"kept-line","authorization":"` + planted + `"}` + "\nplain password=" + planted + "\n-----BEGIN PRIVATE KEY-----\nMII" + planted + "\n-----END PRIVATE KEY-----\n"
	if previous {
		lines = "panic: cannot use " + shaped + "\n"
	}
	return io.NopCloser(strings.NewReader(lines)), nil
}

// Metrics implements Pods.
func (a *asked) Metrics(_ context.Context, _, _ string, port int32) ([]byte, error) {
	a.ask("get", "pods/proxy")
	if port != 9000 {
		return nil, fmt.Errorf("no metrics at port %d", port)
	}
	return []byte("kept_metric{x=\"y\"} 1\nbuild_info{token=\"" + planted + "\"} 1\n"), nil
}

func secretKube(t *testing.T, a *asked) kube.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpv1.AddToScheme, awsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	resource := func(o runtime.Object) string {
		kinds, _, err := scheme.ObjectKinds(o)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.ToLower(strings.TrimSuffix(kinds[0].Kind, "List"))
		if strings.HasSuffix(name, "ss") {
			return name + "es"
		}
		return name + "s"
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(secretObjects()...).
		WithIndex(&corev1.Event{}, "source", func(o kube.Object) []string { return []string{o.(*corev1.Event).Source.Component} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c kube.WithWatch, key kube.ObjectKey, o kube.Object, opts ...kube.GetOption) error {
				a.ask("get", resource(o))
				return c.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, c kube.WithWatch, list kube.ObjectList, opts ...kube.ListOption) error {
				a.ask("list", resource(list))
				return c.List(ctx, list, opts...)
			},
		}).Build()
}

// secretWorkflows is a Temporal server whose one workflow has a secret in its input, its failure and its termination.
type secretWorkflows struct{ refuses error }

func (s secretWorkflows) ListWorkflow(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	if s.refuses != nil {
		return nil, s.refuses
	}
	if !strings.Contains(r.GetQuery(), "TenonCluster = 'blue'") {
		return nil, fmt.Errorf("the query %q is not about the cluster", r.GetQuery())
	}
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{{
		Execution: &commandpb.WorkflowExecution{WorkflowId: "blue/nodeclaim/kept-life", RunId: "run"}, Type: &commandpb.WorkflowType{Name: "NodeClaim"}, Memo: &commandpb.Memo{Fields: secretPayload("memo")},
	}}}, nil
}

func secretPayload(key string) map[string]*commandpb.Payload {
	payload, _ := converter.GetDefaultDataConverter().ToPayload(map[string]string{"password": planted, "kept": "kept-payload"})
	return map[string]*commandpb.Payload{key: payload}
}

func (s secretWorkflows) GetWorkflowHistory(context.Context, string, string, bool, enums.HistoryEventFilterType) client.HistoryEventIterator {
	input := &commandpb.Payloads{Payloads: []*commandpb.Payload{secretPayload("x")["x"]}}
	failure := &failurepb.Failure{Message: "EC2: token=" + planted, StackTrace: planted, EncodedAttributes: secretPayload("x")["x"],
		FailureInfo: &failurepb.Failure_ApplicationFailureInfo{ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: "kept-failure", Details: input}}}
	return &events{of: []*historypb.HistoryEvent{
		{EventId: 1, EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: input}}},
		{EventId: 2, EventType: enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{ActivityType: &commandpb.ActivityType{Name: "kept-activity"}, Input: input}}},
		{EventId: 3, EventType: enums.EVENT_TYPE_ACTIVITY_TASK_FAILED, Attributes: &historypb.HistoryEvent_ActivityTaskFailedEventAttributes{
			ActivityTaskFailedEventAttributes: &historypb.ActivityTaskFailedEventAttributes{Failure: failure}}},
		{EventId: 4, EventType: enums.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED, Attributes: &historypb.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
			WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{Reason: "password: " + planted, Details: input}}},
	}}
}

type events struct{ of []*historypb.HistoryEvent }

func (e *events) HasNext() bool { return len(e.of) > 0 }

func (e *events) Next() (*historypb.HistoryEvent, error) {
	next := e.of[0]
	e.of = e.of[1:]
	return next, nil
}

func secretOptions(t *testing.T, a *asked) Options {
	return Options{Cluster: "blue", Namespace: "fleet", Variables: []string{"TENON_CLUSTER", "TENON_UI_TEMPORAL_URL", "TENON_API_KEY"}, NodeClasses: &awsv1.EC2NodeClassList{},
		Versions: []Version{{Program: "Temporal", Error: "dial https://robot:" + planted + "@temporal"}}, Kube: secretKube(t, a), Temporal: secretWorkflows{}, Pods: a, LogBytes: 1 << 12, MostWorkflows: 5}
}

// unpacked writes a bundle and returns its manifest and its files.
func unpacked(t *testing.T, o Options) (Manifest, map[string]string) {
	t.Helper()
	var out bytes.Buffer
	manifest, err := Write(t.Context(), &out, o, time.Unix(1_700_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	uncompressed, err := gzip.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(uncompressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return manifest, files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "tenon-support-blue-20231114-221320/")] = string(content)
	}
}

func TestBundleHasNoSecrets(t *testing.T) {
	t.Parallel()
	manifest, files := unpacked(t, secretOptions(t, &asked{}))
	for path, content := range files {
		if at := strings.Index(content, planted); at >= 0 {
			t.Errorf("%s has a secret: ...%s...", path, content[max(0, at-80):min(len(content), at+40)])
		}
	}
	for _, part := range manifest.Parts {
		if part.Error != "" {
			t.Errorf("%s is missing: %s", part.Path, part.Error)
		}
	}
	// What people need is there all the same.
	all := fmt.Sprint(files)
	for _, want := range []string{`"TENON_CLUSTER"`, "kept-name", "kept-key", "kept-tag", "kept-node", "kept-event", "kept-line", "kept_metric", "kept-life", "kept-activity", "kept-failure", "LaunchFailed",
		"example.com/token", "logs/tenon-1.previous.log", "what was before is left out", `"by": "ann"`, "[redacted: "} {
		if !strings.Contains(all, want) {
			t.Errorf("no file has %s", want)
		}
	}
	if manifest.Redacted < 20 || strings.Contains(all, "foreign") || strings.Contains(all, "tenon-key") {
		t.Errorf("%d values were replaced; foreign Events or Secrets are there: %t", manifest.Redacted, strings.Contains(all, "tenon-key"))
	}
	var kept Manifest
	if err := json.Unmarshal([]byte(files["manifest.json"]), &kept); err != nil || len(kept.Files) != len(files)-1 {
		t.Errorf("the manifest (%v) names %d files of %d", err, len(kept.Files), len(files)-1)
	}
}

func TestBundleKeepsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	o := secretOptions(t, &asked{})
	o.Payloads, o.UserData, o.Tags = true, true, true
	_, files := unpacked(t, o)
	classes := files["kubernetes/nodeclasses.json"]
	for what, is := range map[string]bool{
		"user data": strings.Contains(classes, "register "+planted), "tags": strings.Contains(classes, `"owner": "`+planted), "payloads": strings.Contains(fmt.Sprint(files), "kept-payload"),
	} {
		if !is {
			t.Errorf("the bundle has no %s", what)
		}
	}
	if history := files["temporal/running/blue_nodeclaim_kept-life.run.json"]; strings.Contains(history, planted+`"`) && strings.Contains(history, `"password": "`+planted) {
		t.Errorf("a password in a payload is kept:\n%s", history)
	}
}

func TestBundleNeedsNoTemporal(t *testing.T) {
	t.Parallel()
	for why, workflows := range map[string]Workflows{"it is away": nil, "it refuses": secretWorkflows{refuses: errors.New("no: token=" + planted)}} {
		o := secretOptions(t, &asked{})
		o.Temporal = workflows
		manifest, files := unpacked(t, o)
		missing := 0
		for _, part := range manifest.Parts {
			if part.Error != "" && strings.HasPrefix(part.Path, "temporal/") {
				missing++
			}
		}
		if missing != 2 || files["kubernetes/nodes.json"] == "" || strings.Contains(files["manifest.json"], planted) {
			t.Errorf("%s: %d parts are missing, want 2:\n%s", why, missing, files["manifest.json"])
		}
	}
}

// TestBundleNeedsTheRightsOfItsRole compares what is asked of the API server with the role that the documentation has for whoever
// collects a bundle.
func TestBundleNeedsTheRightsOfItsRole(t *testing.T) {
	t.Parallel()
	a := &asked{}
	unpacked(t, secretOptions(t, a))
	text, err := os.ReadFile("../../deploy/support/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	granted := []string{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				for _, resource := range rule.Resources {
					granted = append(granted, verb+" "+resource)
				}
			}
		}
	}
	slices.Sort(granted)
	slices.Sort(a.verbs)
	granted, used := slices.Compact(granted), slices.Compact(a.verbs)
	if !slices.Equal(granted, used) {
		t.Errorf("the role grants %v, and %v is used", granted, used)
	}
}
