package bundle

import (
	"context"

	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/workflows"
)

// Options say what is collected, and from where.
type Options struct {
	Cluster workflows.Cluster
	// Namespace is where the worker's Deployment is.
	Namespace string
	// Versions are those of the programs that are involved.
	Versions []Version
	// Variables are the environment variables of the worker's flags, whose values are kept.
	Variables []string
	// NodeClasses is an empty list of the provider's node classes; nil if it has none.
	NodeClasses kube.ObjectList

	Kube     kube.Reader
	Temporal Workflows
	Pods     Pods

	// Payloads, UserData and Tags keep what is left out otherwise. Even then it goes through the redactor.
	Payloads, UserData, Tags bool
	// LogBytes is how much of each container's log is kept, counted from its end, and MostWorkflows how many workflows that
	// are under way, and as many that failed.
	LogBytes, MostWorkflows int
	// Progress is told what is collected next; nil if nobody wants to know.
	Progress func(what string)
}

// Version is the version of a program, or why it is not known.
type Version struct {
	Program string `json:"program"`
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Part is a part of a bundle.
type Part struct {
	// Path is the file, or the directory of the files.
	Path string `json:"path"`
	// Has says what is in it, and Without what is left out of it.
	Has     string `json:"has"`
	Without string `json:"without,omitempty"`
	// Rights are what the person who collects it needs.
	Rights string `json:"rights,omitempty"`
	// Error is why it, or some of it, could not be read.
	Error string `json:"error,omitempty"`

	collect func(context.Context, *collector) error
}

// collector collects one bundle.
type collector struct {
	Options
	reducer
	*archive
}
