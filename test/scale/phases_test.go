package scale_test

import (
	"cmp"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/world"
)

const (
	namespace = "scale"
	// workloads is how many Deployments the pods belong to.
	workloads = 40
	// nodeMilliCPU is about what a machine of four processors leaves for pods.
	nodeMilliCPU = 3900
	// emptyBudget allows all empty nodes to be removed at once: with a share of ever fewer nodes, the test would measure the
	// share.
	emptyBudget = "100%"
)

// phase is the cost of one part of the story.
type phase struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	// PeakMiB is the largest resident memory of each worker process, CPUSeconds its processor time.
	PeakMiB    []float64 `json:"peakMiB"`
	CPUSeconds []float64 `json:"cpuSeconds"`
	// Requests are all requests of the workers to the API server by verb, and MiB is the traffic on the wire, watches
	// included.
	Requests map[string]int `json:"requests"`
	MiB      float64        `json:"MiB"`
	// ListsOfAll counts the lists of all objects of a resource, by resource.
	ListsOfAll map[string]int `json:"listsOfAll"`
}

// story is the cluster and what is done to it.
type story struct {
	*world.World
	nodes, pods int
	// step is how many pods are created at once; the next ones are created when those are Ready. A laboratory on two cores
	// does not cope with more than a few thousand.
	step int
	// wanted is how many pods are wanted at present.
	wanted int
	// budget is how many nodes may be disrupted at once while all of them drift.
	budget   string
	replicas []*replica
	meter    *world.Wire
	phases   []phase
	// profiled is the peak memory at the last heap profile, by worker and phase.
	profiled map[string]float64
}

// pool returns a NodePool of four-processor machines of many types. version is the label whose change makes all nodes drift.
func pool(version, consolidateAfter, budget string) string {
	return fmt.Sprintf(strings.TrimSpace(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: scale}
spec:
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: %s, budgets: [{nodes: "%s"}]}
  template:
    metadata: {labels: {version: %s}}
    spec:
      expireAfter: 720h
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
      - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["2"]}
      - {key: karpenter.k8s.aws/instance-cpu, operator: In, values: ["4"]}
`), consolidateAfter, budget, version)
}

// workload returns a Deployment whose pods are as large as many in production: objects of some kilobytes.
func (s *story) workload(i, replicas int) string {
	var environment strings.Builder
	for v := range 20 {
		fmt.Fprintf(&environment, "\n        - {name: SETTING_%d, value: some-value-of-a-setting}", v)
	}
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: %[1]s, name: service-%[2]d}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: service-%[2]d}}
  strategy: {rollingUpdate: {maxSurge: 100%%}}
  template:
    metadata: {labels: {app: service-%[2]d, app.kubernetes.io/name: service-%[2]d}}
    spec:
      nodeSelector: {karpenter.sh/nodepool: scale}
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: example.com/service-%[2]d
        env:%[4]s
        resources: {requests: {cpu: %[5]dm, memory: %[6]dMi}}
`, namespace, i, replicas, environment.String(), nodeMilliCPU*s.nodes/s.pods, 64+8*i)
}

// scale sets the total number of pods that all Deployments want.
func (s *story) scale(pods int) {
	s.T.Helper()
	s.wanted = pods
	for i := range workloads {
		n := pods / workloads
		if i < pods%workloads {
			n++
		}
		s.Apply(s.workload(i, n))
	}
}

// ready returns how many pods are Ready and how many exist, according to their Deployments. If the API server is too busy to
// answer, it returns -1 for both.
func (s *story) ready() (ready, all int) {
	s.T.Helper()
	var list appsv1.DeploymentList
	if err := s.List(s.Context(), &list, client.InNamespace(namespace)); err != nil {
		return -1, -1
	}
	for _, d := range list.Items {
		ready, all = ready+int(d.Status.ReadyReplicas), all+int(d.Status.Replicas)
	}
	return ready, all
}

// claims counts NodeClaims by a label, without fetching whole objects.
func (s *story) claims(selector client.MatchingLabels) int {
	s.T.Helper()
	return s.count("NodeClaimList", selector)
}

// count returns the number of objects, or -1 if the API server is too busy to answer.
func (s *story) count(kind string, selector client.MatchingLabels) int {
	s.T.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(karpv1.SchemeGroupVersion.WithKind(kind))
	if kind == "NodeList" {
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	}
	if err := s.List(s.Context(), list, selector); err != nil {
		return -1
	}
	return len(list.Items)
}

