package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Stdin is the path that means standard input.
const Stdin = "-"

// document is one document of a file as it is written there.
type document struct {
	place place
	// line is the line of the file where the document begins, counted from one.
	line int
	data []byte
	json bool
}

// documents splits files, directories and standard input into documents. It reads directories recursively, and in them only
// files that end in .yaml, .yml or .json.
func documents(paths []string, stdin io.Reader) ([]document, error) {
	var all []document
	read := map[string]bool{}
	for _, path := range paths {
		files, err := filesOf(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if read[file] {
				continue // named twice, or together with its directory
			}
			read[file] = true
			name := file
			var data []byte
			if file == Stdin {
				name = "standard input"
				data, err = io.ReadAll(stdin)
			} else {
				data, err = os.ReadFile(file)
			}
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", name, err)
			}
			cut, err := split(name, data)
			if err != nil {
				return nil, err
			}
			all = append(all, cut...)
		}
	}
	return all, nil
}

func filesOf(path string) ([]string, error) {
	if path == Stdin {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: there is no such file or directory", path)
		}
		return nil, err
	}
	if !info.IsDir() {
		return []string{filepath.Clean(path)}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)) {
			files = append(files, file)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: the directory has no file that ends in .yaml, .yml or .json", path)
	}
	return files, err
}

// split splits a file into its documents: JSON values one after another, or YAML between lines that begin with ---.
func split(file string, data []byte) ([]document, error) {
	if trimmed := bytes.TrimLeft(data, " \t\r\n\ufeff"); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		return splitJSON(file, trimmed)
	}
	var all []document
	start, line, first := 0, 1, 1
	keep := func(end int) {
		if chunk := data[start:end]; !blank(chunk) {
			all = append(all, document{place: place{file: file, document: len(all) + 1}, line: first, data: chunk})
		}
	}
	for at := 0; at < len(data); line++ {
		end := len(data)
		if newline := bytes.IndexByte(data[at:], '\n'); newline >= 0 {
			end = at + newline + 1
		}
		if separates(data[at:end]) {
			keep(at)
			start, first = at+len(separator), line
		}
		at = end
	}
	keep(len(data))
	return all, nil
}

const separator = "---"

// separates reports whether a line ends one YAML document and begins another, which may start on the same line.
func separates(line []byte) bool {
	after, found := bytes.CutPrefix(line, []byte(separator))
	return found && (len(after) == 0 || strings.IndexByte(" \t\r\n", after[0]) >= 0)
}

// blank reports whether a document contains only comments.
func blank(data []byte) bool {
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
		data = rest
	}
	return true
}

func splitJSON(file string, data []byte) ([]document, error) {
	var all []document
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		at := place{file: file, document: len(all) + 1}
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			offset := decoder.InputOffset()
			if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
				offset = syntax.Offset
			}
			line := 1 + bytes.Count(data[:min(int(offset), len(data))], []byte("\n"))
			return nil, &mistake{place: at, problem: fmt.Sprintf("line %d: it is not JSON: %v", line, err)}
		}
		all = append(all, document{place: at, line: 1, data: raw, json: true})
	}
}
