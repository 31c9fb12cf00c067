package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwokapis "sigs.k8s.io/karpenter/kwok/apis"
	karpenterapis "sigs.k8s.io/karpenter/pkg/apis"

	"github.com/tenon-sh/tenon/lab"
)

// karpenter is Karpenter with its kwok provider.
type karpenter struct {
	program string
	sizes   []size
	cmd     *exec.Cmd
	ended   chan error
}

func (k *karpenter) name() string { return "karpenter" }

func (k *karpenter) build(ctx context.Context, dir string, sizes []size) error {
	k.program, k.sizes = filepath.Join(dir, "karpenter-kwok"), sizes
	return compile(ctx, ".", k.program, "sigs.k8s.io/karpenter/kwok")
}

// options: kwok plays Karpenter's nodes too, and Karpenter brings its own resources.
func (k *karpenter) options(setting) lab.Options {
	return lab.Options{Components: lab.ControlPlane(), Bare: true}
}

func (k *karpenter) start(ctx context.Context, l *lab.Lab, c client.Client, s setting) error {
	for _, definition := range append(append([]*apiextensionsv1.CustomResourceDefinition{}, karpenterapis.CRDs...), kwokapis.CRDs...) {
		if err := c.Create(ctx, definition.DeepCopy()); err != nil {
			return fmt.Errorf("create %s: %w", definition.Name, err)
		}
	}
	file := filepath.Join(l.Dir(), "kwok-instance-types.json")
	if err := writeForKwok(file, k.sizes); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(l.Dir(), "logs", "karpenter.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	k.cmd = exec.Command(k.program)
	k.cmd.Stdout, k.cmd.Stderr = log, log
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	k.cmd.Env = append(os.Environ(), "KUBECONFIG="+l.Kubeconfig(), "INSTANCE_TYPES_FILE_PATH="+file,
		"DISABLE_LEADER_ELECTION=true", "KUBE_CLIENT_QPS=1000", "KUBE_CLIENT_BURST=2000", "CPU_REQUESTS=2000",
		"METRICS_PORT="+strconv.Itoa(ports[0]), "HEALTH_PROBE_PORT="+strconv.Itoa(ports[1]))
	if err := k.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", k.program, err)
	}
	k.ended = make(chan error, 1)
	go func() { k.ended <- k.cmd.Wait() }()
	return await(ctx, "the NodePool accepted", time.Minute, func() error {
		return apply(ctx, c, fmt.Sprintf(`
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: fleet}
spec: {nodeRegistrationDelay: %ds}
---
%s`, int(s.boot.Seconds()), s.pool("karpenter.kwok.sh", "KWOKNodeClass")))
	})
}

func (k *karpenter) processes() (map[string]int, error) {
	select {
	case err := <-k.ended:
		return nil, fmt.Errorf("karpenter ended: %w", err)
	default:
		return map[string]int{"worker": k.cmd.Process.Pid}, nil
	}
}

func (k *karpenter) stop() {
	if k.cmd == nil || k.cmd.Process == nil {
		return
	}
	_ = k.cmd.Process.Kill()
	<-k.ended
}

// freePorts returns ports that nobody listened on a moment ago.
func freePorts(count int) ([]int, error) {
	ports := make([]int, count)
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = listener.Close() }()
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}
