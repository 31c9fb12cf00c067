package nodegroup

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// kubelet returns the kubelet settings of the class.
func (p *proposal) kubelet() *awsv1.KubeletConfiguration {
	if p.class.Spec.Kubelet == nil {
		p.class.Spec.Kubelet = &awsv1.KubeletConfiguration{}
	}
	return p.class.Spec.Kubelet
}

// kubeletConfig carries over settings that have the names of the kubelet's configuration. All settings of a class have them too.
func (p *proposal) kubeletConfig(field string, config map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(config)) {
		at := field + "." + name
		if name == "registerWithTaints" {
			data, err := json.Marshal(config[name])
			var taints []corev1.Taint
			if err == nil {
				err = json.Unmarshal(data, &taints)
			}
			if err != nil {
				p.lost(at, "it is not a list of taints: %v", err)
				continue
			}
			for _, taint := range taints {
				p.taint(taint)
			}
			p.changed(at, "is now spec.template.spec.taints of the NodePool, and may leave the user data")
			continue
		}
		data, err := json.Marshal(map[string]any{name: config[name]})
		if err != nil {
			p.lost(at, "%v", err)
			continue
		}
		var known awsv1.KubeletConfiguration
		if json.Unmarshal(data, &known) != nil || fmt.Sprint(known) == fmt.Sprint(awsv1.KubeletConfiguration{}) {
			p.changed(at, "stays in spec.userData: an EC2NodeClass has no field for it, and the planner does not know of it")
			continue
		}
		if err := json.Unmarshal(data, p.kubelet()); err == nil {
			p.changed(at, "is now spec.kubelet.%s, which the planner knows of", name)
		}
	}
}

// kubeletFlag matches a flag of the kubelet among the arguments of a program or a script.
var kubeletFlag = regexp.MustCompile(`--([a-z][a-z-]+)[= ]["']?([^\s"'-][^\s"']*)`)

// kubeletFlags carries over what the flags of a kubelet say in arguments such as those of bootstrap.sh or of a NodeConfig.
func (p *proposal) kubeletFlags(field, arguments string) {
	for _, match := range kubeletFlag.FindAllStringSubmatch(arguments, -1) {
		name, value := match[1], match[2]
		at := field + ": --" + name
		switch name {
		case "max-pods":
			if pods, err := strconv.ParseInt(value, 10, 32); err == nil {
				n := int32(pods)
				p.kubelet().MaxPods = &n
				p.changed(at, "is now spec.kubelet.maxPods, which the planner knows of")
			} else {
				p.lost(at, "the planner cannot know the value of %s: set spec.kubelet.maxPods", value)
			}
		case "node-labels":
			for _, pair := range strings.Split(value, ",") {
				if key, label, ok := strings.Cut(pair, "="); ok {
					p.label(at+" "+key, key, label)
				}
			}
		case "register-with-taints":
			for _, text := range strings.Split(value, ",") {
				if taint, ok := parseTaint(text); ok {
					p.taint(taint)
				} else {
					p.lost(at, "%q is not a taint such as key=value:NoSchedule", text)
				}
			}
		case "kube-reserved", "system-reserved":
			reserved := map[string]any{}
			for _, pair := range strings.Split(value, ",") {
				if resource, amount, ok := strings.Cut(pair, "="); ok {
					reserved[resource] = amount
				}
			}
			p.kubeletConfig(field, map[string]any{strings.Replace(name, "-r", "R", 1): reserved})
		}
	}
}

// parseTaint reads key=value:Effect or key:Effect.
func parseTaint(text string) (corev1.Taint, bool) {
	rest, effect, ok := strings.Cut(text, ":")
	key, value, _ := strings.Cut(rest, "=")
	known := slices.Contains([]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, corev1.TaintEffect(effect))
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}, ok && known && key != ""
}
