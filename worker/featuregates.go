package worker

import (
	"fmt"
	"strconv"
	"strings"
)

// FeatureGates are features that Karpenter has behind feature gates of the same names, and DynamicResources. It is a flag's value:
// "NodeRepair=true,SpotToSpotConsolidation=true".
type FeatureGates struct {
	// NodeRepair ends nodes that have been unhealthy for longer than the provider tolerates.
	NodeRepair bool
	// SpotToSpotConsolidation lets spot nodes be replaced by cheaper spot nodes.
	SpotToSpotConsolidation bool
	// NodeOverlay lets NodeOverlays change prices and extended resources of instance types.
	NodeOverlay bool
	// DynamicResources plans for pods with ResourceClaims. Karpenter has a setting for this, IGNORE_DRA_REQUESTS, and no gate.
	DynamicResources bool
}

// settled are the gates that cannot be changed here, with their values.
var settled = map[string]bool{
	"ReservedCapacity": true, "StaticCapacity": true, "CapacityBuffer": true,
	"NodeClassCEL": false,
}

// Set implements pflag.Value. A gate that is not named keeps its value. An unknown gate, or a value that cannot be set, is
// an error.
func (g *FeatureGates) Set(text string) error {
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("%q is not of the form Name=true or Name=false", part)
		}
		switch fixed, known := settled[name]; {
		case name == "NodeRepair":
			g.NodeRepair = on
		case name == "SpotToSpotConsolidation":
			g.SpotToSpotConsolidation = on
		case name == "NodeOverlay":
			g.NodeOverlay = on
		case name == "DynamicResources":
			g.DynamicResources = on
		case !known:
			return fmt.Errorf("there is no feature gate %s; there are NodeRepair, SpotToSpotConsolidation, NodeOverlay and DynamicResources", name)
		case fixed && !on:
			return fmt.Errorf("%s cannot be turned off", name)
		case !fixed && on:
			return fmt.Errorf("%s is not supported", name)
		}
	}
	return nil
}

// String implements pflag.Value.
func (g *FeatureGates) String() string {
	return fmt.Sprintf("NodeRepair=%t,SpotToSpotConsolidation=%t,NodeOverlay=%t,DynamicResources=%t",
		g.NodeRepair, g.SpotToSpotConsolidation, g.NodeOverlay, g.DynamicResources)
}

// Type implements pflag.Value.
func (g *FeatureGates) Type() string { return "gates" }
