package walk_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
)

// step is one event. Its own seed decides its details: the same step does the same, whatever came before.
type step struct {
	deed  int
	seed  uint64
	pause time.Duration
}

// steps returns the steps of a leg: first it creates pods, and gives the first nodes time to serve.
func steps(seed uint64, count int) []step {
	random := rand.New(rand.NewPCG(seed, 0)) // a walk must be repeatable
	way := make([]step, 0, count)
	for i := range count {
		next := step{deed: random.IntN(len(deeds)), seed: random.Uint64(), pause: time.Duration(random.IntN(3000)) * time.Millisecond}
		if i == 0 {
			next.deed, next.pause = crowd, 8*time.Second
		}
		way = append(way, next)
	}
	return way
}

// crowd is the deed that creates pods of every workload.
const crowd = 0

// deeds are the possible events. Each returns what it has done; one that is not possible at the moment does nothing.
var deeds = []func(w *walker, random *rand.Rand) string{
	scaleAll, scale, scale, closeBudget, openBudget,
	drain, drain, cancelDrain, editClaim, deleteClaim, editNode, deleteNode, takeFinalizerOff, takeNodeFinalizerOff,
	editPool, deletePool, editClass, deleteClass,
	takeBack, takeBack, kill, fault, fault, fault,
	killWorker, stopWorker, killSecond, killServer, stopServer, stopServer,
	press, press, stealLease, cutOff, cutOff, rollSecond, stepClock,
}

func scaleAll(w *walker, random *rand.Rand) string {
	var errs []error
	for _, name := range workloads {
		w.wanted[name] = 2 + random.IntN(4)
		errs = append(errs, w.TryApply(workload(name, w.wanted[name])))
	}
	return fmt.Sprintf("scale to %v: %v", w.wanted, errors.Join(errs...))
}

func scale(w *walker, random *rand.Rand) string {
	name := workloads[random.IntN(len(workloads))]
	w.wanted[name] = random.IntN(6)
	return fmt.Sprintf("scale %s to %d: %v", name, w.wanted[name], w.TryApply(workload(name, w.wanted[name])))
}

func closeBudget(w *walker, random *rand.Rand) string {
	name := workloads[random.IntN(len(workloads))]
	most := random.IntN(2)
	return fmt.Sprintf("let %d pods of %s be away: %v", most, name, w.TryApply(budget(name, most)))
}

func openBudget(w *walker, random *rand.Rand) string {
	name := workloads[random.IntN(len(workloads))]
	return fmt.Sprintf("let all pods of %s be away: %v", name, w.TryApply(budget(name, 100)))
}

func drain(w *walker, random *rand.Rand) string {
	node, order := w.anyNode(random), []string{"drain"}
	if node == "" {
		return "drain nothing"
	}
	order = append(order, node)
	if random.IntN(3) == 0 {
		order = append(order, "--deadline=20s")
		w.force(node)
	}
	out, err := w.Tenon(order...)
	return fmt.Sprintf("tenon %s: %s %v", strings.Join(order, " "), firstLine(out), err)
}

func cancelDrain(w *walker, random *rand.Rand) string {
	for _, running := range w.executions("WorkflowType = 'Drain' AND ExecutionStatus = 'Running'") {
		node := running[strings.LastIndexByte(running, '/')+1:]
		out, err := w.Tenon("drain", "cancel", node)
		return fmt.Sprintf("tenon drain cancel %s: %s %v", node, firstLine(out), err)
	}
	return "cancel no drain"
}

func deleteClaim(w *walker, random *rand.Rand) string {
	claim := w.anyClaim(random)
	if claim == nil {
		return "delete no claim"
	}
	return fmt.Sprintf("delete NodeClaim %s: %v", claim.Name, w.Delete(w.Context(), claim))
}