// play does something, waits until it is done and records the cost.
func (s *story) play(name string, patience time.Duration, begin func(), done func() (bool, string)) {
	s.T.Helper()
	before, bytes := len(s.Requests()), s.meter.Bytes()
	cpu := make([]time.Duration, len(s.replicas))
	for i, r := range s.replicas {
		r.forgetPeak(s.T)
		cpu[i] = r.cpu(s.T)
	}
	began := time.Now()
	begin()
	told := began
	s.Await(name, patience, func() (bool, string) {
		for _, r := range s.replicas {
			r.alive(s.T)
		}
		ok, state := done()
		if time.Since(told) > 15*time.Second {
			told = time.Now()
			s.profile(name)
			progress("%s: %s after %.0f s, peaks %.0f MiB", name, state, time.Since(began).Seconds(), s.peaks())
		}
		if !ok {
			// Looking costs the API server something, too.
			time.Sleep(time.Second + time.Duration(s.nodes)*2*time.Millisecond)
		}
		return ok, state
	})
	p := phase{Name: name, Seconds: time.Since(began).Seconds(), PeakMiB: s.peaks(), MiB: float64(s.meter.Bytes()-bytes) / (1 << 20),
		Requests: map[string]int{}, ListsOfAll: map[string]int{}}
	for i, r := range s.replicas {
		p.CPUSeconds = append(p.CPUSeconds, (r.cpu(s.T) - cpu[i]).Seconds())
	}
	for _, request := range s.Requests()[before:] {
		p.Requests[request.Verb]++
		if request.Verb == "list" && request.OfAll() {
			p.ListsOfAll[request.Resource]++
		}
	}
	s.phases = append(s.phases, p)
	progress("%s with %d replicas took %.0f s: peaks %.0f MiB, %.0f s of processor time, %.0f MiB on the wire, requests %v, lists of all objects %v",
		name, len(s.replicas), p.Seconds, p.PeakMiB, p.CPUSeconds, p.MiB, p.Requests, p.ListsOfAll)
}

// profilesVariable names a directory for heap profiles of the workers, one for each phase, taken when the most memory was
// resident.
const profilesVariable = "TENON_SCALE_PROFILES"

// profile keeps profiles of the heaps, if a directory is set and they have grown.
func (s *story) profile(phase string) {
	s.T.Helper()
	dir := os.Getenv(profilesVariable)
	if dir == "" {
		return
	}
	for _, r := range s.replicas {
		if peak := r.peak(s.T); peak > 1.02*s.profiled[r.name+phase] {
			if s.profiled == nil {
				s.profiled = map[string]float64{}
			}
			s.profiled[r.name+phase] = peak
			r.profile(s.T, dir, phase)
		}
	}
}

func (s *story) peaks() []float64 {
	var peaks []float64
	for _, r := range s.replicas {
		peaks = append(peaks, r.peak(s.T))
	}
	return peaks
}

// scaleOutDriftAndIn scales from nothing to all nodes, replaces all of them, and scales back.
func (s *story) scaleOutDriftAndIn(patience time.Duration) {
	s.T.Helper()
	s.Apply(pool("one", "Never", s.budget))
	s.Apply("{apiVersion: v1, kind: Namespace, metadata: {name: " + namespace + "}}")
	served := func(version string) func() (bool, string) {
		return func() (bool, string) {
			ready, all := s.ready()
			claims, now := s.claims(nil), s.claims(client.MatchingLabels{"version": version})
			nodes := s.count("NodeList", client.MatchingLabels{"version": version, karpv1.NodeInitializedLabelKey: "true"})
			return ready == s.wanted && all == s.wanted && now == claims && nodes == claims && now >= s.wanted*s.nodes/s.pods,
				fmt.Sprintf("%d of %d pods Ready, %d claims, %d of version %s and %d initialized", ready, all, claims, now, version, nodes)
		}
	}
	s.play("scale-out", patience, func() { s.scale(min(s.pods, s.step)) }, func() (bool, string) {
		done, state := served("one")()
		if done && s.wanted < s.pods {
			s.scale(min(s.pods, s.wanted+s.step))
			return false, state
		}
		return done, state
	})
	progress("%d nodes", s.claims(nil))
	s.play("drift", patience, func() { s.Apply(pool("two", "Never", s.budget)) }, served("two"))
	s.play("scale-in", patience, func() {
		s.scale(0)
		s.Apply(pool("two", "0s", emptyBudget))
	}, func() (bool, string) {
		_, pods := s.ready()
		claims, nodes := s.claims(nil), s.count("NodeList", nil)
		living := -1
		if claims+nodes == 0 {
			living = s.instances()
		}
		return pods+claims+nodes == 0 && living == 0, fmt.Sprintf("%d pods, %d claims, %d nodes", pods, claims, nodes)
	})
}

// instances returns how many instances have not been terminated.
func (s *story) instances() int {
	s.T.Helper()
	var all []ec2sim.Instance
	s.Sim(http.MethodGet, "/_sim/instances", nil, &all)
	return len(slices.DeleteFunc(all, func(i ec2sim.Instance) bool { return i.EndedAt != nil }))
}

// listsOfAll returns the resource that was listed most often in a phase, and how often.
func (p phase) listsOfAll() (resource string, count int) {
	for r, n := range p.ListsOfAll {
		if n > count || n == count && cmp.Less(r, resource) {
			resource, count = r, n
		}
	}
	return resource, count
}

func progress(format string, values ...any) {
	fmt.Printf(time.Now().Format("15:04:05 ")+format+"\n", values...)
}
