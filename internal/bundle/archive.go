package bundle

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// archive writes files into a tar.gz.
type archive struct {
	compressed *gzip.Writer
	files      *tar.Writer
	// dir is the directory that all files are in.
	dir string
	at  time.Time
	// written are the files so far.
	written []File
}

// File is a file of a bundle.
type File struct {
	Path  string `json:"path"`
	Bytes int    `json:"bytes"`
}

func newArchive(to io.Writer, dir string, at time.Time) *archive {
	compressed := gzip.NewWriter(to)
	return &archive{compressed: compressed, files: tar.NewWriter(compressed), dir: dir, at: at}
}

// add writes a file.
func (a *archive) add(path string, content []byte) error {
	header := &tar.Header{Name: a.dir + "/" + path, Mode: 0o600, Size: int64(len(content)), ModTime: a.at, Format: tar.FormatPAX}
	if err := a.files.WriteHeader(header); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if _, err := a.files.Write(content); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	a.written = append(a.written, File{Path: path, Bytes: len(content)})
	return nil
}

// addJSON writes a value as a file of indented JSON.
func (a *archive) addJSON(path string, value any) error {
	encoded, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return a.add(path, append(encoded, '\n'))
}

func (a *archive) close() error {
	if err := a.files.Close(); err != nil {
		return fmt.Errorf("end the archive: %w", err)
	}
	if err := a.compressed.Close(); err != nil {
		return fmt.Errorf("end the archive: %w", err)
	}
	return nil
}
