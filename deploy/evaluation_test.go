package deploy_test

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/tenon-sh/tenon/workflows"
)

const evaluation = "settings: {clusterName: blue}\ntemporal: {evaluation: {enabled: true}}"

// TestEvaluationServes runs the Temporal server that the chart brings for an evaluation, with the chart's arguments, and finds
// there what tenon setup would create. After the process is killed, everything is still there.
func TestEvaluationServes(t *testing.T) {
	t.Parallel()
	objects := render(t, evaluation)
	server := find[appsv1.StatefulSet](t, objects, "StatefulSet", "tenon-temporal")
	container := server.Spec.Template.Spec.Containers[0]
	data := ""
	for _, mount := range container.VolumeMounts {
		if mount.Name == server.Spec.VolumeClaimTemplates[0].Name {
			data = mount.MountPath
		}
	}
	address, ui := freeAddress(t), freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	_, uiPort, _ := net.SplitHostPort(ui)
	// Only the addresses and the directory are this machine's.
	here := strings.NewReplacer("0.0.0.0", "127.0.0.1", "7233", port, "8233", uiPort, data, t.TempDir())
	var args []string
	for _, arg := range container.Args {
		args = append(args, here.Replace(arg))
	}
	if !slices.ContainsFunc(container.Args, func(arg string) bool { return strings.HasPrefix(arg, "--db-filename="+data+"/") }) {
		t.Errorf("the database of %q is not on the volume %s", container.Args, data)
	}
	for range 2 {
		stop := startTemporal(t, args)
		got := searchAttributes(t, address, chartValues(t).Temporal.Namespace)
		if diff := cmp.Diff(slices.Sorted(slices.Values(workflows.Attributes())), got); diff != "" {
			t.Errorf("search attributes (-want +got):\n%s", diff)
		}
		stop()
	}
}

// TestEvaluationIsReachedByWorkersOnly checks who finds the server and who may speak to it.
func TestEvaluationIsReachedByWorkersOnly(t *testing.T) {
	t.Parallel()
	objects := render(t, evaluation)
	server := find[appsv1.StatefulSet](t, objects, "StatefulSet", "tenon-temporal")
	service := find[corev1.Service](t, objects, "Service", "tenon-temporal")
	policy := find[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy", "tenon-temporal")
	workers := find[appsv1.Deployment](t, objects, "Deployment", "tenon")
	for what, selector := range map[string]map[string]string{"StatefulSet": server.Spec.Selector.MatchLabels, "Service": service.Spec.Selector, "NetworkPolicy": policy.Spec.PodSelector.MatchLabels} {
		if !selects(selector, server.Spec.Template.Labels) || selects(selector, workers.Spec.Template.Labels) {
			t.Errorf("the %s selects %v, want the server and no worker", what, selector)
		}
	}
	if selects(workers.Spec.Selector.MatchLabels, server.Spec.Template.Labels) {
		t.Error("the workers' Deployment selects the server")
	}
	if len(policy.Spec.Ingress) != 1 || len(policy.Spec.Ingress[0].From) != 1 || !selects(policy.Spec.Ingress[0].From[0].PodSelector.MatchLabels, workers.Spec.Template.Labels) {
		t.Errorf("ingress is %+v, want from the workers only", policy.Spec.Ingress)
	}
	for _, env := range workers.Spec.Template.Spec.Containers[0].Env {
		if want := fmt.Sprintf("%s.%s.svc:%d", service.Name, service.Namespace, service.Spec.Ports[0].Port); env.Name == "TEMPORAL_ADDRESS" && env.Value != want {
			t.Errorf("the workers ask %s, want %s", env.Value, want)
		}
	}
}

func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return len(selector) > 0
}

// freeAddress returns an address on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// startTemporal starts the temporal command, and returns what kills it.
func startTemporal(t *testing.T, args []string) (stop func()) {
	t.Helper()
	server := exec.CommandContext(t.Context(), filepath.Join("..", "bin", "temporal"), args...)
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		t.Fatalf("the laboratory is not built (make lab): %v", err)
	}
	return func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	}
}

// searchAttributes returns the sorted names of the Keywords of a namespace, as soon as the server answers.
func searchAttributes(t *testing.T, address, namespace string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	connection, err := client.NewLazyClient(client.Options{HostPort: address, Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	for {
		known, err := connection.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
		if err == nil {
			var names []string
			for name, kind := range known.GetCustomAttributes() {
				if kind == enums.INDEXED_VALUE_TYPE_KEYWORD {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			return names
		}
		if ctx.Err() != nil {
			t.Fatalf("Temporal does not answer: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
