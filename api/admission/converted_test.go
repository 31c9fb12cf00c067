package admission

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/convert"
	"github.com/tenon-sh/tenon/internal/manifest"
)

// oldManifests is where manifests of older versions of Karpenter are, and what Karpenter's own code makes of them.
var oldManifests = filepath.Join("..", "..", "internal", "convert", "testdata")

// publishedEnv names a directory with more of both: the examples of Karpenter's releases, and random manifests (make
// converted).
const publishedEnv = "TENON_PUBLISHED_MANIFESTS"

// fallback is the instance profile of AWSNodeTemplates that have none.
const fallback = "fallback"

// unconvertible are published examples that cannot be converted, with the reason.
var unconvertible = map[string]string{
	"provisioner-launchtemplates-ubuntu-kubelet-log-query": "v1 does not look for Ubuntu images by itself",
	"v1beta1-ubuntu-kubelet-log-query":                     "likewise",
	"provisioner-launchtemplates-al2-custom-ami":           "it selects ami456, which v1 does not take for the ID of an image",
	"provisioner-launchtemplates-custom-family":            "likewise",
}

// converted converts each file of old manifests; the results are by file, without .yaml.
func converted(t *testing.T) map[string]convert.Result {
	t.Helper()
	results := map[string]convert.Result{}
	for _, dir := range []string{oldManifests, os.Getenv(publishedEnv)} {
		if dir == "" {
			continue
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no old manifests in %s: %v", dir, err)
		}
		for _, file := range files {
			docs, err := manifest.Documents([]string{file}, nil)
			if err != nil {
				t.Fatal(err)
			}
			result := convert.Convert(docs, convert.Options{InstanceProfile: fallback})
			name := strings.TrimSuffix(file, ".yaml")
			failures, fails := result.Failures(), unconvertible[filepath.Base(name)] != ""
			if len(failures) > 0 != fails || len(result.Objects) == 0 {
				t.Errorf("%s: %d objects, failures %v", file, len(result.Objects), failures)
			}
			if !fails {
				results[name] = result
			}
		}
	}
	return results
}

// asServer reads an object as the API server does, and fills in its defaults.
func asServer(t *testing.T, j *judge, object any) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var read map[string]any
	if err := utiljson.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	if errs := j.admit(read, nil); len(errs) > 0 {
		t.Errorf("refused: %v in\n%s", errs.ToAggregate(), data)
	}
	return read
}

func TestConvertedManifestsAreAccepted(t *testing.T) {
	t.Parallel()
	all := judges(t)
	for file, result := range converted(t) {
		for _, object := range result.Objects {
			kind, _ := object["kind"].(string)
			if all[kind] == nil {
				t.Errorf("%s: it becomes a %s, which has no definition", file, kind)
				continue
			}
			asServer(t, all[kind], object)
		}
	}
}

// golden is what Karpenter's own code makes of one old object (tools/convert-goldens).
type golden struct {
	From         string                                        `json:"from"`
	Object       map[string]any                                `json:"object"`
	Requirements []karpv1.NodeSelectorRequirementWithMinValues `json:"requirements"`
}

// TestConvertedAsKarpenterConverts compares with Karpenter's own code. differences has what is different on purpose.
func TestConvertedAsKarpenterConverts(t *testing.T) {
	t.Parallel()
	all := judges(t)
	compared, met := 0, map[string]bool{}
	for file, result := range converted(t) {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(file), "karpenter", filepath.Base(file)+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var goldens []golden
		if err := json.Unmarshal(data, &goldens); err != nil {
			t.Fatal(err)
		}
		for _, g := range goldens {
			compared++
			_, name, _ := strings.Cut(g.From, " ")
			if g.Requirements != nil {
				pool := poolNamed(t, result, name)
				want := slices.DeleteFunc(g.Requirements, func(r karpv1.NodeSelectorRequirementWithMinValues) bool {
					return r.Key == "karpenter.k8s.aws/instance-pods"
				})
				if diff := cmp.Diff(want, pool.Spec.Template.Spec.Requirements); diff != "" {
					t.Errorf("%s, %s: requirements with defaults (-Karpenter +ours):\n%s", file, g.From, diff)
				}
				continue
			}
			kind, _ := g.Object["kind"].(string)
			ours := objectNamed(t, result, kind, name)
			for reason, differ := range differences() {
				if differ(g.Object, ours, result) {
					met[reason] = true
				}
			}
			if metadata, _ := g.Object["metadata"].(map[string]any); metadata != nil {
				if annotations, _ := metadata["annotations"].(map[string]any); len(annotations) == 0 {
					delete(metadata, "annotations")
				}
			}
			var want, got any = &karpv1.NodePool{}, &karpv1.NodePool{}
			if kind == "EC2NodeClass" {
				want, got = &awsv1.EC2NodeClass{}, &awsv1.EC2NodeClass{}
			}
			typed(t, asServer(t, all[kind], g.Object), want)
			typed(t, asServer(t, all[kind], ours), got)
			sameTime := cmp.Comparer(func(a, b karpv1.NillableDuration) bool {
				return a.IsNever() == b.IsNever() && (a.IsNever() || *a.Duration == *b.Duration)
			})
			if diff := cmp.Diff(want, got, sameTime); diff != "" {
				t.Errorf("%s, %s (-Karpenter +ours):\n%s", file, g.From, diff)
			}
		}
	}
	if compared < 20 {
		t.Errorf("only %d objects were compared", compared)
	}
	for reason := range differences() {
		if !met[reason] {
			t.Errorf("no manifest shows this difference, so it is none: %s", reason)
		}
	}
}

