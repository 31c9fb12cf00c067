package cluster

import "slices"

// PodsOwnedBy returns the pods of a controller that have not ended, ordered by UID. It looks at every pod there is, so it
// is for questions that are asked now and then.
func (m *Mirror) PodsOwnedBy(namespace, kind, name string) []*Pod {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var pods []*Pod
	for _, pod := range m.pods.items {
		if pod.OwnerName == name && pod.OwnerKind == kind && pod.Namespace == namespace && !pod.Terminal && !pod.Terminating() {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *Pod) int { return byUID(a.Pod, b.Pod) })
	return pods
}
