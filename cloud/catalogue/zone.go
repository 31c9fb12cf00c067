package catalogue

import (
	"fmt"
	"slices"
	"strings"
)

// A Zone is an Availability Zone or a Local Zone.
type Zone struct {
	Name, ID string
	// Local is the group of a Local Zone, such as us-east-1-bos-1; empty for an Availability Zone.
	Local string
}

// ParseZone returns the zone of a region with that name. In an account, a zone's id has the letter of its name.
func ParseZone(region, name string) (Zone, error) {
	if z, local := localZone(region, name); local {
		return z, nil
	}
	letter, ok := strings.CutPrefix(name, region)
	if !ok || len(letter) != 1 || letter[0] < 'a' || letter[0] > 'z' {
		return Zone{}, fmt.Errorf("zone %q is not a zone of %s", name, region)
	}
	return Zone{Name: name, ID: fmt.Sprintf("%s-az%d", shortRegion(region), letter[0]-'a'+1)}, nil
}

// localZone parses the name of a Local Zone (AWS Local Zones User Guide, "Available Local Zones"): us-east-1-bos-1a is in
// the group us-east-1-bos-1, and has the id use1-bos1-az1.
func localZone(region, name string) (Zone, bool) {
	rest, ok := strings.CutPrefix(name, region+"-")
	city, number, dashed := strings.Cut(rest, "-")
	if !ok || !dashed || len(city) != 3 || len(number) != 2 || number[1] < 'a' || number[1] > 'z' {
		return Zone{}, false
	}
	id := fmt.Sprintf("%s-%s%c-az%d", shortRegion(region), city, number[0], number[1]-'a'+1)
	return Zone{Name: name, ID: id, Local: name[:len(name)-1]}, true
}

// shortRegion abbreviates a region as in zone ids: us-east-1 becomes use1.
func shortRegion(region string) string {
	parts := strings.Split(region, "-")
	if len(parts) < 3 {
		return region
	}
	short := parts[0]
	for _, word := range parts[1 : len(parts)-1] {
		for _, direction := range []string{"north", "south", "central", "east", "west"} {
			if rest, ok := strings.CutPrefix(word, direction); ok {
				short += direction[:1]
				word = rest
			}
		}
		short += word[:min(1, len(word))]
	}
	return short + parts[len(parts)-1]
}

// localFamilies are the few instance families of Local Zones ("AWS Local Zones features" lists them for each zone).
var localFamilies = []string{"t3", "c5d", "r5d", "g4dn"}

// Offered reports whether a zone of an account with these zones has the type at all. General, compute and memory families are in
// every zone; half of the others are missing in one zone, as accelerated and storage families are in reality.
func (t *InstanceType) Offered(zoneName string, zones []Zone) bool {
	family := t.Family()
	regular := make([]Zone, 0, len(zones))
	for _, z := range zones {
		if z.Name == zoneName && z.Local != "" {
			return slices.Contains(localFamilies, family)
		}
		if z.Local == "" {
			regular = append(regular, z)
		}
	}
	switch family[0] {
	case 'm', 'c', 'r', 't':
		if !strings.HasPrefix(family, "trn") {
			return true
		}
	}
	missing := int(Unit("missing", family) * 2 * float64(len(regular)))
	return len(regular) < 2 || missing >= len(regular) || regular[missing].Name != zoneName
}
