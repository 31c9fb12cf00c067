// Package bundle collects what somebody who helps with a cluster has to see, into one archive, and leaves out what may be a
// secret.
//
// What is known to hold secrets is not read or not kept: Secrets, user data, values of tags, annotations and environment
// variables, payloads of workflows. Everything else goes through a redactor, which knows the shapes of secrets
// (Redactor.Text). A part that cannot be read does not stop the others: the manifest says why it is missing.
//
// Reading order: redact, reduce, archive, part, objects, workflows, pods, bundle.
package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Manifest says what is in a bundle, and what is not.
type Manifest struct {
	Cluster  string    `json:"cluster"`
	At       time.Time `json:"at"`
	Versions []Version `json:"versions"`
	Parts    []Part    `json:"parts"`
	Files    []File    `json:"files"`
	// Redacted counts the values that were replaced.
	Redacted int `json:"redacted"`
	// Limits say what the redactor cannot do.
	Limits string `json:"limits"`
}

const limits = "A secret that stands alone in a message of a program, without a name before it and in the shape of an ordinary word, is not recognized. Look through the files before you give them away."

// partWithin is how long one part may take. Where workflows are many, their histories take longest.
const partWithin = 5 * time.Minute

// Parts returns the parts of a bundle, which is what a dry run shows.
func Parts(o Options) []Part {
	parts := append(objectParts(o), workflowParts(o)...)
	return append(parts, podParts(o)...)
}

// Write collects a bundle at a time into an archive. The manifest is written last, as manifest.json. It is an error if no
// part could be read at all.
func Write(ctx context.Context, to io.Writer, o Options, at time.Time) (Manifest, error) {
	redactor := &Redactor{}
	dir := fmt.Sprintf("tenon-support-%s-%s", o.Cluster, at.UTC().Format("20060102-150405"))
	c := &collector{Options: o, reducer: reducer{Redactor: redactor, userData: o.UserData, tags: o.Tags, variables: o.Variables}, archive: newArchive(to, dir, at)}
	for i := range c.Versions {
		c.Versions[i].Error = redactor.Text(c.Versions[i].Error)
	}
	manifest := Manifest{Cluster: string(o.Cluster), At: at.UTC(), Versions: o.Versions, Limits: limits}
	var failed []error
	for _, part := range Parts(o) {
		if o.Progress != nil {
			o.Progress(part.Has)
		}
		within, stop := context.WithTimeout(ctx, partWithin)
		err := part.collect(within, c)
		stop()
		if err != nil {
			part.Error = redactor.Text(err.Error())
			failed = append(failed, err)
		}
		if err := ctx.Err(); err != nil {
			return manifest, fmt.Errorf("collect: %w", err)
		}
		manifest.Parts = append(manifest.Parts, part)
	}
	if len(c.written) == 0 {
		return manifest, fmt.Errorf("nothing could be read: %w", errors.Join(failed...))
	}
	manifest.Files, manifest.Redacted = c.written, redactor.count
	if err := c.addJSON("manifest.json", manifest); err != nil {
		return manifest, err
	}
	return manifest, c.close()
}
