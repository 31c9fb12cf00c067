package plan

import (
	"cmp"
	"slices"
	"strings"
)

// A volume that is there already is there once: two claims cannot have it. The claims of waiting pods are given free
// volumes in the order of the kube-scheduler's queue; a claim goes without only if no other distribution serves it without
// leaving an earlier one with none.

// seeker is a claim that looks for a volume made by hand.
type seeker struct {
	claim *VolumeClaim
	// pod is the first that waits for it.
	pod *Pod
	// free are the volumes it matches, the smallest first, as the kube-scheduler takes them.
	free []*Volume
}

// given is what became of a seeker.
type given struct {
	// volume is the one it gets; nil if there is none left.
	volume *Volume
	// rivals says that others look for the volumes it matches.
	rivals bool
}

// distributed gives the free volumes of a class to the claims of the pods that wait.
func (b *volumeBook) distributed(class *StorageClass) map[string]given {
	if known, ok := b.given[class]; ok {
		return known
	}
	seekers := b.seekers(class)
	wanted, taken := map[*Volume]int{}, map[*Volume]int{}
	for _, s := range seekers {
		for _, volume := range s.free {
			wanted[volume]++
		}
	}
	for i := range seekers {
		seat(seekers, i, taken, map[*Volume]bool{})
	}
	result := map[string]given{}
	for _, s := range seekers {
		result[s.claim.Key()] = given{rivals: slices.ContainsFunc(s.free, func(v *Volume) bool { return wanted[v] > 1 })}
	}
	for volume, i := range taken {
		key := seekers[i].claim.Key()
		result[key] = given{volume: volume, rivals: result[key].rivals}
	}
	b.given[class] = result
	return result
}

// seat finds a volume for a seeker, moving those before it to others they match where that helps (an augmenting path).
func seat(seekers []seeker, i int, taken map[*Volume]int, tried map[*Volume]bool) bool {
	for _, volume := range seekers[i].free {
		if _, held := taken[volume]; !held {
			taken[volume] = i
			return true
		}
	}
	for _, volume := range seekers[i].free {
		if tried[volume] {
			continue
		}
		tried[volume] = true
		if seat(seekers, taken[volume], taken, tried) {
			taken[volume] = i
			return true
		}
	}
	return false
}

// seekers are the claims of a class without volume that waiting pods mount, in the order of the kube-scheduler's queue.
func (b *volumeBook) seekers(class *StorageClass) []seeker {
	found := map[string]*Pod{}
	mounted := map[string]*VolumeClaim{}
	for key, users := range b.users {
		for _, pod := range users {
			if pod.Node != "" || pod.Virtual || !pod.Provisionable() {
				continue
			}
			if first := found[key]; first == nil || sooner(pod, first) {
				found[key] = pod
			}
		}
		if pod := found[key]; pod != nil {
			mounted[key] = b.claimOf(pod, key)
		}
	}
	var seekers []seeker
	for key, claim := range mounted {
		if claim == nil || claim.Volume != "" || claim.SelectedNode != "" || claim.Deleting || claim.Lost {
			continue
		}
		if wanted, refusal := b.classOf(claim); refusal != "" || wanted != class {
			continue
		}
		free := slices.Clone(b.matching(key, claim, class))
		slices.SortFunc(free, func(x, y *Volume) int { return cmp.Or(cmp.Compare(x.Bytes, y.Bytes), cmp.Compare(x.Name, y.Name)) })
		seekers = append(seekers, seeker{claim: claim, pod: found[key], free: free})
	}
	slices.SortFunc(seekers, func(x, y seeker) int {
		if x.pod != y.pod {
			if sooner(x.pod, y.pod) {
				return -1
			}
			return 1
		}
		return strings.Compare(x.claim.Key(), y.claim.Key())
	})
	return seekers
}

// claimOf is a claim that a pod mounts: as it is, or as its template says it will be.
func (b *volumeBook) claimOf(pod *Pod, key string) *VolumeClaim {
	if claim := b.storage.Claims[key]; claim != nil {
		return claim
	}
	name := strings.TrimPrefix(key, pod.Namespace+"/")
	for i := range pod.Mounts.Claims {
		if mount := &pod.Mounts.Claims[i]; mount.Name == name && mount.Ephemeral != nil {
			return &VolumeClaim{ClaimSpec: *mount.Ephemeral, Namespace: pod.Namespace, Name: name}
		}
	}
	return nil
}
