package workload

import (
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/cloud"
)

// Feature is a kind of constraint that random questions may contain.
type Feature string

// The features.
const (
	NodeAffinity  Feature = "node affinity"
	Taints        Feature = "taints"
	ZoneSpread    Feature = "zone spread"
	HostSpread    Feature = "host spread"
	LabelSpread   Feature = "spread over a custom label"
	Affinity      Feature = "affinity"
	AntiAffinity  Feature = "anti-affinity"
	Namespaces    Feature = "namespaces"
	Preferences   Feature = "preferences"
	Limits        Feature = "limits"
	Weights       Feature = "weights"
	MinValues     Feature = "minValues"
	ExistingNodes Feature = "existing nodes"
	DaemonSets    Feature = "DaemonSets"
	HostPorts     Feature = "host ports"
	Volumes       Feature = "volumes"
	Devices       Feature = "devices"
)

// Features are all features.
var Features = []Feature{NodeAffinity, Taints, ZoneSpread, HostSpread, LabelSpread, Affinity, AntiAffinity, Namespaces, Preferences,
	Limits, Weights, MinValues, ExistingNodes, DaemonSets, HostPorts, Volumes, Devices}

// AppLabel is on every pod of a random question: pods with the same value belong to one Deployment, and are alike.
const AppLabel = "app"

// tierLabel is a custom label that pools may give to their nodes.
const tierLabel = "example.com/tier"

// Random returns a small question with some of the features, drawn from a seed, about a few machines of the catalogue.
func Random(seed uint64, catalogue []*cloud.InstanceType, features ...Feature) *compare.Question {
	r := random{draw: newDraw(seed), on: features}
	r.q = &compare.Question{Name: fmt.Sprintf("random %d %v", seed, features), Types: map[string][]*cloud.InstanceType{}}
	r.pools(r.machines(catalogue))
	for k := range 2 {
		r.q.Namespaces = append(r.q.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: namespaces[k], Labels: map[string]string{"team": teams[k]}}})
	}
	if r.has(Volumes) {
		r.storage()
	}
	if r.has(DaemonSets) {
		for k := range 1 + r.IntN(2) {
			r.q.DaemonSets = append(r.q.DaemonSets, r.randomDaemonSet(k))
		}
	}
	if r.has(ExistingNodes) {
		r.nodes()
	}
	for k := range 1 + r.IntN(6) {
		r.q.Pods = append(r.q.Pods, r.application(k)...)
	}
	return r.q
}

var (
	namespaces = [...]string{"default", "other"}
	teams      = [...]string{"red", "blue"}
	zones      = []string{"us-east-1a", "us-east-1b", "us-east-1c"}
)

// random is a question being drawn.
type random struct {
	draw
	q  *compare.Question
	on []Feature
}

func (r *random) has(f Feature) bool { return slices.Contains(r.on, f) }

// chance is true with a probability of n percent.
func (r *random) chance(n int) bool { return r.IntN(100) < n }

// maybe is true 60 percent of the time if the feature is on, and false otherwise.
func (r *random) maybe(f Feature) bool { return r.has(f) && r.chance(60) }

// machines returns about a dozen types of the catalogue: mostly general ones, and some with devices if that feature is on.
func (r *random) machines(catalogue []*cloud.InstanceType) []*cloud.InstanceType {
	var general, special []*cloud.InstanceType
	for _, t := range catalogue {
		cores := t.Capacity.Cpu().Value()
		switch _, nvidia := t.Capacity[gpu]; {
		case !available(t) || cores < 2 || cores > 64:
		case nvidia:
			special = append(special, t)
		case !devices(t) && slices.Contains([]string{"c", "m", "r"}, t.Labels[awsv1.LabelInstanceCategory]):
			general = append(general, t)
		}
	}
	var chosen []*cloud.InstanceType
	for range 6 + r.IntN(12) {
		chosen = append(chosen, one(r.draw, general...))
	}
	if r.has(Devices) {
		for range 3 {
			chosen = append(chosen, one(r.draw, special...))
		}
	}
	slices.SortFunc(chosen, func(a, b *cloud.InstanceType) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) })
	return slices.Compact(chosen)
}

