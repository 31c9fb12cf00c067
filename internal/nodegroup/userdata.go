package nodegroup

import (
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// nodeConfig is what is read of a NodeConfig, the user data of Amazon Linux 2023
// (https://awslabs.github.io/amazon-eks-ami/nodeadm/).
type nodeConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Kubelet struct {
			Config map[string]any `json:"config"`
			Flags  []string       `json:"flags"`
		} `json:"kubelet"`
	} `json:"spec"`
}

// userDataParts returns the parts of user data that may be a MIME archive.
func userDataParts(text string) []string {
	message, err := mail.ReadMessage(strings.NewReader(strings.TrimSpace(text)))
	if err != nil {
		return []string{text}
	}
	media, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(media, "multipart/") {
		return []string{text}
	}
	var parts []string
	for reader := multipart.NewReader(message.Body, params["boundary"]); ; {
		part, err := reader.NextPart()
		if err != nil { // the end, or what nobody can read any further
			return parts
		}
		body, err := io.ReadAll(part)
		if err != nil {
			return parts
		}
		parts = append(parts, string(body))
	}
}

// asNodeConfig returns the NodeConfig that a part of user data is, or nil.
func asNodeConfig(part string) *nodeConfig {
	var config nodeConfig
	if yaml.Unmarshal([]byte(part), &config) != nil || config.Kind != "NodeConfig" || !strings.HasPrefix(config.APIVersion, "node.eks.aws/") {
		return nil
	}
	return &config
}

// bottlerocketSettings returns settings.kubernetes of Bottlerocket's user data, or nil.
func bottlerocketSettings(text string) map[string]any {
	var document struct {
		Settings struct {
			Kubernetes map[string]any `toml:"kubernetes"`
		} `toml:"settings"`
	}
	if toml.Unmarshal([]byte(text), &document) != nil {
		return nil
	}
	return document.Settings.Kubernetes
}

// familyOf returns the AMI family of an image of which only the user data are known.
func familyOf(userData string) string {
	if len(bottlerocketSettings(userData)) > 0 {
		return awsv1.AMIFamilyBottlerocket
	}
	for _, part := range userDataParts(userData) {
		if asNodeConfig(part) != nil {
			return awsv1.AMIFamilyAL2023
		}
	}
	return awsv1.AMIFamilyCustom
}

// decodeUserData returns the text of a launch template's user data.
func (p *proposal) decodeUserData(field string, encoded *string) string {
	if encoded == nil || *encoded == "" {
		return ""
	}
	text, err := base64.StdEncoding.DecodeString(*encoded)
	if err != nil {
		p.lost(field, "it is not base64: %v", err)
	}
	return string(text)
}

// userData carries user data over, and what they tell the kubelet: the planner has to know it, and Tenon's own part of the
// user data would override it.
func (p *proposal) userData(field, text string) {
	if text == "" {
		return
	}
	p.class.Spec.UserData = &text
	settings := bottlerocketSettings(text)
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		switch value := settings[key]; key {
		case "max-pods":
			p.kubeletConfig(field, map[string]any{"maxPods": value})
		case "kube-reserved":
			p.kubeletConfig(field, map[string]any{"kubeReserved": value})
		case "system-reserved":
			p.kubeletConfig(field, map[string]any{"systemReserved": value})
		case "node-labels":
			labels, _ := value.(map[string]any)
			for _, label := range slices.Sorted(maps.Keys(labels)) {
				p.label(field+" "+label, label, fmt.Sprint(labels[label]))
			}
		case "node-taints":
			p.bottlerocketTaints(field, value)
		}
	}
	for _, part := range userDataParts(text) {
		if config := asNodeConfig(part); config != nil {
			p.kubeletConfig(field+" NodeConfig", config.Spec.Kubelet.Config)
			p.kubeletFlags(field+" NodeConfig", strings.Join(config.Spec.Kubelet.Flags, " "))
		} else if strings.Contains(part, "bootstrap.sh") {
			p.kubeletFlags(field+" bootstrap.sh", strings.NewReplacer("\\\n", " ").Replace(part))
		}
	}
}

// bottlerocketTaints reads settings.kubernetes.node-taints: for each key a text, or a list of texts, value:Effect.
func (p *proposal) bottlerocketTaints(field string, value any) {
	taints, _ := value.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(taints)) {
		list, isList := taints[key].([]any)
		if !isList {
			list = []any{taints[key]}
		}
		for _, item := range list {
			text, _ := item.(string)
			taint, ok := parseTaint(key + "=" + text)
			if !ok {
				p.lost(field+".node-taints."+key, "%q is not a value and an effect such as value:NoSchedule", text)
				continue
			}
			p.taint(taint)
		}
	}
}