// editClaim protects a claim from disruption, or lifts the protection.
func editClaim(w *walker, random *rand.Rand) string {
	claim := w.anyClaim(random)
	if claim == nil {
		return "edit no claim"
	}
	value := []string{`"true"`, "null"}[random.IntN(2)]
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %s}}}`, karpv1.DoNotDisruptAnnotationKey, value))
	return fmt.Sprintf("annotate NodeClaim %s with %s=%s: %v", claim.Name, karpv1.DoNotDisruptAnnotationKey, value, w.Patch(w.Context(), claim, patch))
}

// editNode cordons or uncordons a node, or removes the taint of a node being disrupted.
func editNode(w *walker, random *rand.Rand) string {
	name := w.anyNode(random)
	if name == "" {
		return "edit no node"
	}
	verb := [][]string{{"cordon", name}, {"uncordon", name}, {"taint", "node", name, karpv1.DisruptedTaintKey + "-"}}[random.IntN(3)]
	if verb[0] == "taint" {
		w.open(name)
	}
	out, err := w.Kubectl(verb...)
	return fmt.Sprintf("kubectl %s: %s %v", strings.Join(verb, " "), firstLine(out), err)
}

func deleteNode(w *walker, random *rand.Rand) string {
	name := w.anyNode(random)
	if name == "" {
		return "delete no node"
	}
	out, err := w.Kubectl("delete", "node", name, "--wait=false")
	return fmt.Sprintf("kubectl delete node %s: %s %v", name, firstLine(out), err)
}

func takeFinalizerOff(w *walker, random *rand.Rand) string {
	claim := w.anyClaim(random)
	if claim == nil {
		return "take no finalizer off"
	}
	before := claim.DeepCopy()
	claim.Finalizers = nil
	err := w.Patch(w.Context(), claim, client.MergeFrom(before))
	if err == nil {
		err = w.Delete(w.Context(), claim)
	}
	return fmt.Sprintf("take the finalizer off NodeClaim %s and delete it: %v", claim.Name, err)
}

func takeNodeFinalizerOff(w *walker, random *rand.Rand) string {
	name := w.anyNode(random)
	if name == "" {
		return "take no node's finalizer off"
	}
	w.force(name)
	out, err := w.Kubectl("patch", "node", name, "--type=merge", `--patch={"metadata": {"finalizers": null}}`)
	if err == nil {
		out, err = w.Kubectl("delete", "node", name, "--wait=false")
	}
	return fmt.Sprintf("take the finalizer off Node %s and delete it: %s %v", name, firstLine(out), err)
}

func editPool(w *walker, random *rand.Rand) string {
	value := random.IntN(1000)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"template": {"metadata": {"labels": {"edited": "%d"}}}}}`, value))
	return fmt.Sprintf("edit the NodePool, which makes all nodes drift: %v", w.Patch(w.Context(), &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, patch))
}

// deletePool deletes the NodePool, and with it its nodes, and creates it again after a while.
func deletePool(w *walker, random *rand.Rand) string {
	pause := time.Duration(1+random.IntN(20)) * time.Second
	err := w.Delete(w.Context(), &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: w.pool.GetName()}})
	w.later(pause, func() { _ = w.restore() })
	return fmt.Sprintf("delete the NodePool, and make it anew after %s: %v", pause, err)
}

