package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	autoscalingv1beta1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
)

// kind describes a kind that planning uses.
type kind struct {
	version    string
	namespaced bool
	make       func() value
}

// kinds are the kinds that planning uses.
var kinds = map[schema.GroupKind]kind{
	{Group: "", Kind: "Pod"}:                   {"v1", true, func() value { return &corev1.Pod{} }},
	{Group: "", Kind: "PodTemplate"}:           {"v1", true, func() value { return &corev1.PodTemplate{} }},
	{Group: "", Kind: "ReplicationController"}: {"v1", true, func() value { return &corev1.ReplicationController{} }},
	{Group: "", Kind: "Node"}:                  {"v1", false, func() value { return &corev1.Node{} }},
	{Group: "", Kind: "Namespace"}:             {"v1", false, func() value { return &corev1.Namespace{} }},
	{Group: "", Kind: "LimitRange"}:            {"v1", true, func() value { return &corev1.LimitRange{} }},
	{Group: "", Kind: "PersistentVolume"}:      {"v1", false, func() value { return &corev1.PersistentVolume{} }},
	{Group: "", Kind: "PersistentVolumeClaim"}: {"v1", true, func() value { return &corev1.PersistentVolumeClaim{} }},

	{Group: appsv1.GroupName, Kind: "Deployment"}:             {"v1", true, func() value { return &appsv1.Deployment{} }},
	{Group: appsv1.GroupName, Kind: "ReplicaSet"}:             {"v1", true, func() value { return &appsv1.ReplicaSet{} }},
	{Group: appsv1.GroupName, Kind: "StatefulSet"}:            {"v1", true, func() value { return &appsv1.StatefulSet{} }},
	{Group: appsv1.GroupName, Kind: "DaemonSet"}:              {"v1", true, func() value { return &appsv1.DaemonSet{} }},
	{Group: batchv1.GroupName, Kind: "Job"}:                   {"v1", true, func() value { return &batchv1.Job{} }},
	{Group: batchv1.GroupName, Kind: "CronJob"}:               {"v1", true, func() value { return &batchv1.CronJob{} }},
	{Group: policyv1.GroupName, Kind: "PodDisruptionBudget"}:  {"v1", true, func() value { return &policyv1.PodDisruptionBudget{} }},
	{Group: schedulingv1.GroupName, Kind: "PriorityClass"}:    {"v1", false, func() value { return &schedulingv1.PriorityClass{} }},
	{Group: nodev1.GroupName, Kind: "RuntimeClass"}:           {"v1", false, func() value { return &nodev1.RuntimeClass{} }},
	{Group: storagev1.GroupName, Kind: "StorageClass"}:        {"v1", false, func() value { return &storagev1.StorageClass{} }},
	{Group: storagev1.GroupName, Kind: "CSINode"}:             {"v1", false, func() value { return &storagev1.CSINode{} }},
	{Group: karpv1.Group, Kind: "NodePool"}:                   {"v1", false, func() value { return &karpv1.NodePool{} }},
	{Group: karpv1.Group, Kind: "NodeOverlay"}:                {"v1alpha1", false, func() value { return &karpv1alpha1.NodeOverlay{} }},
	{Group: karpv1.Group, Kind: "NodeClaim"}:                  {"v1", false, func() value { return &karpv1.NodeClaim{} }},
	{Group: awsv1.Group, Kind: "EC2NodeClass"}:                {"v1", false, func() value { return &awsv1.EC2NodeClass{} }},
	{Group: autoscalingv1beta1.Group, Kind: "CapacityBuffer"}: {"v1beta1", true, func() value { return &autoscalingv1beta1.CapacityBuffer{} }},
}

// Progress is called now and then with the number of documents read so far. The calls may come from several goroutines.
type Progress func(done, of int)

// Read reads files, directories (recursively) and, for the path Stdin, standard input. The error joins all mistakes in the
// manifests, each with its place and what to do about it.
func Read(ctx context.Context, paths []string, stdin io.Reader, progress Progress) (*Manifests, error) {
	docs, err := documents(paths, stdin)
	if err != nil {
		return nil, err
	}
	m := &Manifests{ignored: map[string]int{}}
	var wrong mistakes
	for len(docs) > 0 {
		answers, err := decodeAll(ctx, docs, progress)
		if err != nil {
			return nil, err
		}
		// The items of lists are decoded in a second round, also on all processors. They come after everything else.
		docs = nil
		for i := range answers {
			a := &answers[i]
			wrong = append(wrong, a.wrong...)
			docs = append(docs, a.items...)
			if a.ignored != "" {
				m.ignored[a.ignored]++
			}
			if a.object.value != nil {
				m.objects = append(m.objects, a.object)
			}
		}
	}
	wrong = append(wrong, m.twice()...)
	if len(wrong) > 0 {
		return nil, wrong
	}
	return m, nil
}

// answer is the result of decoding a document: an object, the items of a list, something to ignore, or mistakes.
type answer struct {
	object  object
	items   []document
	ignored string
	wrong   mistakes
}

// chunk is how many documents a processor takes at once.
const chunk = 64

