package nominate

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	apiversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
)

// versionPause is the pause between two questions for the API server's version.
const versionPause = 5 * time.Second

// nominationSince is the first version of Kubernetes where others than the kube-scheduler may nominate nodes, and where
// the API server takes a nomination back when the pod is bound and refuses one for a bound pod
// (https://www.kubernetes.dev/resources/keps/5278/). Earlier ones would show stale nominations for ever.
var nominationSince = apiversion.MajorMinor(1, 35)

// supported asks what the API server is, until it answers.
func (n *Nominator) supported(ctx context.Context) bool {
	for {
		info, err := n.version()
		if err == nil {
			ok, why := nominationSupported(info)
			if !ok {
				n.log.Info("pods are not nominated to the nodes they are planned for: " + why)
			}
			return ok
		}
		n.log.Warn("the API server's version is not known yet", zap.Error(err))
		select {
		case <-ctx.Done():
			return false
		case <-time.After(versionPause):
		}
	}
}

// nominationSupported says whether pods of such an API server may be nominated, and why not.
func nominationSupported(info *version.Info) (ok bool, why string) {
	server, err := apiversion.ParseGeneric(info.GitVersion)
	switch {
	case err != nil:
		return false, fmt.Sprintf("the API server calls its version %q", info.GitVersion)
	case server.LessThan(nominationSince):
		return false, fmt.Sprintf("Kubernetes does that since %s, and this is %s", nominationSince, info.GitVersion)
	}
	return true, ""
}