// pools adds one to three pools.
func (r *random) pools(machines []*cloud.InstanceType) {
	for k := range 1 + r.IntN(3) {
		pool := Pool(fmt.Sprintf("pool-%c", 'a'+rune(k)))
		spec := &pool.Spec.Template.Spec
		require := func(key string, values ...string) {
			Requires(key, corev1.NodeSelectorOpIn, values...)(pool)
		}
		if r.has(Weights) {
			weight := int32(1 + r.IntN(3))
			pool.Spec.Weight = &weight
		}
		if r.chance(40) {
			require(karpv1.CapacityTypeLabelKey, one(r.draw, karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot))
		}
		if r.chance(30) {
			from := r.IntN(2)
			require(corev1.LabelTopologyZone, zones[from:from+1+r.IntN(2)]...)
		}
		if r.chance(20) {
			require(corev1.LabelArchStable, one(r.draw, karpv1.ArchitectureAmd64, karpv1.ArchitectureArm64))
		}
		if r.has(LabelSpread) || r.chance(30) {
			pool.Spec.Template.Labels = map[string]string{tierLabel: one(r.draw, "gold", "silver", "bronze")}
		}
		if r.maybe(Taints) {
			spec.Taints = append(spec.Taints, corev1.Taint{Key: "dedicated", Value: one(r.draw, "red", "blue"),
				Effect: one(r.draw, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)})
		}
		if r.maybe(Taints) && r.chance(40) {
			spec.StartupTaints = []corev1.Taint{{Key: "example.com/starting", Effect: corev1.TaintEffectNoSchedule}}
		}
		if r.maybe(Limits) {
			pool.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: *resource.NewQuantity(one[int64](r.draw, 2, 4, 8, 16, 48), resource.DecimalSI)}
		}
		if r.maybe(MinValues) {
			n := 2 + r.IntN(3)
			spec.Requirements = append(spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{
				Key: one(r.draw, corev1.LabelInstanceTypeStable, awsv1.LabelInstanceFamily), Operator: corev1.NodeSelectorOpExists, MinValues: &n})
		}
		r.q.Pools = append(r.q.Pools, pool)
		r.q.Types[pool.Name] = machines
	}
	if r.has(MinValues) && r.chance(30) {
		r.q.BestEffortMinValues = true
	}
}

// application returns the pods of one Deployment.
func (r *random) application(k int) []*corev1.Pod {
	app := fmt.Sprintf("app-%d", k)
	namespace := "default"
	if r.has(Namespaces) {
		namespace = one(r.draw, namespaces[:]...)
	}
	template := pod(namespace, app, corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(one[int64](r.draw, 50, 250, 500, 900, 1700, 3500), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(one[int64](r.draw, 100, 300, 700, 1500, 4000, 9000)<<20, resource.BinarySI),
	}, map[string]string{AppLabel: app, "group": one(r.draw, "x", "y")})
	r.choose(template)
	r.tolerate(template)
	r.spread(template)
	r.relate(template)
	r.prefer(template)
	if r.maybe(HostPorts) {
		template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: int32(8080 + r.IntN(2)), Protocol: corev1.ProtocolTCP}}
	}
	if r.maybe(Devices) {
		template.Spec.Containers[0].Resources.Requests[gpu] = resource.MustParse("1")
		template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpu: resource.MustParse("1")}
	}
	var pods []*corev1.Pod
	for n := range 1 + r.IntN(8) {
		p := template.DeepCopy()
		p.Name = fmt.Sprintf("%s-%d", app, n)
		p.UID = types.UID("uid-" + namespace + "-" + p.Name)
		if r.has(Volumes) && k%2 == 0 {
			r.mount(p, n)
		}
		pods = append(pods, p)
	}
	return pods
}

// choose adds a node selector or node affinity to pods.
func (r *random) choose(p *corev1.Pod) {
	if !r.maybe(NodeAffinity) {
		return
	}
	if r.chance(40) {
		p.Spec.NodeSelector = one(r.draw,
			map[string]string{corev1.LabelTopologyZone: one(r.draw, zones...)},
			map[string]string{corev1.LabelArchStable: one(r.draw, "amd64", "arm64")},
			map[string]string{karpv1.CapacityTypeLabelKey: one(r.draw, "spot", "on-demand")},
			map[string]string{tierLabel: one(r.draw, "gold", "silver")},
			map[string]string{"failure-domain.beta.kubernetes.io/zone": one(r.draw, zones...)})
		return
	}
	var terms []corev1.NodeSelectorTerm
	for range 1 + r.IntN(2) {
		var t corev1.NodeSelectorTerm
		for range 1 + r.IntN(2) {
			t.MatchExpressions = append(t.MatchExpressions, r.expression())
		}
		terms = append(terms, t)
	}
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
}

