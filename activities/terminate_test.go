package activities

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// inhabited is a mirror of the pods on one node.
type inhabited struct {
	Mirror
	node string
	pods []*cluster.Pod
}

func (i *inhabited) PodsOnNode(name string) []*cluster.Pod {
	if name != i.node {
		return nil
	}
	return i.pods
}

func TestPodsOfAnInstanceThatIsGoneAreDeleted(t *testing.T) {
	t.Parallel()
	mirror := &inhabited{node: "n"}
	for name, change := range map[string]func(*plan.Pod){
		"web": func(*plan.Pod) {}, "protected": func(p *plan.Pod) { p.DoNotDisrupt = true }, "agent": func(p *plan.Pod) { p.Daemon = true },
		"kubelets": func(p *plan.Pod) { p.Static = true }, "done": func(p *plan.Pod) { p.Terminal = true }, "refused": func(*plan.Pod) {},
	} {
		pod := &plan.Pod{Namespace: "team", Name: name, UID: types.UID("uid-" + name)}
		change(pod)
		mirror.pods = append(mirror.pods, &cluster.Pod{Pod: pod})
	}
	var deleted []string
	kube := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			if object.GetName() == "refused" {
				return errors.New("no")
			}
			var asked client.DeleteOptions
			asked.ApplyOptions(opts)
			if *asked.Preconditions.UID != types.UID("uid-"+object.GetName()) || *asked.GracePeriodSeconds != 0 {
				t.Errorf("%s is deleted with %+v", object.GetName(), asked)
			}
			deleted = append(deleted, object.GetName())
			return nil
		}}).Build()
	a := New(Config{Kube: kube, Mirror: mirror, Log: zap.NewNop()})
	a.deleteStranded(t.Context(), workflows.TerminateInput{Node: "n"})
	a.deleteStranded(t.Context(), workflows.TerminateInput{Node: "another"})
	a.deleteStranded(t.Context(), workflows.TerminateInput{})
	slices.Sort(deleted)
	if diff := cmp.Diff([]string{"protected", "web"}, deleted); diff != "" {
		t.Errorf("whoever owns them is to make others (-want +got):\n%s", diff)
	}
}
