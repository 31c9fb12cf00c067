package oracle

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// userData reduces user data to a document below a path. Every part of a MIME archive is a document, numbered among the
// parts of its type; a NodeConfig is reduced to values, anything else to its text.
func userData(path, text string) Document {
	document := Document{}
	parts, err := mimeParts(text)
	if err != nil {
		parts = []userDataPart{{"text", text}}
	}
	numbers := map[string]int{}
	for _, part := range parts {
		at := fmt.Sprintf("%s[%s %d]", path, part.kind, numbers[part.kind])
		numbers[part.kind]++
		var content any
		if part.kind != "application/node.eks.aws" || yaml.Unmarshal([]byte(part.body), &content) != nil {
			document[at] = strings.TrimSpace(part.body)
			continue
		}
		values(at, content, document)
	}
	return document
}

type userDataPart struct{ kind, body string }

var errNotMIME = errors.New("not a MIME archive")

func mimeParts(text string) ([]userDataPart, error) {
	message, err := mail.ReadMessage(strings.NewReader(strings.TrimSpace(text)))
	if err != nil {
		return nil, errNotMIME
	}
	kind, arguments, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		return nil, errNotMIME
	}
	var parts []userDataPart
	reader := multipart.NewReader(message.Body, arguments["boundary"])
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the next part: %w", err)
		}
		body, err := io.ReadAll(part)
		if err != nil {
			return nil, fmt.Errorf("read a part: %w", err)
		}
		kind, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err != nil {
			return nil, fmt.Errorf("a part's content type: %w", err)
		}
		parts = append(parts, userDataPart{kind, string(body)})
	}
}

// values lists a YAML value by paths. Lists are sets: nothing in a NodeConfig depends on their order. The labels of the
// kubelet's flag are listed one by one.
func values(path string, value any, into Document) {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			values(path+"."+key, child, into)
		}
	case []any:
		var texts []string
		for _, item := range value {
			text := fmt.Sprint(item) // a map is printed with its keys sorted
			if labels, ok := strings.CutPrefix(text, "--node-labels="); ok {
				for label := range strings.SplitSeq(strings.Trim(labels, `"`), ",") {
					key, is, _ := strings.Cut(label, "=")
					if key == "" {
						continue
					}
					into[path+"[--node-labels]["+key+"]"] = is
				}
				continue
			}
			texts = append(texts, text)
		}
		if len(texts) > 0 {
			slices.Sort(texts)
			into[path] = strings.Join(texts, " ")
		}
	default:
		into[path] = fmt.Sprint(value)
	}
}
