package ec2sim

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	// powershellTags are the tags between which EC2Launch finds the commands to run at the first boot.
	powershellTags = regexp.MustCompile(`(?s)^<powershell>\n(.*)\n</powershell>\s*$`)
	// bootstrapVariable is a variable with the path of the bootstrap script, and bootstrapParameter an argument of its call.
	bootstrapVariable  = regexp.MustCompile(`(?m)^\[string\]\$(\w+) = "\$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap\.ps1"$`)
	bootstrapParameter = regexp.MustCompile(`^-(\w+) '((?:[^']|'')*)'(?: |$)`)
)

// bootstrapParameters are the parameters of the bootstrap script of Windows (EKS User Guide, "Bootstrap script configuration
// parameters").
var bootstrapParameters = []string{
	"EKSClusterName", "KubeletExtraArgs", "KubeProxyExtraArgs", "APIServerEndpoint", "Base64ClusterCA", "DNSClusterIP", "ContainerRuntime", "ServiceCIDR",
	"ExcludedSnatCIDRs",
}

// applyPowerShell applies the call of the bootstrap script in a Windows machine's user data. Its arguments are in single
// quotes; the simulator reads no other PowerShell.
func (k *kubeletSetup) applyPowerShell(text string) error {
	k.program = "Start-EKSBootstrap.ps1"
	inner := powershellTags.FindStringSubmatch(text)
	if inner == nil || strings.Contains(inner[1], "powershell>") {
		return errors.New("EC2Launch: the user data are not one script within <powershell> and </powershell>")
	}
	variable := bootstrapVariable.FindStringSubmatch(inner[1])
	if variable == nil {
		return errors.New("EC2Launch: the script does not name Start-EKSBootstrap.ps1")
	}
	_, call, found := strings.Cut(inner[1], "\n& $"+variable[1]+" ")
	if !found {
		return errors.New("EC2Launch: the script does not call Start-EKSBootstrap.ps1")
	}
	call, _, _ = strings.Cut(call, "\n")
	for call != "" {
		argument := bootstrapParameter.FindStringSubmatch(call)
		if argument == nil {
			return fmt.Errorf("%s: unreadable argument at %q", k.program, call)
		}
		if !slices.Contains(bootstrapParameters, argument[1]) {
			return fmt.Errorf("%s: a parameter cannot be found that matches parameter name '%s'", k.program, argument[1])
		}
		call = call[len(argument[0]):]
		value := strings.ReplaceAll(argument[2], "''", "'")
		switch argument[1] {
		case "EKSClusterName":
			k.clusterName = value
		case "APIServerEndpoint":
			k.endpoint = value
		case "Base64ClusterCA":
			k.caGiven = value != ""
		case "KubeletExtraArgs":
			for _, flag := range shellWords(value) {
				if err := k.applyFlag(flag); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
