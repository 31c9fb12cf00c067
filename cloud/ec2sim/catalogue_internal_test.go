package ec2sim

import (
	"testing"

	"github.com/tenon-sh/tenon/cloud/catalogue"
)

// Every type has a network card for each of its EFA interfaces. The first card also has room for one beside the primary
// interface.
func TestEveryEFAHasItsCard(t *testing.T) {
	t.Parallel()
	c, err := catalogue.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range c.Types() {
		var interfaces []interfaceSpec
		for card := range it.EFAs {
			interfaces = append(interfaces, interfaceSpec{CardIndex: card, DeviceIndex: min(card, 1), Type: "efa"})
		}
		if err := checkInterfaces(interfaces, it); err != nil {
			t.Errorf("%s: %v", it.Name, err)
		}
	}
}
