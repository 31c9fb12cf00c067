package convert

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// settingsName is the name of the ConfigMap that had Karpenter's settings up to v0.32.
const settingsName = "karpenter-global-settings"

// settings are those that AWSNodeTemplates depend on.
type settings struct {
	instanceProfile string
	tags            map[string]string
}

// readSettings looks for the settings among the documents. They are no longer used, so the ConfigMap is left out.
func (c *conversion) readSettings() {
	for _, o := range c.objects {
		if o.gvk.Kind != "ConfigMap" || o.gvk.Group != "" || !strings.HasSuffix("/"+o.name, "/"+settingsName) {
			continue
		}
		var old struct {
			Data map[string]string `json:"data"`
		}
		if err := json.Unmarshal(o.document.JSON, &old); err != nil {
			o.fail("data", "%v", err)
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(old.Data)) {
			switch value := old.Data[key]; key {
			case "aws.defaultInstanceProfile":
				c.settings.instanceProfile = value
			case "aws.tags":
				if err := json.Unmarshal([]byte(value), &c.settings.tags); value != "" && err != nil {
					o.fail("data[aws.tags]", "is not a map in JSON: %v", err)
				}
			default:
				o.changed("data["+key+"]", "is a flag or an environment variable of the worker now, if it still exists: see tenon worker --help")
			}
		}
		o.superfluous = true
	}
}

// tag adds the tags that every instance got. Those of the template win.
func (s *settings) tag(o *object, beta *betaNodeClassSpec) {
	if len(s.tags) == 0 {
		return
	}
	o.changed("", "its spec.tags now have the aws.tags of ConfigMap %s", settingsName)
	tags := maps.Clone(s.tags)
	maps.Copy(tags, beta.Tags)
	beta.Tags = tags
}
