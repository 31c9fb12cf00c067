package cluster

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/fields"

	bufferv1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
)

// feeds are the mirrored resources.
type feeds struct {
	pods       *feed[*Pod]
	nodes      *feed[*machine]
	claims     *feed[*promised]
	pools      *feed[*karpv1.NodePool]
	classes    *feed[*awsv1.EC2NodeClass]
	daemonSets *feed[*daemonSet]
	// limitRanges say what containers get that name nothing themselves.
	limitRanges *feed[*corev1.LimitRange]
	budgets     *feed[*podBudget]
	namespaces  *feed[*namespace]

	attachments    *feed[*attachment]
	volumeClaims   *feed[*volumeClaim]
	volumes        *feed[*volume]
	storageClasses *feed[*storageClass]
	csiNodes       *feed[*csiNode]
	// capacityBuffers are watched where the cluster serves them, origins where buffers refer to one of the kind.
	capacityBuffers *feed[*bufferv1.CapacityBuffer]
	origins         map[string]origins
	// overlays are watched where the cluster serves them; nil where they are not to be.
	overlays *feed[*karpv1alpha1.NodeOverlay]
}

// podSelector leaves pods that have ended with the API server: they hold nothing of a node any more.
var podSelector = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
)

// openFeeds prepares the watches of all resources.
func (m *Mirror) openFeeds(w *watches, options Options) error {
	core, apps, policy := corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion, policyv1.SchemeGroupVersion

	m.pods = open(w, core, "pods", &corev1.Pod{}, podSelector, reducePod, (*Pod).Key, m.podChanged)
	m.nodes = open(w, core, "nodes", &corev1.Node{}, nil, reduceNode, (*machine).key, m.nodeChanged)
	m.claims = open(w, karpv1.SchemeGroupVersion, "nodeclaims", &karpv1.NodeClaim{}, nil, reduceClaim, (*promised).key, m.claimChanged)
	m.pools = open(w, karpv1.SchemeGroupVersion, "nodepools", &karpv1.NodePool{}, nil, whole[*karpv1.NodePool], nameOf[*karpv1.NodePool], m.poolChanged)
	m.classes = open(w, awsv1.SchemeGroupVersion, "ec2nodeclasses", &awsv1.EC2NodeClass{}, nil, whole[*awsv1.EC2NodeClass], nameOf[*awsv1.EC2NodeClass], m.classChanged)
	m.daemonSets = open(w, apps, "daemonsets", &appsv1.DaemonSet{}, nil, reduceDaemonSet, (*daemonSet).key, m.daemonSetChanged)
	m.limitRanges = open(w, core, "limitranges", &corev1.LimitRange{}, nil, whole[*corev1.LimitRange], nameOf[*corev1.LimitRange], m.limitRangeChanged)
	m.budgets = open(w, policy, "poddisruptionbudgets", &policyv1.PodDisruptionBudget{}, nil, reduceBudget, (*podBudget).key, m.budgetChanged)
	m.openNamespaces(w)
	m.openVolumes(w)
	m.openBuffers(w)
	if options.NodeOverlays {
		m.openOverlays(w)
	}
	if w.err != nil {
		return w.err
	}
	m.claims.pulse.advanced = m.claimsAdvanced
	return nil
}
