package v1

import corev1 "k8s.io/api/core/v1"

// Keys of the taints on Nodes of NodePools.
const (
	// DisruptedTaintKey keeps new pods off a node that is being drained or replaced.
	DisruptedTaintKey = Group + "/disrupted"
	// UnregisteredTaintKey keeps every pod off a node until its claim's labels and taints are on it. Nodes boot with
	// it.
	UnregisteredTaintKey = Group + "/unregistered"
	// ExpectingTaintKey keeps pods off a registered node until it is Ready and the kube-scheduler has been told which
	// pods it was launched for.
	ExpectingTaintKey = "tenon.sh/expecting-pods"
)

// DisruptedNoScheduleTaint returns the taint on a node that is about to go away.
func DisruptedNoScheduleTaint() corev1.Taint {
	return corev1.Taint{Key: DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}
}

// UnregisteredNoExecuteTaint returns the taint nodes boot with.
func UnregisteredNoExecuteTaint() corev1.Taint {
	return corev1.Taint{Key: UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute}
}

// ExpectingNoScheduleTaint returns the taint of a node whose pods have not been nominated to it yet.
func ExpectingNoScheduleTaint() corev1.Taint {
	return corev1.Taint{Key: ExpectingTaintKey, Effect: corev1.TaintEffectNoSchedule}
}