func editClass(w *walker, random *rand.Rand) string {
	value := random.IntN(1000)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"tags": {"edited": "%d"}}}`, value))
	return fmt.Sprintf("edit the EC2NodeClass, which makes all nodes drift: %v", w.Patch(w.Context(), &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: w.class.GetName()}}, patch))
}

// deleteClass deletes the EC2NodeClass. It continues to exist for as long as a NodeClaim uses it, and launches nothing.
func deleteClass(w *walker, _ *rand.Rand) string {
	return fmt.Sprintf("delete the EC2NodeClass: %v", w.Delete(w.Context(), &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: w.class.GetName()}}))
}

func takeBack(w *walker, random *rand.Rand) string {
	claim := w.anyClaim(random)
	if claim == nil || claim.Status.ProviderID == "" {
		return "take no instance back"
	}
	id := claim.Status.ProviderID[strings.LastIndexByte(claim.Status.ProviderID, '/')+1:]
	notice := []string{"5s", "30s", "2m"}[random.IntN(3)]
	w.force(claim.Status.NodeName)
	return fmt.Sprintf("EC2 takes %s of %s back in %s: %v", id, claim.Name, notice, w.ask("/_sim/interrupt", fmt.Sprintf(`{"instances": [%q], "notice": %q}`, id, notice)))
}

// kill terminates an instance at once, as a failure of its host would.
func kill(w *walker, random *rand.Rand) string {
	claim := w.anyClaim(random)
	if claim == nil || claim.Status.ProviderID == "" {
		return "kill no instance"
	}
	id := claim.Status.ProviderID[strings.LastIndexByte(claim.Status.ProviderID, '/')+1:]
	w.force(claim.Status.NodeName)
	return fmt.Sprintf("the host of %s of %s fails: %v", id, claim.Name, w.ask("/_sim/kill", fmt.Sprintf(`{"instances": [%q]}`, id)))
}

// ask sends the simulated EC2 a request that it may refuse.
func (w *walker) ask(path, question string) error {
	request, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.Lab.EC2SimURL()+path, strings.NewReader(question))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("EC2 says %s", response.Status)
	}
	return nil
}

func fault(w *walker, random *rand.Rand) string {
	once := ec2sim.Occurrence{Times: 1}
	faults := []struct {
		name string
		ec2sim.Faults
	}{
		{"EC2 is as it should be", ec2sim.Faults{}},
		{"there is no capacity", ec2sim.Faults{Capacity: []ec2sim.CapacityFault{{Code: "InsufficientInstanceCapacity"}}}},
		{"EC2 throttles in bodies", ec2sim.Faults{Capacity: []ec2sim.CapacityFault{{Code: "RequestLimitExceeded"}}}},
		{"EC2 throttles as published", ec2sim.Faults{Throttle: 0.5}},
		{"the answer to a launch is lost", ec2sim.Faults{Lost: []ec2sim.ReplyFault{{Action: "CreateFleet", Occurrence: once}}}},
		{"the answer to a termination is lost", ec2sim.Faults{Lost: []ec2sim.ReplyFault{{Action: "TerminateInstances", Occurrence: once}}}},
		{"EC2 says things late", ec2sim.Faults{DescribeLag: ec2sim.Duration(8 * time.Second)}},
		{"a machine never registers", ec2sim.Faults{NeverRegister: []ec2sim.BootFault{{Occurrence: once}}}},
		{"a machine never becomes ready", ec2sim.Faults{NeverReady: []ec2sim.BootFault{{Occurrence: once}}}},
	}
	chosen := faults[random.IntN(len(faults))]
	w.Faults(chosen.Faults)
	return chosen.name
}

func killWorker(w *walker, _ *rand.Rand) string {
	return fmt.Sprintf("kill the first worker: %v", w.Lab.Kill(lab.Worker, syscall.SIGKILL))
}

func stopWorker(w *walker, random *rand.Rand) string {
	pause := time.Duration(2+random.IntN(20)) * time.Second
	err := w.Lab.Kill(lab.Worker, syscall.SIGSTOP)
	w.later(pause, func() {
		_ = w.Lab.Kill(lab.Worker, syscall.SIGCONT)
		w.thawed()
	})
	return fmt.Sprintf("stop the first worker for %s: %v", pause, err)
}

func killSecond(w *walker, _ *rand.Rand) string {
	w.second.kill()
	return "kill the second worker"
}

// servers returns the components that everything else depends on.
func (w *walker) servers() []lab.Component {
	servers := []lab.Component{lab.Temporal, lab.APIServer, lab.Etcd}
	if _, err := w.Lab.PID(lab.Postgres); err == nil {
		servers = append(servers, lab.Postgres)
	}
	return servers
}

func killServer(w *walker, random *rand.Rand) string {
	servers := w.servers()
	server := servers[random.IntN(len(servers))]
	return fmt.Sprintf("kill %s: %v", server, w.Lab.Kill(server, syscall.SIGKILL))
}

// stopServer suspends a server for a while.
func stopServer(w *walker, random *rand.Rand) string {
	servers := w.servers()
	server, pause := servers[random.IntN(len(servers))], time.Duration(1+random.IntN(15))*time.Second
	err := w.Lab.Kill(server, syscall.SIGSTOP)
	w.later(pause, func() {
		_ = w.Lab.Kill(server, syscall.SIGCONT)
		w.thawed()
	})
	return fmt.Sprintf("stop %s for %s: %v", server, pause, err)
}

// press presses a button of Temporal's UI on some workflow.
func press(w *walker, random *rand.Rand) string {
	running := w.executions("ExecutionStatus = 'Running'")
	if len(running) == 0 {
		return "press no button"
	}
	id := running[random.IntN(len(running))]
	var err error
	button := []string{"cancel", "terminate", "reset"}[random.IntN(3)]
	switch button {
	case "cancel":
		err = w.Temporal.CancelWorkflow(w.Context(), id, "")
	case "terminate":
		err = w.Temporal.TerminateWorkflow(w.Context(), id, "", "a person")
	default:
		err = w.Reset(w.Context(), id)
	}
	return fmt.Sprintf("%s %s: %v", button, id, err)
}

// stealLease lets another controller hold the Lease for a while.
func stealLease(w *walker, random *rand.Rand) string {
	held := time.Duration(2+random.IntN(35)) * time.Second
	err := w.hold("karpenter-76f8d_5e1a", held)
	return fmt.Sprintf("another controller holds the Lease for %s: %v", held, err)
}

// rollSecond replaces the second worker by another version of Tenon, or by the first worker's again.
func rollSecond(w *walker, _ *rand.Rand) string {
	if build := w.second.roll(); build != "" {
		return "replace the second worker by one of build " + build
	}
	return "replace the second worker by one of the first one's build"
}

// stepClock steps the second worker's clock by up to ten minutes in either direction, and back after a while.
func stepClock(w *walker, random *rand.Rand) string {
	ahead, lasts := time.Duration(random.IntN(1200)-600)*time.Second, time.Duration(5+random.IntN(40))*time.Second
	clock := w.second.clock
	if clock == nil {
		return "step no clock"
	}
	err := clock.step(ahead)
	w.later(lasts, func() { _ = clock.step(0) })
	return fmt.Sprintf("step the second worker's clock by %s for %s: %v", ahead, lasts, err)
}

// cutOff cuts the second worker off from the API server, from Temporal, or from both for a while.
func cutOff(w *walker, random *rand.Rand) string {
	pause := time.Duration(2+random.IntN(40)) * time.Second
	wires, from := []*world.Wire{w.second.apiServer, w.second.temporal}, "the API server and Temporal"
	switch random.IntN(3) {
	case 0:
		wires, from = wires[:1], "the API server"
	case 1:
		wires, from = wires[1:], "Temporal"
	}
	for _, wire := range wires {
		wire.Cut()
		w.later(pause, func() {
			wire.Mend()
			w.thawed()
		})
	}
	return fmt.Sprintf("cut the second worker off from %s for %s", from, pause)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
