package nominate

import (
	"fmt"

	apiversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
)

// nominationSince is the first version of Kubernetes where components other than the kube-scheduler may nominate nodes, and
// where the API server clears a nomination when the pod is bound and refuses one for a bound pod
// (https://www.kubernetes.dev/resources/keps/5278/). Earlier versions would show stale nominations for ever.
var nominationSince = apiversion.MajorMinor(1, 35)

// nominationSupported reports whether an API server of this version supports nominations, and if not, why.
func nominationSupported(info *version.Info) (ok bool, why string) {
	server, err := apiversion.ParseGeneric(info.GitVersion)
	switch {
	case err != nil:
		return false, fmt.Sprintf("the API server reports version %q", info.GitVersion)
	case server.LessThan(nominationSince):
		return false, fmt.Sprintf("Kubernetes supports it from %s on, and this is %s", nominationSince, info.GitVersion)
	}
	return true, ""
}
