package migrate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// karpenter returns a Deployment of Karpenter with some environment variables.
func karpenter(image string, env ...corev1.EnvVar) appsv1.Deployment {
	return appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter", Labels: map[string]string{"app.kubernetes.io/name": "karpenter"}},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "proxy", Image: "envoy:1"}, {Name: "controller", Image: image, Env: env}}}}}}
}

func document(t *testing.T, text string) json.RawMessage {
	t.Helper()
	out, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	plainClass = "{apiVersion: karpenter.k8s.aws/v1, kind: EC2NodeClass, metadata: {name: default}, spec: {role: node, amiSelectorTerms: [{alias: al2023@latest}]}}"
	plainPool  = "{metadata: {name: web}, spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}}}"
	plainClaim = "{metadata: {name: web-1}, spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}, status: {providerID: 'aws:///a/i-1', nodeName: n1}}"
	image114   = "public.ecr.aws/karpenter/controller:1.14.1@sha256:4b8e9c1a"
)

// said are the findings, each as "verdict object field: message".
func said(r *Report) []string {
	var all []string
	for _, f := range r.Findings {
		all = append(all, strings.TrimSpace(string(f.Verdict)+" "+f.Object+" "+f.Field)+": "+f.Message)
	}
	return all
}

func TestToward(t *testing.T) {
	t.Parallel()
	variable := func(name, value string) corev1.EnvVar { return corev1.EnvVar{Name: name, Value: value} }
	for name, test := range map[string]struct {
		reason string
		image  string
		env    []corev1.EnvVar
		change func(*Cluster)
		// want are beginnings of the findings.
		want []string
	}{
		"Plain":     {reason: "everything is continued", image: image114},
		"NoTag":     {reason: "the chart's label names the version where the image has a digest only", image: "registry:5000/karpenter/controller@sha256:4b8e9c1a", want: []string{`differs Deployment kube-system/karpenter: its version "" is not known`}},
		"Older":     {reason: "objects older than v1 are not read", image: "x/karpenter/controller:0.37.3", want: []string{"refused Deployment kube-system/karpenter: it runs Karpenter 0.37.3"}},
		"Newer":     {reason: "what is newer may be unknown", image: "x/karpenter/controller:v1.15.0", want: []string{"differs Deployment kube-system/karpenter: it runs Karpenter v1.15.0, and Tenon follows 1.14"}},
		"Unguarded": {reason: "without the Lease nothing keeps both apart", image: image114, env: []corev1.EnvVar{variable("DISABLE_LEADER_ELECTION", "true")}, want: []string{"refused Deployment kube-system/karpenter DISABLE_LEADER_ELECTION: Karpenter works without the Lease"}},
		"OtherLease": {reason: "two Leases keep nobody apart", image: image114, env: []corev1.EnvVar{variable("LEADER_ELECTION_NAMESPACE", "karpenter")},
			want: []string{"differs Deployment kube-system/karpenter LEADER_ELECTION_NAMESPACE: its Lease is in the namespace karpenter"}},
		"Settings": {reason: "only what has another value than the default is said", image: image114, env: []corev1.EnvVar{variable("AMI_REFRESH_INTERVAL", "5m"), variable("SUBNET_REFRESH_INTERVAL", "1m0s"), variable("EKS_CONTROL_PLANE", "false")},
			want: []string{"differs Deployment kube-system/karpenter AMI_REFRESH_INTERVAL: 5m has no effect"}},
		"Devices": {reason: "devices are behind a gate of Tenon's own", image: image114, env: []corev1.EnvVar{variable("IGNORE_DRA_REQUESTS", "false")}, want: []string{"differs Deployment kube-system/karpenter IGNORE_DRA_REQUESTS: Karpenter looks at resource claims"}},
		"Absent":  {reason: "somebody else runs Karpenter", image: "x/other:1", change: func(c *Cluster) { c.Deployments = c.Deployments[:0] }, want: []string{"differs Cluster: no Deployment that runs Karpenter"}},
		"Field": {reason: "an unknown field is named by its path", image: image114, change: func(c *Cluster) {
			c.NodeClasses[0] = document(t, strings.Replace(plainClass, "role: node", "role: node, blockDeviceMappings: [{deviceName: a, ebs: {colour: red}}], futureField: 1", 1))
		}, want: []string{"refused EC2NodeClass default spec.blockDeviceMappings[0].ebs.colour: this version of Tenon does not know the field", "refused EC2NodeClass default spec.futureField: "}},
		"Family": {reason: "what a family's nodes cannot do is refused", image: image114, change: func(c *Cluster) {
			c.NodeClasses[0] = document(t, "{metadata: {name: default}, spec: {amiSelectorTerms: [{alias: bottlerocket@latest}], kubelet: {podsPerCore: 3}}}")
		}, want: []string{"refused EC2NodeClass default spec.kubelet.podsPerCore: "}},
		"Foreign": {reason: "EKS serves its own NodePools", image: image114, change: func(c *Cluster) {
			c.NodePools = append(c.NodePools, document(t, "{metadata: {name: general-purpose}, spec: {template: {spec: {nodeClassRef: {group: eks.amazonaws.com, kind: NodeClass, name: default}}}}}"))
		}, want: []string{"left NodePool general-purpose spec.template.spec.nodeClassRef: it names a NodeClass.eks.amazonaws.com"}},
		"Static": {reason: "Karpenter ignores a static NodePool where its gate is off, and Tenon has no gate", image: image114, change: func(c *Cluster) {
			c.NodePools[0] = document(t, strings.Replace(plainPool, "spec: {", "spec: {replicas: 3, ", 1))
		}, want: []string{"differs NodePool web spec.replicas: Karpenter ignores the NodePool"}},
		"StaticOn": {reason: "with the gate both do the same", image: image114, env: []corev1.EnvVar{variable("FEATURE_GATES", "NodeRepair=false,StaticCapacity=true")}, change: func(c *Cluster) {
			c.NodePools[0] = document(t, strings.Replace(plainPool, "spec: {", "spec: {replicas: 3, ", 1))
		}},
		"Reserved": {reason: "so it is with reservations", image: image114, env: []corev1.EnvVar{variable("FEATURE_GATES", "ReservedCapacity=false")}, change: func(c *Cluster) {
			c.NodeClasses[0] = document(t, strings.Replace(plainClass, "role: node", "role: node, capacityReservationSelectorTerms: [{id: cr-1}]", 1))
		}, want: []string{"differs EC2NodeClass default spec.capacityReservationSelectorTerms: Karpenter ignores them"}},
		"Buffer":  {reason: "and with buffers", image: image114, change: func(c *Cluster) { c.Buffers = []string{"shop/web"} }, want: []string{"differs CapacityBuffer shop/web: Karpenter ignores it"}},
		"Overlay": {reason: "overlays have a gate on both sides", image: image114, env: []corev1.EnvVar{variable("FEATURE_GATES", "NodeOverlay=true")}, change: func(c *Cluster) { c.Overlays = []string{"prices"} }, want: []string{"differs NodeOverlay prices: Tenon reads it with"}},
		"Launching": {reason: "a launch under way is better finished", image: image114, change: func(c *Cluster) {
			c.NodeClaims = append(c.NodeClaims, document(t, "{metadata: {name: web-2}, spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}}"))
		}, want: []string{"waits NodeClaim web-2 status.providerID: it has no instance yet"}},
		"Going": {reason: "so is a drain", image: image114, change: func(c *Cluster) {
			c.NodeClaims[0] = document(t, strings.Replace(plainClaim, "name: web-1", "name: web-1, deletionTimestamp: '2026-03-01T12:00:00Z'", 1))
		}, want: []string{"waits NodeClaim web-1: it is being deleted"}},
		"Tainted": {reason: "a node that Karpenter is about to remove", image: image114, change: func(c *Cluster) {
			c.Nodes[0].Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint()}
		}, want: []string{"waits Node n1 spec.taints: it is not ready for pods yet"}},
		"Orphan": {reason: "a node without a NodeClaim", image: image114, change: func(c *Cluster) {
			c.Nodes = append(c.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2", Labels: map[string]string{karpv1.NodePoolLabelKey: "web"}}})
		}, want: []string{"left Node n2 metadata.labels: it has the label of NodePool web and no NodeClaim"}},
		"NoClass": {reason: "neither launches without a class", image: image114, change: func(c *Cluster) { c.NodeClasses = nil }, want: []string{"differs NodePool web spec.template.spec.nodeClassRef.name: there is no EC2NodeClass default"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := continued(t, karpenter(test.image, test.env...))
			if test.change != nil {
				test.change(c)
			}
			report, err := Toward(c)
			if err != nil {
				t.Fatal(err)
			}
			checkFindings(t, test.reason, report, test.want)
		})
	}
}