// expression returns one condition on a node's labels, with any of the operators.
func (r *random) expression() corev1.NodeSelectorRequirement {
	in := func(key string, values ...string) corev1.NodeSelectorRequirement {
		operator := one(r.draw, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn)
		return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	switch r.IntN(7) {
	case 0:
		return in(corev1.LabelTopologyZone, one(r.draw, zones...), one(r.draw, zones...))
	case 1:
		return in(awsv1.LabelInstanceCategory, one(r.draw, "c", "m", "r"))
	case 2:
		return corev1.NodeSelectorRequirement{Key: awsv1.LabelInstanceCPU,
			Operator: one(r.draw, corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt), Values: []string{strconv.Itoa(one(r.draw, 3, 7, 15, 31))}}
	case 3:
		return in(karpv1.CapacityTypeLabelKey, one(r.draw, "spot", "on-demand"))
	case 4:
		return in(tierLabel, one(r.draw, "gold", "silver", "bronze"))
	case 5:
		return corev1.NodeSelectorRequirement{Key: one(r.draw, tierLabel, "karpenter.k8s.aws/instance-gpu-name", corev1.LabelArchStable),
			Operator: one(r.draw, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist)}
	default:
		return in(corev1.LabelArchStable, one(r.draw, "amd64", "arm64"))
	}
}

func (r *random) tolerate(p *corev1.Pod) {
	if !r.has(Taints) || r.chance(30) {
		return
	}
	p.Spec.Tolerations = append(p.Spec.Tolerations, one(r.draw,
		corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "red"},
		corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "blue", Effect: corev1.TaintEffectNoSchedule},
		corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists},
		corev1.Toleration{Operator: corev1.TolerationOpExists}))
}

// selector selects the pods themselves, or some others.
func (r *random) selector(p *corev1.Pod) *metav1.LabelSelector {
	if r.chance(60) {
		return &metav1.LabelSelector{MatchLabels: map[string]string{AppLabel: p.Labels[AppLabel]}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"group": one(r.draw, "x", "y")}}
}

func (r *random) spread(p *corev1.Pod) {
	add := func(key string) {
		c := corev1.TopologySpreadConstraint{
			MaxSkew: int32(1 + r.IntN(2)), TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: r.selector(p)}
		if r.chance(25) && key != corev1.LabelHostname {
			n := int32(1 + r.IntN(4))
			c.MinDomains = &n
		}
		if r.chance(25) {
			policy := one(r.draw, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
			c.NodeTaintsPolicy = &policy
		}
		if r.chance(25) {
			policy := one(r.draw, corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore)
			c.NodeAffinityPolicy = &policy
		}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
	}
	if r.maybe(ZoneSpread) {
		add(corev1.LabelTopologyZone)
	}
	if r.maybe(HostSpread) {
		add(corev1.LabelHostname)
	}
	if r.maybe(LabelSpread) {
		add(tierLabel)
	}
}

func (r *random) podTerm(p *corev1.Pod) corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{LabelSelector: r.selector(p), TopologyKey: one(r.draw, corev1.LabelTopologyZone, corev1.LabelHostname)}
	if r.maybe(Namespaces) {
		if r.chance(50) {
			t.Namespaces = []string{one(r.draw, namespaces[:]...)}
		} else {
			t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": one(r.draw, teams[:]...)}}
		}
	}
	return t
}

// relate adds affinity or anti-affinity to other pods.
func (r *random) relate(p *corev1.Pod) {
	affinity := func() *corev1.Affinity {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &corev1.Affinity{}
		}
		return p.Spec.Affinity
	}
	if r.maybe(Affinity) {
		affinity().PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{r.podTerm(p)}}
	}
	if r.maybe(AntiAffinity) {
		affinity().PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{r.podTerm(p)}}
	}
}

// prefer adds preferences, which may not be met.
func (r *random) prefer(p *corev1.Pod) {
	if !r.maybe(Preferences) {
		return
	}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	a := p.Spec.Affinity
	switch r.IntN(4) {
	case 0:
		if a.NodeAffinity == nil {
			a.NodeAffinity = &corev1.NodeAffinity{}
		}
		a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{
			{Weight: 1 + r.Int32N(10), Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r.expression()}}}}
	case 1:
		if a.PodAffinity == nil {
			a.PodAffinity = &corev1.PodAffinity{}
		}
		a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 5, PodAffinityTerm: r.podTerm(p)}}
	case 2:
		if a.PodAntiAffinity == nil {
			a.PodAntiAffinity = &corev1.PodAntiAffinity{}
		}
		a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.WeightedPodAffinityTerm{{Weight: 5, PodAffinityTerm: r.podTerm(p)}}
	default:
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: one(r.draw, corev1.LabelTopologyZone, corev1.LabelHostname), WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: r.selector(p)})
	}
}