// difference makes of Karpenter's object what it would be without a difference, and reports whether there was any.
type difference func(theirs, ours map[string]any, result convert.Result) bool

// differences are all deliberate differences, by their reasons.
func differences() map[string]difference {
	return map[string]difference{
		"annotations for the way back to v1beta1, and hashes of an older controller, have no use": func(theirs, _ map[string]any, _ convert.Result) bool {
			annotations, _ := child(theirs, "metadata", "annotations").(map[string]any)
			before := len(annotations)
			maps.DeleteFunc(annotations, func(key string, _ any) bool {
				return strings.HasPrefix(key, "compatibility.karpenter.") && !strings.HasSuffix(key, "kubelet-conversion") || strings.Contains(key, "-hash")
			})
			return len(annotations) < before
		},
		"kubelet settings are in the class, where v1 reads them, and not in an annotation, which only Karpenter 1.0 reads": func(theirs, ours map[string]any, result convert.Result) bool {
			annotations, _ := child(theirs, "metadata", "annotations").(map[string]any)
			text, found := annotations["compatibility.karpenter.sh/v1beta1-kubelet-conversion"].(string)
			ref, _ := child(ours, "spec", "template", "spec", "nodeClassRef", "name").(string)
			if !found {
				return false
			}
			// The settings have to be those of the class that the pool refers to.
			var want, got awsv1.KubeletConfiguration
			data, err := json.Marshal(child(classNamed(result, ref), "spec", "kubelet"))
			if err != nil || json.Unmarshal([]byte(text), &want) != nil || json.Unmarshal(data, &got) != nil || !cmp.Equal(want, got) {
				return false
			}
			delete(annotations, "compatibility.karpenter.sh/v1beta1-kubelet-conversion")
			theirs["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)["nodeClassRef"].(map[string]any)["name"] = ref
			return true
		},
		"a class has the settings of its pools": func(theirs, ours map[string]any, _ convert.Result) bool {
			settings := child(ours, "spec", "kubelet")
			if settings == nil || theirs["kind"] != "EC2NodeClass" {
				return false
			}
			theirs["spec"].(map[string]any)["kubelet"] = settings
			return true
		},
		"consolidateAfter Never forbids consolidation in v1beta1, and 0s would begin it": func(theirs, ours map[string]any, _ convert.Result) bool {
			disruption, _ := child(theirs, "spec", "disruption").(map[string]any)
			if disruption["consolidateAfter"] != "0s" || child(ours, "spec", "disruption", "consolidateAfter") != karpv1.Never {
				return false
			}
			disruption["consolidateAfter"] = karpv1.Never
			return true
		},
		"v1 has no setting aws.defaultInstanceProfile, so a template without a profile gets that of --instance-profile": func(theirs, ours map[string]any, _ convert.Result) bool {
			spec, _ := theirs["spec"].(map[string]any)
			if theirs["kind"] != "EC2NodeClass" || spec["role"] != nil || spec["instanceProfile"] != nil || child(ours, "spec", "instanceProfile") != fallback {
				return false
			}
			spec["instanceProfile"] = fallback
			return true
		},
		"a tag that v1 refuses is left out, where Karpenter's webhook stores it": func(theirs, _ map[string]any, _ convert.Result) bool {
			tags, _ := child(theirs, "spec", "tags").(map[string]any)
			_, found := tags["karpenter.sh/nodepool"]
			delete(tags, "karpenter.sh/nodepool")
			return found
		},
	}
}

func child(object map[string]any, path ...string) any {
	var value any = object
	for _, key := range path {
		m, _ := value.(map[string]any)
		value = m[key]
	}
	return value
}

func classNamed(result convert.Result, name string) map[string]any {
	for _, object := range result.Objects {
		if object["kind"] == "EC2NodeClass" && child(object, "metadata", "name") == name {
			return object
		}
	}
	return nil
}

func objectNamed(t *testing.T, result convert.Result, kind, name string) map[string]any {
	t.Helper()
	for _, object := range result.Objects {
		if object["kind"] == kind && child(object, "metadata", "name") == name {
			return runtime.DeepCopyJSON(object)
		}
	}
	t.Fatalf("nothing became %s %s", kind, name)
	return nil
}

func poolNamed(t *testing.T, result convert.Result, name string) *karpv1.NodePool {
	t.Helper()
	pool := &karpv1.NodePool{}
	typed(t, objectNamed(t, result, "NodePool", name), pool)
	return pool
}

func typed(t *testing.T, object map[string]any, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, into); err != nil {
		t.Fatal(err)
	}
}
