package convert_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/internal/convert"
	"github.com/tenon-sh/tenon/internal/manifest"
)

// documents returns the documents of a text.
func documents(t *testing.T, text string) []manifest.Document {
	t.Helper()
	docs, err := manifest.Documents([]string{manifest.Stdin}, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

// at returns the value at a path of keys, or nil.
func at(object map[string]any, path ...string) any {
	var value any = object
	for _, key := range path {
		m, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = m[key]
	}
	return value
}

// named returns the object of a kind and name; it fails the test if there is none.
func named(t *testing.T, result convert.Result, kind, name string) map[string]any {
	t.Helper()
	for _, object := range result.Objects {
		if object["kind"] == kind && at(object, "metadata", "name") == name {
			return object
		}
	}
	t.Fatalf("there is no %s %s among %d objects; notes: %v", kind, name, len(result.Objects), result.Notes)
	return nil
}

const (
	class = `
apiVersion: karpenter.k8s.aws/v1beta1
kind: EC2NodeClass
metadata: {name: shared}
spec: {amiFamily: AL2023, role: nodes, subnetSelectorTerms: [{id: subnet-1}], securityGroupSelectorTerms: [{id: sg-1}]}
`
	template = `
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: shared}
spec: {amiFamily: Bottlerocket, subnetSelector: {team: shop}, securityGroupSelector: {team: shop}`
)

// pool returns a v1beta1 NodePool with more in its template's spec.
func pool(name, more string) string {
	return `
---
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: ` + name + `}
spec: {template: {spec: {requirements: [], nodeClassRef: {name: shared}` + more + `}}}
`
}

func TestKubeletSettingsBecomeTheClasses(t *testing.T) {
	t.Parallel()
	const some, others = ", kubelet: {maxPods: 110}", ", kubelet: {maxPods: 58}"
	for name, row := range map[string]struct {
		reason, documents string
		// classes are those of the pools, and kubelets the settings of each class.
		classes  map[string]string
		kubelets map[string]any
	}{
		"Agree": {reason: "pools that agree need one class", documents: class + pool("a", some) + pool("b", some),
			classes: map[string]string{"a": "shared", "b": "shared"}, kubelets: map[string]any{"shared": int64(110)}},
		"OneHasNone": {reason: "a pool without settings keeps the class without them", documents: class + pool("a", some) + pool("b", ""),
			classes: map[string]string{"a": "shared-a", "b": "shared"}, kubelets: map[string]any{"shared": nil, "shared-a": int64(110)}},
		"Differ": {reason: "the first pool keeps the class, and equal settings share a copy",
			documents: class + pool("a", some) + pool("b", others) + pool("c", others) + pool("d", some),
			classes:   map[string]string{"a": "shared", "b": "shared-b", "c": "shared-b", "d": "shared"}, kubelets: map[string]any{"shared": int64(110), "shared-b": int64(58)}},
		"ClassIsCurrent": {reason: "a class that is v1 already may have other users: it stays as it is",
			documents: strings.Replace(strings.Replace(class, "v1beta1", "v1", 1), "amiFamily: AL2023", "amiSelectorTerms: [{alias: al2023@latest}]", 1) + pool("a", some),
			classes:   map[string]string{"a": "shared-a"}, kubelets: map[string]any{"shared": nil, "shared-a": int64(110)}},
		"CurrentPoolUsesIt": {reason: "a pool of v1 shows that the class has other users",
			documents: class + pool("a", some) + strings.Replace(strings.Replace(pool("b", ""), "v1beta1", "v1", 1), "{name: shared}", "{group: karpenter.k8s.aws, kind: EC2NodeClass, name: shared}", 1),
			classes:   map[string]string{"a": "shared-a", "b": "shared"}, kubelets: map[string]any{"shared": nil, "shared-a": int64(110)}},
		"NameIsTaken": {reason: "a copy takes no other class's name",
			documents: class + "---" + strings.Replace(class, "name: shared", "name: shared-a", 1) + pool("a", some) + pool("b", ""),
			classes:   map[string]string{"a": "shared-kubelet-2", "b": "shared"}, kubelets: map[string]any{"shared": nil, "shared-a": nil, "shared-kubelet-2": int64(110)}},
		"Empty": {reason: "settings without a field are none", documents: class + pool("a", ", kubelet: {}") + pool("b", ""),
			classes: map[string]string{"a": "shared", "b": "shared"}, kubelets: map[string]any{"shared": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := convert.Convert(documents(t, row.documents), convert.Options{})
			if failures := result.Failures(); len(failures) > 0 {
				t.Fatalf("%s: %v", row.reason, failures)
			}
			classes, kubelets := map[string]string{}, map[string]any{}
			for _, object := range result.Objects {
				name, _ := at(object, "metadata", "name").(string)
				switch object["kind"] {
				case "NodePool":
					classes[name], _ = at(object, "spec", "template", "spec", "nodeClassRef", "name").(string)
				case "EC2NodeClass":
					kubelets[name] = nil
					if pods, ok := at(object, "spec", "kubelet", "maxPods").(int64); ok {
						kubelets[name] = pods
					}
				}
			}
			if diff := cmp.Diff(row.classes, classes); diff != "" {
				t.Errorf("%s: classes of pools (-want +got):\n%s", row.reason, diff)
			}
			if diff := cmp.Diff(row.kubelets, kubelets); diff != "" {
				t.Errorf("%s: maxPods of classes (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

// TestNotes checks what is said about single fields.
func TestNotes(t *testing.T) {
	t.Parallel()
	provisioner := func(spec string) string {
		return "\n---\napiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: p}\nspec: {providerRef: {name: shared}" + spec + "}\n"
	}
	complete := template + ", instanceProfile: nodes}\n"
	for name, row := range map[string]struct {
		reason, documents, field string
		effect                   convert.Effect
		says                     string
	}{
		"Misspelt": {reason: "an unknown field is named, with the one that was meant", documents: complete + provisioner(", ttlSecondAfterEmpty: 30"),
			field: "spec.ttlSecondAfterEmpty", effect: convert.Lost, says: "did you mean ttlSecondsAfterEmpty"},
		"MisspeltMetadata": {reason: "metadata too", documents: complete + strings.Replace(provisioner(""), "{name: p}", "{name: p, lables: {}}", 1),
			field: "metadata.lables", effect: convert.Lost, says: "did you mean labels"},
		"MisspeltInline": {reason: "also within spec.provider",
			documents: "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: p}\nspec: {provider: {subnetSelectr: {}, instanceProfile: nodes, subnetSelector: {a: b}, securityGroupSelector: {a: b}}}",
			field:     "spec.provider.subnetSelectr", effect: convert.Lost, says: "did you mean subnetSelector"},
		"ContainerRuntime": {reason: "v1 has containerd only", documents: complete + provisioner(", kubeletConfiguration: {containerRuntime: dockerd}"),
			field: "spec.kubeletConfiguration.containerRuntime", effect: convert.Lost, says: "remove it"},
		"Expiry": {reason: "v1 expires by force", documents: complete + provisioner(", ttlSecondsUntilExpired: 60"),
			field: "spec.ttlSecondsUntilExpired", effect: convert.Changed, says: "tenon.sh/expiration=graceful"},
		"BothEmptyAndConsolidation": {reason: "one of the two wins", documents: complete + provisioner(", ttlSecondsAfterEmpty: 60, consolidation: {enabled: true}"),
			field: "spec.ttlSecondsAfterEmpty", effect: convert.Lost, says: "consolidation"},
		"PoolsOwnLabel": {reason: "the pool's own label is not for requirements", documents: complete + provisioner(", requirements: [{key: karpenter.sh/provisioner-name, operator: In, values: [p]}]"),
			field: "spec.requirements[0]", effect: convert.Lost, says: "karpenter.sh/nodepool=p"},
		"InstancePods": {reason: "a label that v1 does not have", documents: complete + provisioner(", requirements: [{key: karpenter.k8s.aws/instance-pods, operator: Gt, values: ['9']}]"),
			field: "spec.requirements[0]", effect: convert.Lost, says: "how many pods"},
		"RestrictedLabel": {reason: "a label that v1 reserves", documents: complete + provisioner(", labels: {kubernetes.io/hostname: a}"),
			field: "spec.labels[kubernetes.io/hostname]", effect: convert.Lost, says: "restricted"},
		"DoNotConsolidate": {reason: "annotations of nodes get their new name", documents: complete + provisioner(", annotations: {karpenter.sh/do-not-consolidate: 'true'}"),
			field: "spec.annotations[karpenter.sh/do-not-consolidate]", effect: convert.Changed, says: "karpenter.sh/do-not-disrupt"},
		"KubeletWithoutClass": {reason: "the class is somewhere else", documents: provisioner(", kubeletConfiguration: {maxPods: 20}"),
			field: "spec.kubeletConfiguration", effect: convert.Lost, says: `EC2NodeClass shared is not among the manifests: convert both together, or write there spec.kubelet: {"maxPods":20}`},
		"NoReference": {reason: "v1 requires a class", documents: "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: p}\nspec: {}",
			field: "spec.providerRef", effect: convert.Failed, says: "EC2NodeClass"},
		"ForeignProvider": {reason: "other clouds", documents: "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: p}\nspec: {providerRef: {name: a, kind: Machines}}",
			field: "spec.providerRef.kind", effect: convert.Failed, says: "nodeClassRef by hand"},
		"WrongType": {reason: "a value of another type cannot be guessed", documents: complete + provisioner(", weight: heavy"),
			field: "spec.weight", effect: convert.Failed, says: "must be a number"},
		"LaunchTemplate": {reason: "v1 has none", documents: template + ", launchTemplate: golden}",
			field: "spec.launchTemplate", effect: convert.Failed, says: "golden"},
		"NoInstanceProfile": {reason: "v1 has no default for it", documents: template + "}",
			field: "spec.instanceProfile", effect: convert.Failed, says: "--role"},
		"NoUbuntuImages": {reason: "v1 knows no Ubuntu", documents: strings.Replace(class, "AL2023", "Ubuntu", 1),
			field: "spec.amiSelectorTerms", effect: convert.Failed, says: "Ubuntu"},
		"NoCustomImages": {reason: "nor did v1beta1 have images of the family Custom", documents: strings.Replace(class, "AL2023", "Custom", 1),
			field: "spec.amiSelectorTerms", effect: convert.Failed, says: "Custom"},
		"TooManyTerms": {reason: "v1 limits terms", documents: strings.Replace(complete, "{team: shop}", "{a: '1,2,3,4,5,6', b: '1,2,3,4,5,6'}", 1),
			field: "spec.subnetSelector", effect: convert.Failed, says: "36 combinations"},
		"OddSize": {reason: "v1 takes whole units", documents: template + ", instanceProfile: a, blockDeviceMappings: [{ebs: {volumeSize: 1500Mi}}]}",
			field: "spec.blockDeviceMappings[0].ebs.volumeSize", effect: convert.Changed, says: "2Gi"},
		"NumericSize": {reason: "bytes without a unit", documents: template + ", instanceProfile: a, blockDeviceMappings: [{ebs: {volumeSize: 21474836480}}]}",
			field: "spec.blockDeviceMappings[0].ebs.volumeSize", effect: convert.Changed, says: "20Gi"},
		"NoSize": {reason: "neither size nor snapshot", documents: template + ", instanceProfile: a, blockDeviceMappings: [{ebs: {volumeType: gp3}}]}",
			field: "spec.blockDeviceMappings[0].ebs.volumeSize", effect: convert.Failed, says: "needs a size"},
		"RestrictedTag": {reason: "a tag that says whose an instance is", documents: template + ", instanceProfile: a, tags: {kubernetes.io/cluster/shop: owned}}",
			field: "spec.tags[kubernetes.io/cluster/shop]", effect: convert.Lost, says: "by itself"},
		"AL2": {reason: "its images end", documents: strings.Replace(class, "AL2023", "AL2", 1),
			field: "spec.amiFamily", effect: convert.Changed, says: "1.33"},
		"TwoIdentities": {reason: "role and instanceProfile exclude each other", documents: strings.Replace(class, "role: nodes", "role: nodes, instanceProfile: nodes", 1),
			field: "spec.role", effect: convert.Failed, says: "either"},
		"WhenEmptyNeedsATime": {reason: "as it did in v1beta1", documents: strings.Replace(pool("a", ""), "spec: {template", "spec: {disruption: {consolidationPolicy: WhenEmpty}, template", 1),
			field: "spec.disruption.consolidateAfter", effect: convert.Failed, says: "30s"},
		"NotAnID": {reason: "the API server would refuse it", documents: strings.Replace(class, "subnet-1", "subnet1", 1),
			field: "spec.subnetSelectorTerms", effect: convert.Failed, says: `"subnet1" is not an ID`},
		"NoBudgets": {reason: "an empty list means no limit, and not the default of a tenth", documents: strings.Replace(pool("a", ""), "spec: {template", "spec: {disruption: {budgets: []}, template", 1),
			field: "spec.disruption.budgets", effect: convert.Changed, says: "100%"},
		"PodAnnotation": {reason: "of other kinds, old names are said", documents: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec: {template: {metadata: {annotations: {karpenter.sh/do-not-evict: 'true'}}}}",
			field: "spec.template.metadata.annotations[karpenter.sh/do-not-evict]", effect: convert.Changed, says: "honours it on pods"},
		"PodSelector": {reason: "such a pod waits for ever", documents: "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec: {affinity: {nodeAffinity: {a: [{key: karpenter.sh/provisioner-name}]}}}",
			field: "spec.affinity.nodeAffinity.a[0].key", effect: convert.Changed, says: "write karpenter.sh/nodepool"},
		"Machine": {reason: "live objects are no manifests", documents: "apiVersion: karpenter.sh/v1alpha5\nkind: Machine\nmetadata: {name: m}",
			field: "", effect: convert.Lost, says: "a controller made it"},
		"Ancient": {reason: "versions before v1alpha5", documents: "apiVersion: karpenter.sh/v1alpha4\nkind: Provisioner\nmetadata: {name: p}",
			field: "apiVersion", effect: convert.Failed, says: "v1alpha5 and v1beta1"},
		"Twice": {reason: "two documents of the same version", documents: class + "---" + class,
			field: "metadata.name", effect: convert.Failed, says: "remove one of them"},
		"NewerWins": {reason: "v0.32 served both versions side by side", documents: complete + "---" + class,
			field: "", effect: convert.Lost, says: "EC2NodeClass shared, which it would become, is there already"},
		"NotAnObject": {reason: "a values file among the manifests", documents: "replicas: 3",
			field: "", effect: convert.Failed, says: "not a Kubernetes object"},
		"RefusedByTenon": {reason: "what Tenon would not use", documents: pool("a", ", taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}]"),
			field: "spec.template.spec.taints[1]", effect: convert.Failed, says: "same key and effect"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := convert.Convert(documents(t, row.documents), convert.Options{})
			if !slices.ContainsFunc(result.Notes, func(n convert.Note) bool {
				return n.Field == row.field && n.Effect == row.effect && strings.Contains(n.Text, row.says)
			}) {
				t.Errorf("%s: want a note that %q is %s: %s; got %v", row.reason, row.field, row.effect, row.says, result.Notes)
			}
			if failed := len(result.Failures()) > 0; failed != (row.effect == convert.Failed) {
				t.Errorf("%s: it failed: %v, %v", row.reason, failed, result.Failures())
			}
		})
	}
}

func TestIdentityOfNodeTemplates(t *testing.T) {
	t.Parallel()
	const settings = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: karpenter-global-settings, namespace: karpenter}\ndata: {aws.defaultInstanceProfile: fallback, aws.tags: '{\"team\":\"shop\"}', aws.clusterName: shop}\n"
	for name, row := range map[string]struct {
		reason, documents string
		options           convert.Options
		role, profile     any
		team              any
	}{
		"Own":     {reason: "the template's own comes first", documents: template + ", instanceProfile: own}\n" + settings, options: convert.Options{Role: "r"}, profile: "own", team: "shop"},
		"Role":    {reason: "an option instead", documents: template + "}", options: convert.Options{Role: "r"}, role: "r"},
		"Profile": {reason: "the other option", documents: template + "}", options: convert.Options{InstanceProfile: "p"}, profile: "p"},
		"Setting": {reason: "the setting, with the tags of all instances", documents: template + ", tags: {a: b}}\n" + settings, profile: "fallback", team: "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := convert.Convert(documents(t, row.documents), row.options)
			class := named(t, result, "EC2NodeClass", "shared")
			got := []any{at(class, "spec", "role"), at(class, "spec", "instanceProfile"), at(class, "spec", "tags", "team")}
			if diff := cmp.Diff([]any{row.role, row.profile, row.team}, got); diff != "" {
				t.Errorf("%s: role, instanceProfile and tag (-want +got):\n%s", row.reason, diff)
			}
			if len(result.Objects) != 1 {
				t.Errorf("%s: %d objects, want the class alone", row.reason, len(result.Objects))
			}
		})
	}
}

// TestCurrentDocumentsPassUnchanged also holds that converting twice changes nothing.
func TestCurrentDocumentsPassUnchanged(t *testing.T) {
	t.Parallel()
	for _, file := range inputs(t) {
		docs, err := manifest.Documents([]string{file}, nil)
		if err != nil {
			t.Fatal(err)
		}
		first := convert.Convert(docs, convert.Options{Role: "nodes"})
		if len(first.Objects) == 0 || len(first.Failures()) > 0 {
			t.Fatalf("%s: %d objects, failures %v", file, len(first.Objects), first.Failures())
		}
		second := convert.Convert(encoded(t, first.Objects), convert.Options{})
		if diff := cmp.Diff(first.Objects, second.Objects); diff != "" || len(second.Notes) > 0 {
			t.Errorf("%s: converted twice (-once +twice):\n%s\nnotes %v", file, diff, second.Notes)
		}
	}
}