// nodes adds existing nodes, each with some pods of the first applications.
func (r *random) nodes() {
	for k := range 1 + r.IntN(4) {
		pool := one(r.draw, r.q.Pools...)
		t := one(r.draw, r.q.Types[pool.Name]...)
		offerings := slices.DeleteFunc(slices.Clone(t.Offerings), func(o cloud.Offering) bool { return !o.Available })
		n := node(fmt.Sprintf("node-%d", k), pool.Name, t, one(r.draw, offerings...))
		for key, value := range pool.Spec.Template.Labels {
			n.Node.Labels[key] = value
		}
		n.Node.Spec.Taints = pool.Spec.Template.Spec.Taints
		n.Claim.Spec.Taints = pool.Spec.Template.Spec.Taints
		for b := range r.IntN(3) {
			bound := pod("default", fmt.Sprintf("bound-%d-%d", k, b), r.requests(), map[string]string{
				AppLabel: fmt.Sprintf("app-%d", r.IntN(3)), "group": one(r.draw, "x", "y")})
			bound.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			bound.Spec.NodeName = n.Node.Name
			bound.Status = corev1.PodStatus{Phase: corev1.PodRunning}
			if r.maybe(AntiAffinity) {
				t := r.podTerm(bound)
				bound.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{t}}}
			}
			n.Pods = append(n.Pods, bound)
		}
		r.q.Nodes = append(r.q.Nodes, n)
	}
}

func (r *random) randomDaemonSet(k int) *appsv1.DaemonSet {
	set := r.daemonSet(k)
	spec := &set.Spec.Template.Spec
	switch r.IntN(4) {
	case 0:
		spec.NodeSelector = map[string]string{corev1.LabelArchStable: one(r.draw, "amd64", "arm64")}
	case 1:
		spec.Tolerations = nil
	case 2:
		spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
	}
	return set
}

// storage adds the storage classes.
func (r *random) storage() {
	waiting, provisioner := storagev1.VolumeBindingWaitForFirstConsumer, "ebs.csi.aws.com"
	r.q.StorageClasses = []*storagev1.StorageClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "anywhere"}, Provisioner: provisioner, VolumeBindingMode: &waiting},
		{ObjectMeta: metav1.ObjectMeta{Name: "zone-b"}, Provisioner: provisioner, VolumeBindingMode: &waiting,
			AllowedTopologies: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{
				{Key: corev1.LabelTopologyZone, Values: []string{"us-east-1b"}}}}}},
	}
}

// mount gives a pod a claim of its own: bound to a volume in a zone, waiting for its first consumer, or broken.
func (r *random) mount(p *corev1.Pod, n int) {
	name := p.Name + "-data"
	class := one(r.draw, "anywhere", "zone-b")
	switch r.IntN(5) {
	case 0:
		mounts(p, name) // the claim does not exist
	case 1, 2:
		r.claim(p, name, class, zones[n%len(zones)])
	default:
		r.claim(p, name, class, "")
	}
}

// mounts lets a pod mount a claim.
func mounts(p *corev1.Pod, claim string) {
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
}

// claim gives a pod a claim that is bound to a volume in a zone, or waits for its first consumer if zone is empty.
func (r *random) claim(p *corev1.Pod, name, class, zone string) {
	mounts(p, name)
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name, UID: types.UID("claim-" + p.Namespace + name)},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	r.q.Claims = append(r.q.Claims, claim)
	if zone == "" {
		return
	}
	volume := "volume-" + name
	claim.Spec.VolumeName, claim.Status.Phase = volume, corev1.ClaimBound
	claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	r.q.Volumes = append(r.q.Volumes, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volume, UID: types.UID(volume)},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: class,
			AccessModes:      claim.Spec.AccessModes,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: volume}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	})
}

// AsksForDevices reports whether a pod needs a GPU.
func AsksForDevices(p *corev1.Pod) bool {
	_, asks := p.Spec.Containers[0].Resources.Requests[gpu]
	return asks
}
