package migrate

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"k8s.io/apimachinery/pkg/util/version"
)

// followed is the minor version of Karpenter 1 whose behaviour Tenon follows.
const followed = 14

// installation is a Deployment that runs Karpenter.
type installation struct {
	name, namespace string
	replicas        int32
	// version is the tag of the image, or what the chart's label says.
	version string
	// env are the environment variables of the container with a value of their own.
	env map[string]string
}

// installationOf returns Karpenter's installation; nil if the Deployment does not run Karpenter.
func installationOf(d *appsv1.Deployment) *installation {
	for _, container := range d.Spec.Template.Spec.Containers {
		repository, tag := image(container.Image)
		if !strings.HasSuffix(repository, "/karpenter/controller") && !(container.Name == "controller" && d.Labels["app.kubernetes.io/name"] == "karpenter") {
			continue
		}
		found := &installation{name: d.Name, namespace: d.Namespace, replicas: 1, version: tag, env: map[string]string{}}
		if d.Spec.Replicas != nil {
			found.replicas = *d.Spec.Replicas
		}
		if found.version == "" {
			found.version = d.Labels["app.kubernetes.io/version"]
		}
		for _, variable := range container.Env {
			if variable.ValueFrom == nil {
				found.env[variable.Name] = variable.Value
			}
		}
		return found
	}
	return nil
}

// image splits a reference to an image into repository and tag, without its digest.
func image(reference string) (repository, tag string) {
	reference, _, _ = strings.Cut(reference, "@")
	slash := strings.LastIndexByte(reference, '/')
	if colon := strings.LastIndexByte(reference, ':'); colon > slash {
		return reference[:colon], reference[colon+1:]
	}
	return reference, ""
}

func (i *installation) object() string { return fmt.Sprintf("Deployment %s/%s", i.namespace, i.name) }

// gate says whether a feature gate is on, which has a default.
func (i *installation) gate(name string, byDefault bool) bool {
	for pair := range strings.SplitSeq(i.env["FEATURE_GATES"], ",") {
		if key, value, _ := strings.Cut(strings.TrimSpace(pair), "="); key == name {
			return strings.EqualFold(value, "true")
		}
	}
	return byDefault
}

// without are the variables of Karpenter 1.14 that Tenon has no counterpart for, with their defaults and what is different.
var without = []struct{ name, byDefault, message string }{
	{"EKS_CONTROL_PLANE", "false", "Tenon asks EKS for what it is not told in settings.cluster..., whatever runs the control plane"},
	{"LOG_OUTPUT_PATHS", "stdout", "a Tenon worker logs to standard error"},
	{"LOG_ERROR_OUTPUT_PATHS", "stderr", "a Tenon worker logs to standard error"},
	{"DISABLE_CONTROLLER_WARMUP", "true", "Tenon's standby workers always watch the cluster"},
	{"DISABLE_CLUSTER_STATE_OBSERVABILITY", "false", "Tenon's metrics of the cluster are always there"},
	{"AMI_REFRESH_INTERVAL", "1m", "Tenon has no setting for how often it reads images"},
	{"SUBNET_REFRESH_INTERVAL", "1m", "Tenon has no setting for how often it reads subnets"},
}

// judge records what differs from an installation of Tenon that uses the same values.
func (i *installation) judge(r *Report) {
	r.Karpenter = i.version
	if v, err := version.ParseGeneric(i.version); err != nil {
		r.add(Differs, i.object(), "", fmt.Sprintf("its version %q is not known: Tenon follows Karpenter 1.%d", i.version, followed), "")
	} else if v.Major() < 1 {
		r.add(Refused, i.object(), "", fmt.Sprintf("it runs Karpenter %s, whose objects are older than v1", i.version), "move to Karpenter 1 first, which takes its nodes along")
	} else if v.Major() > 1 || v.Minor() > followed {
		r.add(Differs, i.object(), "", fmt.Sprintf("it runs Karpenter %s, and Tenon follows 1.%d: what is newer is listed below where it is used", i.version, followed), "")
	}
	if strings.EqualFold(i.env["DISABLE_LEADER_ELECTION"], "true") && i.replicas > 0 {
		r.add(Refused, i.object(), "DISABLE_LEADER_ELECTION", "Karpenter works without the Lease, so nothing keeps both from acting at once", "scale it to zero before a Tenon worker starts")
	}
	for _, setting := range without {
		if value, set := i.env[setting.name]; set && value != "" && value != setting.byDefault && value != setting.byDefault+"0s" {
			r.add(Differs, i.object(), setting.name, fmt.Sprintf("%s has no effect: %s", value, setting.message), "")
		}
	}
	if strings.EqualFold(i.env["IGNORE_DRA_REQUESTS"], "false") {
		r.add(Differs, i.object(), "IGNORE_DRA_REQUESTS", "Karpenter looks at resource claims; in Tenon that is the feature gate DynamicResources, which is off", "install with settings.featureGates.dynamicResources=true")
	}
	lease := i.env["LEADER_ELECTION_NAMESPACE"]
	if lease == "" {
		lease = i.namespace
	}
	if lease != "kube-system" {
		r.add(Differs, i.object(), "LEADER_ELECTION_NAMESPACE", "its Lease is in the namespace "+lease+", and Tenon's is in kube-system by default: two Leases keep nobody apart",
			"install with leaderElection.namespace="+lease)
	}
	if name := i.env["LEADER_ELECTION_NAME"]; name != "" && name != LeaseName {
		r.add(Differs, i.object(), "LEADER_ELECTION_NAME", "its Lease is "+name+", and Tenon's is "+LeaseName+" by default: two Leases keep nobody apart", "install with leaderElection.name="+name)
	}
}

// LeaseName is the name of the Lease that both controllers hold when they act.
const LeaseName = "karpenter-leader-election"
