package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/deploy"
	"github.com/tenon-sh/tenon/lab"
)

// tenon is Tenon's worker, with the simulated EC2 and Temporal.
type tenon struct {
	program string
	dir     string
	sizes   []size
	lab     *lab.Lab
}

func (t *tenon) name() string { return "tenon" }

func (t *tenon) build(ctx context.Context, dir string, sizes []size) error {
	t.program, t.dir, t.sizes = filepath.Join(dir, "tenon-lab"), dir, sizes
	if err := writeForEC2(t.file(), sizes); err != nil {
		return err
	}
	return compile(ctx, "..", t.program, "./cmd/tenon-lab")
}

func (t *tenon) file() string { return filepath.Join(t.dir, "ec2-instance-types.json") }

func (t *tenon) options(s setting) lab.Options {
	return lab.Options{TenonLab: t.program, BootDelay: s.boot, Args: map[lab.Component][]string{
		lab.EC2Sim: {"--catalogue=" + t.file(), "--ready-delay=0s"},
		lab.Worker: {"--vm-memory-overhead-percent=" + strconv.FormatFloat(overhead(t.sizes), 'f', 6, 64)},
	}}
}

func (t *tenon) start(ctx context.Context, l *lab.Lab, c client.Client, s setting) error {
	t.lab = l
	if err := c.Delete(ctx, &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}); err != nil {
		return fmt.Errorf("delete the default NodePool: %w", err)
	}
	class, err := deploy.DefaultNodeClass(l.Cluster())
	if err != nil {
		return err
	}
	if err := apply(ctx, c, string(class), func(object map[string]any) {
		object["metadata"] = map[string]any{"name": "fleet"}
		object["spec"].(map[string]any)["kubelet"] = map[string]any{
			"podsPerCore":  int64(podsPerCore),
			"kubeReserved": map[string]any{"cpu": fmt.Sprintf("%dm", reservedMilliCPU), "memory": fmt.Sprintf("%dMi", reservedMemoryMiB), "ephemeral-storage": "0"},
			"evictionHard": map[string]any{"memory.available": "0", "nodefs.available": "0%"},
		}
	}); err != nil {
		return err
	}
	return await(ctx, "the NodePool accepted", time.Minute, func() error { return apply(ctx, c, s.pool("karpenter.k8s.aws", "EC2NodeClass")) })
}

func (t *tenon) processes() (map[string]int, error) {
	pids := map[string]int{}
	for role, component := range map[string]lab.Component{"worker": lab.Worker, "temporal": lab.Temporal} {
		pid, err := t.lab.PID(component)
		if err != nil || pid == 0 {
			return nil, fmt.Errorf("%s does not run: %w", component, err)
		}
		pids[role] = pid
	}
	return pids, nil
}

func (t *tenon) stop() {}

// asPromised fails if a node of the fleet is not as large as the price list says: the rivals would not have bought the same.
func asPromised(nodes []corev1.Node, sizes []size) error {
	byName := map[string]size{}
	for _, s := range sizes {
		byName[s.name] = s
	}
	for i := range nodes {
		s, has := byName[nodes[i].Labels[corev1.LabelInstanceTypeStable]], nodes[i].Status.Allocatable
		memory, want := has.Memory().Value()>>20, s.memoryMiB-reservedMemoryMiB
		if cpu := has.Cpu().MilliValue(); cpu != int64(1000*s.cores-reservedMilliCPU) || memory < want || memory > want+2 || has.Pods().Value() != int64(podsPerCore*s.cores) {
			return fmt.Errorf("node %s of type %s has %dm, %dMi and %s pods", nodes[i].Name, s.name, cpu, memory, has.Pods())
		}
	}
	return nil
}
