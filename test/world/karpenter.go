package world

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The Lease for which Karpenter and Tenon compete in the laboratory.
const (
	LeaseNamespace = "kube-system"
	LeaseName      = "karpenter-leader-election"
)

const (
	// KarpenterUser is Karpenter's user name at the API server: a service account, as in production.
	KarpenterUser = "system:serviceaccount:" + LeaseNamespace + ":karpenter"
	// tokenSeconds is how long Karpenter's token is valid: longer than any test.
	tokenSeconds = 24 * 60 * 60
	// stopsWithin is how long Karpenter may take to stop.
	stopsWithin = 30 * time.Second
)

// Karpenter is the real controller, as its authors release it, as its own process.
type Karpenter struct {
	w       *World
	program string
	env     []string

	mu    sync.Mutex
	cmd   *exec.Cmd
	ended chan struct{}
}

// NewKarpenter gives Karpenter an identity in the cluster and configures it with the simulated AWS and, unless queue is
// empty, an interruption queue. It does not start it. It needs the program, which make bin/karpenter builds.
func (w *World) NewKarpenter(queue string) *Karpenter {
	w.T.Helper()
	program, err := filepath.Abs(filepath.Join("..", "..", "bin", "karpenter"))
	if err != nil {
		w.T.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		w.T.Fatalf("Karpenter is not built (make bin/karpenter): %v", err)
	}
	k := &Karpenter{w: w, program: program, env: slices.DeleteFunc(w.Command().Env, func(variable string) bool { return strings.HasPrefix(variable, "KUBECONFIG=") })}
	config, err := w.Lab.RESTConfig()
	if err != nil {
		w.T.Fatal(err)
	}
	k.env = append(k.env,
		"KUBECONFIG="+k.kubeconfig(),
		"CLUSTER_NAME="+w.Lab.Cluster(), "CLUSTER_ENDPOINT="+config.Host,
		"LEADER_ELECTION_NAMESPACE="+LeaseNamespace, "LEADER_ELECTION_NAME="+LeaseName,
		"INTERRUPTION_QUEUE="+queue,
		"METRICS_PORT=0", "HEALTH_PROBE_PORT=0", // any free ports
		// An AWS profile of the user at this machine must not reach the SDK.
		"AWS_CONFIG_FILE="+os.DevNull, "AWS_SHARED_CREDENTIALS_FILE="+os.DevNull, "AWS_EC2_METADATA_DISABLED=true",
	)
	w.T.Cleanup(k.Kill)
	return k
}

// kubeconfig creates a service account with all permissions, and returns the path of a kubeconfig with a token for it.
func (k *Karpenter) kubeconfig() string {
	w := k.w
	w.T.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: LeaseNamespace, Name: "karpenter"}}
	if err := w.Create(w.Context(), account); err != nil {
		w.T.Fatalf("create Karpenter's service account: %v", err)
	}
	if err := w.Create(w.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "karpenter"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}}); err != nil {
		w.T.Fatalf("give Karpenter its rights: %v", err)
	}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))}}
	if err := w.SubResource("token").Create(w.Context(), account, token); err != nil {
		w.T.Fatalf("ask for Karpenter's token: %v", err)
	}
	config, err := clientcmd.LoadFromFile(w.Lab.Kubeconfig())
	if err != nil {
		w.T.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	path := filepath.Join(w.Lab.Dir(), "config", "karpenter.kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		w.T.Fatal(err)
	}
	return path
}

// Start starts Karpenter, which takes the Lease once that is free.
func (k *Karpenter) Start() {
	k.w.T.Helper()
	log, err := os.OpenFile(filepath.Join(k.w.Lab.Dir(), "logs", "karpenter.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		k.w.T.Fatal(err)
	}
	cmd := exec.Command(k.program)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = k.env, log, log, DieTogether()
	ended, started := make(chan struct{}), make(chan error)
	go func() {
		defer close(ended)
		defer func() { _ = log.Close() }()
		// The kernel kills the process when the thread that started it ends.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		k.w.T.Fatalf("start Karpenter: %v", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cmd, k.ended = cmd, ended
}

// running reports whether the process is running.
func (k *Karpenter) running() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cmd == nil {
		return false
	}
	select {
	case <-k.ended:
		return false
	default:
		return true
	}
}

// Stop terminates Karpenter as Kubernetes terminates a pod. Karpenter does not release the Lease even then: others wait
// until it expires.
func (k *Karpenter) Stop() {
	k.w.T.Helper()
	k.signal(syscall.SIGTERM)
	k.w.Await("Karpenter to stop", stopsWithin, func() (bool, string) { return !k.running(), "it runs" })
}

// Kill kills Karpenter.
func (k *Karpenter) Kill() {
	k.signal(syscall.SIGKILL)
	if k.ended != nil {
		<-k.ended
	}
}

func (k *Karpenter) signal(signal syscall.Signal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cmd != nil {
		_ = k.cmd.Process.Signal(signal)
	}
}
