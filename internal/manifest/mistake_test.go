package manifest

import (
	"strings"
	"testing"
	"time"
)

// deployment is a valid Deployment, for tests to break.
const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: c
        resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: "1"}}
`

const nodePool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
`

// read builds a cluster from one text.
func read(t *testing.T, text string) (*Cluster, *Manifests, error) {
	t.Helper()
	manifests, err := Read(t.Context(), []string{Stdin}, strings.NewReader(text), nil)
	if err != nil {
		return nil, nil, err
	}
	cluster, err := manifests.Cluster(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	return cluster, manifests, err
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	replaced := func(text, old, replacement string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("%q is not in the manifest", old)
		}
		return strings.Replace(text, old, replacement, 1)
	}
	for name, test := range map[string]struct {
		reason, text string
		want         string
	}{
		"Field": {reason: "a misspelt field is found, with its place and what was meant", text: replaced(deployment, "replicas:", "replcias:"),
			want: "standard input, document 1, Deployment shop/web: spec.replcias: there is no such field: did you mean replicas?"},
		"DeepField": {reason: "also deep in a list", text: replaced(deployment, "requests:", "request:"),
			want: "standard input, document 1, Deployment shop/web: spec.template.spec.containers[0].resources.request: there is no such field: did you mean requests?"},
		"StrayField": {reason: "nothing is suggested where nothing is near", text: deployment + "volumes: []\n",
			want: "standard input, document 1, Deployment shop/web: volumes: there is no such field: remove it, or move it where it belongs"},
		"Type": {reason: "a value of the wrong type is told what it should be", text: replaced(deployment, "replicas: 2", "replicas: two"),
			want: "standard input, document 1, Deployment shop/web: spec.replicas: must be a number, and is a JSON string"},
		"Quantity": {reason: "the field of a bad quantity is found", text: replaced(deployment, "memory: 1Gi", "memory: 1GB"),
			want: `standard input, document 1, Deployment shop/web: spec.template.spec.containers[0].resources.requests.memory: "1GB" is not a quantity: write for example 500m, 2, 1.5Gi`},
		"Twice": {reason: "a field given twice is a mistake", text: replaced(deployment, "  replicas: 2\n", "  replicas: 2\n  replicas: 3\n"),
			want: `standard input, document 1: it is not YAML: unmarshal errors:   line 6: key "replicas" already set in map`},
		"Syntax": {reason: "lines are those of the file", text: deployment + "---\nkind: [\n",
			want: "standard input, document 2: it is not YAML: line 14: did not find expected node content"},
		"JSON": {reason: "broken JSON has a line too", text: "{\n\"kind\": }\n",
			want: "standard input, document 1: line 2: it is not JSON: invalid character '}' looking for beginning of value"},
		"NoKind": {reason: "what it is cannot be guessed", text: "apiVersion: v1\nmetadata: {name: x}\n",
			want: "standard input, document 1: kind: is missing: write for example kind: Deployment"},
		"NoVersion": {reason: "nor of which group", text: "kind: Pod\nmetadata: {name: x}\n",
			want: "standard input, document 1, Pod x: apiVersion: is missing: write for example apiVersion: apps/v1"},
		"Kind": {reason: "a misspelt kind is not ignored", text: replaced(deployment, "kind: Deployment", "kind: Deploymnet"),
			want: "standard input, document 1, Deploymnet web: kind: there is no kind Deploymnet in apps/v1: did you mean Deployment?"},
		"Word": {reason: "YAML takes some words for something else", text: replaced(deployment, "name: web", "name: no"),
			want: "standard input, document 1: metadata.name: must be a string, and is a JSON bool: put it in quotes"},
		"NotObject": {reason: "a list alone is no object", text: "- a\n- b\n",
			want: "standard input, document 1: it is not a Kubernetes object: write apiVersion, kind and metadata at the top"},
		"Version": {reason: "an old version says which one to write", text: replaced(deployment, "apps/v1", "apps/v1beta1"),
			want: "standard input, document 1, Deployment web: apiVersion: apps/v1beta1 is not supported for Deployment: write apps/v1"},
		"NoName": {reason: "everything needs a name", text: replaced(deployment, "name: web, ", ""),
			want: "standard input, document 1, Deployment shop/: metadata.name: is missing: give the object a name"},
		"Again": {reason: "of two objects of one name, nobody knows which one counts", text: deployment + "---\n" + deployment,
			want: "standard input, document 2, Deployment shop/web: metadata.name: Deployment shop/web is there already (standard input, document 1): remove one of them"},
		"Selector": {reason: "the API server would refuse it", text: replaced(deployment, "matchLabels: {app: web}", "matchLabels: {app: wep}"),
			want: `standard input, document 1, Deployment shop/web: spec.selector: "app=wep" does not match spec.template.metadata.labels: make them agree`},
		"Limit": {reason: "nor may a request be above the limit", text: replaced(deployment, "cpu: 500m", "cpu: 1500m"),
			want: "standard input, document 1, Deployment shop/web: spec.template.spec.containers[0].resources.requests.cpu: 1500m is more than the limit 1: raise the limit, or request less"},
		"Negative": {reason: "nobody means this", text: replaced(deployment, "replicas: 2", "replicas: -2"),
			want: "standard input, document 1, Deployment shop/web: spec.replicas: -2 is negative: write how many pods there are to be"},
		"Pool": {reason: "pools are validated as in a cluster", text: replaced(nodePool, "karpenter.sh/capacity-type", "karpenter.sh/nodepool"),
			want: "standard input, document 1, NodePool general: spec.template.spec.requirements[0].key: Forbidden: "},
		"NoClass": {reason: "a pool needs a class", text: replaced(nodePool, "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n", ""),
			want: "standard input, document 1, NodePool general: spec.template.spec.nodeClassRef: is missing: write "},
		"Node": {reason: "a node without size is of no use", text: "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n",
			want: "standard input, document 1, Node n1: status.allocatable: is missing: say what the node has for pods"},
		"Item": {reason: "items of lists are counted", text: "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: a}}\n- {apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {container: []}}\n",
			want: "standard input, document 1, item 2, Pod default/b: spec.container: there is no such field: did you mean containers?"},
		"Several": {reason: "all mistakes are told at once", text: replaced(replaced(deployment, "replicas:", "replcias:"), "memory:", "memory: 1Gi, limts:"),
			want: "standard input, document 1, Deployment shop/web: spec.replcias: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := read(t, test.text)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) && !strings.Contains(err.Error(), "\n  "+test.want) {
				t.Errorf("%s:\n got %v\nwant %s", test.reason, err, test.want)
			}
		})
	}
}
