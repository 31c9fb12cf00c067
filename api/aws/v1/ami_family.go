package v1

import (
	"fmt"
	"strings"
)

// The AMI families.
const (
	AMIFamilyAL2          = "AL2"
	AMIFamilyAL2023       = "AL2023"
	AMIFamilyBottlerocket = "Bottlerocket"
	AMIFamilyWindows2019  = "Windows2019"
	AMIFamilyWindows2022  = "Windows2022"
	AMIFamilyWindows2025  = "Windows2025"
	AMIFamilyCustom       = "Custom"
)

// AliasVersionLatest is the version of an alias that follows the newest image.
const AliasVersionLatest = "latest"

// Alias is a family of images and a version of it.
type Alias struct {
	// Family is one of the AMIFamily constants.
	Family string
	// Version is latest, or the version in the family's own form, such as v20240807.
	Version string
}

// String returns the alias as it is written in a manifest.
func (a Alias) String() string { return strings.ToLower(a.Family) + "@" + a.Version }

// ParseAlias reads an alias such as al2023@latest.
func ParseAlias(text string) (Alias, error) {
	name, version, found := strings.Cut(text, "@")
	if !found || name == "" || version == "" || strings.Contains(version, "@") {
		return Alias{}, fmt.Errorf("alias %q: must have the form family@version, such as al2023@latest", text)
	}
	for _, family := range aliasFamilies() {
		if strings.ToLower(family) == name {
			return Alias{Family: family, Version: version}, nil
		}
	}
	return Alias{}, fmt.Errorf("alias %q: the family must be one of %s", text, strings.ToLower(strings.Join(aliasFamilies(), ", ")))
}

// aliasFamilies returns the families that have aliases.
func aliasFamilies() []string {
	return []string{
		AMIFamilyAL2, AMIFamilyAL2023, AMIFamilyBottlerocket, AMIFamilyWindows2019, AMIFamilyWindows2022,
		AMIFamilyWindows2025,
	}
}

// Alias returns the alias among the class's AMI selector terms, and false if there is none that can be read.
func (in *EC2NodeClass) Alias() (Alias, bool) {
	for _, term := range in.Spec.AMISelectorTerms {
		if term.Alias == "" {
			continue
		}
		alias, err := ParseAlias(term.Alias)
		return alias, err == nil
	}
	return Alias{}, false
}

// AMIFamily returns the family that decides user data and defaults: spec.amiFamily, else that of the alias, else Custom.
func (in *EC2NodeClass) AMIFamily() string {
	if in.Spec.AMIFamily != nil {
		return *in.Spec.AMIFamily
	}
	if alias, ok := in.Alias(); ok {
		return alias.Family
	}
	return AMIFamilyCustom
}