// continued is a cluster in which everything is continued.
func continued(t *testing.T, deployments ...appsv1.Deployment) *Cluster {
	t.Helper()
	return &Cluster{Deployments: deployments, Lease: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("karpenter-7c_1")}},
		NodeClasses: []json.RawMessage{document(t, plainClass)}, NodePools: []json.RawMessage{document(t, plainPool)}, NodeClaims: []json.RawMessage{document(t, plainClaim)},
		Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{karpv1.NodePoolLabelKey: "web"}}}}}
}

// checkFindings compares the findings with beginnings of what they should say.
func checkFindings(t *testing.T, reason string, report *Report, want []string) {
	t.Helper()
	got := said(report)
	for i := range got {
		if i < len(want) && strings.HasPrefix(got[i], want[i]) {
			got[i] = want[i]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", reason, diff)
	}
}

func TestTowardCounts(t *testing.T) {
	t.Parallel()
	report, err := Toward(continued(t, karpenter(image114)))
	if err != nil {
		t.Fatal(err)
	}
	want := &Report{Karpenter: "1.14.1", Holder: "karpenter-7c_1", NodePools: 1, NodeClasses: 1, NodeClaims: 1, Nodes: 1, Findings: []Finding{}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		change func(*Cluster)
		want   []string
	}{
		"Plain":  {reason: "everything is continued"},
		"Paused": {reason: "Karpenter knows no pauses", change: func(c *Cluster) { c.Pauses = []karpv1.Pause{{What: karpv1.PauseDisruption}} }, want: []string{"differs ConfigMap kube-system/tenon-pauses disruption: Karpenter knows no pauses"}},
		"Observed": {reason: "nor annotations of Tenon's", change: func(c *Cluster) {
			c.NodePools[0] = document(t, strings.Replace(plainPool, "name: web", "name: web, annotations: {tenon.sh/observe: 'true', tenon.sh/learnt-devices: x}", 1))
		}, want: []string{"differs NodePool web metadata.annotations.tenon.sh/observe: Karpenter acts on every NodePool"}},
		"Limited": {reason: "whatever holds Tenon back is named", change: func(c *Cluster) {
			c.NodePools[0] = document(t, strings.Replace(plainPool, "name: web", "name: web, annotations: {tenon.sh/approval: all, tenon.sh/hooks: '[]', tenon.sh/maintenance-windows: '[]', tenon.sh/rollout: '1,100%'}", 1))
		}, want: []string{"differs NodePool web metadata.annotations.tenon.sh/approval: ", "differs NodePool web metadata.annotations.tenon.sh/hooks: ",
			"differs NodePool web metadata.annotations.tenon.sh/maintenance-windows: ", "differs NodePool web metadata.annotations.tenon.sh/rollout: "}},
		"Tainted": {reason: "Tenon's taints stay on nodes", change: func(c *Cluster) { c.Nodes[0].Spec.Taints = []corev1.Taint{karpv1.ExpectingNoScheduleTaint()} },
			want: []string{"waits Node n1 spec.taints: nobody takes the taint tenon.sh/expecting-pods away"}},
		"Replacing": {reason: "a replacement that does not serve yet", change: func(c *Cluster) {
			c.NodeClaims[0] = document(t, strings.Replace(plainClaim, "name: web-1", "name: web-1, annotations: {tenon.sh/replacement: r1}", 1))
		},
			want: []string{"waits NodeClaim web-1 metadata.annotations.tenon.sh/replacement: it replaces other nodes"}},
		"Held": {reason: "an announcement that waits for the end of a pause", change: func(c *Cluster) {
			c.NodeClaims[0] = document(t, strings.Replace(plainClaim, "name: web-1", "name: web-1, annotations: {tenon.sh/held-interruptions: 'SpotInterruption@2026-01-02T15:04:05Z'}", 1))
		},
			want: []string{"differs NodeClaim web-1 metadata.annotations.tenon.sh/held-interruptions: the announcement is gone"}},
		"Buffer": {reason: "what a buffer keeps is empty for a Karpenter without the gate", change: func(c *Cluster) { c.Buffers = []string{"shop/web"} }, want: []string{"differs CapacityBuffer shop/web: Karpenter's feature gate CapacityBuffer is off"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := continued(t, karpenter(image114))
			if test.change != nil {
				test.change(c)
			}
			report, err := Back(c)
			if err != nil {
				t.Fatal(err)
			}
			checkFindings(t, test.reason, report, test.want)
		})
	}
}