func decodeAll(ctx context.Context, docs []document, progress Progress) ([]answer, error) {
	answers := make([]answer, len(docs))
	var next, done atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range min(runtime.GOMAXPROCS(0), len(docs)/chunk+1) {
		group.Go(func() error {
			memo := newMemo()
			for ctx.Err() == nil {
				first := int(next.Add(chunk)) - chunk
				if first >= len(docs) {
					return nil
				}
				last := min(first+chunk, len(docs))
				for i := first; i < last; i++ {
					answers[i] = memo.decode(docs[i])
				}
				if count := int(done.Add(int64(last - first))); progress != nil {
					progress(count, len(docs))
				}
			}
			return ctx.Err()
		})
	}
	return answers, group.Wait()
}

// header is what all objects and lists have.
type header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Generate  string `json:"generateName"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

// decode reads one document.
func decode(doc document) answer {
	at := doc.place
	data := doc.data
	if !doc.json {
		converted, err := yaml.YAMLToJSONStrict(data)
		if err != nil {
			return wrongly(at, "", notYAML(err, doc.line))
		}
		data = converted
	}
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return answer{}
	}
	var head header
	if err := json.Unmarshal(data, &head); err != nil {
		field, problem := mismatch(data, &head, err)
		if field == "" {
			problem = "it is not a Kubernetes object: write apiVersion, kind and metadata at the top"
		}
		return wrongly(at, field, problem)
	}
	at.kind, at.name = head.Kind, head.Metadata.Name
	if at.name == "" {
		at.name = head.Metadata.Generate
	}
	switch {
	case head.Kind == "":
		return wrongly(at, "kind", "is missing: write for example kind: Deployment")
	case head.APIVersion == "":
		return wrongly(at, "apiVersion", "is missing: write for example apiVersion: apps/v1")
	case isList(head):
		return itemsOf(at, head)
	}
	gv, err := schema.ParseGroupVersion(head.APIVersion)
	if err != nil {
		return wrongly(at, "apiVersion", fmt.Sprintf("%q is not a group and version: write for example apps/v1", head.APIVersion))
	}
	known, ok := kinds[schema.GroupKind{Group: gv.Group, Kind: head.Kind}]
	if !ok {
		if suggestion := kindLike(gv.Group, head.Kind); suggestion != "" {
			return wrongly(at, "kind", fmt.Sprintf("there is no kind %s in %s: %s", head.Kind, head.APIVersion, suggestion))
		}
		return answer{ignored: head.Kind}
	}
	if gv.Version != known.version {
		gv.Version = known.version
		return wrongly(at, "apiVersion", fmt.Sprintf("%s is not supported for %s: write %s", head.APIVersion, head.Kind, gv))
	}
	if known.namespaced {
		at.namespace = head.Metadata.Namespace
		if at.namespace == "" {
			at.namespace = metav1.NamespaceDefault
		}
	}
	return decodeInto(at, known.make(), data)
}

func decodeInto(at place, into value, data []byte) answer {
	strict, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		field, problem := mismatch(data, into, err)
		return wrongly(at, field, problem)
	}
	var wrong mistakes
	for _, problem := range strict {
		field, text := unknownField(into, problem)
		if strings.HasPrefix(field, "status.") {
			continue // clusters of any version write it
		}
		wrong = append(wrong, &mistake{place: at, field: field, problem: text})
	}
	if at.name == "" {
		wrong = append(wrong, &mistake{place: at, field: "metadata.name", problem: "is missing: give the object a name"})
	}
	if len(wrong) > 0 {
		return answer{wrong: wrong}
	}
	into.SetNamespace(at.namespace)
	into.SetName(at.name)
	into.SetManagedFields(nil)
	return answer{object: object{place: at, value: into}}
}

func isList(head header) bool { return strings.HasSuffix(head.Kind, "List") && head.Items != nil }

// itemsOf unpacks a list. Items of a typed list need not name their kind.
func itemsOf(at place, head header) answer {
	var a answer
	kind := strings.TrimSuffix(head.Kind, "List")
	for i, raw := range head.Items {
		inner := document{place: place{file: at.file, document: at.document, item: i + 1}, data: raw, json: true}
		if kind != "" && !bytes.Contains(raw, []byte(`"kind"`)) {
			inner.data = slices.Concat(fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,`, head.APIVersion, kind), bytes.TrimPrefix(bytes.TrimSpace(raw), []byte("{")))
		}
		a.items = append(a.items, inner)
	}
	return a
}

// twice finds objects that occur more than once.
func (m *Manifests) twice() mistakes {
	type identity struct{ kind, key string }
	seen := make(map[identity]place, len(m.objects))
	var wrong mistakes
	for i := range m.objects {
		at := m.objects[i].place
		id := identity{at.kind, at.key()}
		if first, ok := seen[id]; ok {
			earlier := fmt.Sprintf("%s, document %d", first.file, first.document)
			if first.item > 0 {
				earlier += fmt.Sprintf(", item %d", first.item)
			}
			wrong = append(wrong, &mistake{place: at, field: "metadata.name", problem: fmt.Sprintf("%s %s is there already (%s): remove one of them", at.kind, at.key(), earlier)})
			continue
		}
		seen[id] = at
	}
	return wrong
}
