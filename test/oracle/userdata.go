package oracle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"sigs.k8s.io/yaml"
)

// UserData reduces user data to a document below a path. Every part of a MIME archive is a document, numbered among the
// parts of its type. A NodeConfig and the settings of Bottlerocket are reduced to values, calls of the bootstrap scripts of
// AL2 and Windows to their arguments, and anything else to its text.
func UserData(path, text string) Document {
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
		switch {
		case part.kind == "application/node.eks.aws" && yaml.Unmarshal([]byte(part.body), &content) == nil:
			values(at, content, document)
		case part.kind == "text" && strings.Contains(part.body, "[settings") && toml.Unmarshal([]byte(part.body), &content) == nil:
			values(at, content, document)
		case strings.Contains(part.body, bootstrapProgram):
			bootstrapCall(at, part.body, document)
		case strings.Contains(part.body, "<powershell>"):
			powershellCall(at, part.body, document)
		default:
			document[at] = strings.TrimSpace(part.body)
		}
	}
	return document
}

// bootstrapProgram is the script on AL2's images that makes an instance a node.
const bootstrapProgram = "/etc/eks/bootstrap.sh"

// bootstrapCall lists the arguments of a script's call of bootstrap.sh, as bash passes them on.
func bootstrapCall(at, script string, into Document) {
	call := strings.Index(script, bootstrapProgram)
	into[at+".before"] = strings.TrimSpace(script[:call])
	words, err := bashWords("function " + bootstrapProgram + " { printf '%s\\0' \"$@\"; }\n" + script[call:])
	if err != nil || len(words) == 0 {
		into[at] = fmt.Sprintf("%v: %s", err, script)
		return
	}
	into[at+".cluster"] = words[0]
	for n := 1; n < len(words); n += 2 {
		value := ""
		if n+1 < len(words) {
			value = words[n+1]
		}
		if words[n] == "--kubelet-extra-args" {
			kubeletFlags(at+"[--kubelet-extra-args]", value, into)
			continue
		}
		into[at+"["+words[n]+"]"] = value
	}
}

// kubeletFlags lists flags of the kubelet. Their lists are sets, and labels are listed one by one.
func kubeletFlags(at, flags string, into Document) {
	words, err := bashWords("printf '%s\\0' " + flags)
	if err != nil {
		into[at] = fmt.Sprintf("%v: %s", err, flags)
		return
	}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		items := strings.Split(value, ",")
		if name != "--node-labels" {
			slices.Sort(items)
			into[at+"["+name+"]"] = strings.Join(items, ",")
			continue
		}
		for _, label := range items {
			key, is, _ := strings.Cut(label, "=")
			into[at+"["+name+"]["+key+"]"] = is
		}
	}
}

// bashWords runs a script that prints words, each with a NUL at its end.
func bashWords(script string) ([]string, error) {
	command := exec.Command("bash", "--norc", "-c", script)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil || errs.Len() > 0 {
		return nil, fmt.Errorf("bash: %w: %s", errors.Join(err, errors.New("it complains")), errs.String())
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\x00"), "\x00"), nil
}

var (
	powershellProgram  = regexp.MustCompile(`(?m)^& \$EKSBootstrapScriptFile (.*)$`)
	powershellArgument = regexp.MustCompile(`^-(\w+) '((?:[^']|'')*)'\s*`)
)

// powershellCall lists the arguments of a call of Windows's bootstrap script, which are all in single quotes.
func powershellCall(at, script string, into Document) {
	call := powershellProgram.FindStringSubmatchIndex(script)
	if call == nil {
		into[at] = strings.TrimSpace(script)
		return
	}
	into[at+".before"], into[at+".after"] = strings.TrimSpace(script[:call[0]]), strings.TrimSpace(script[call[1]:])
	rest := script[call[2]:call[3]]
	for rest != "" {
		argument := powershellArgument.FindStringSubmatch(rest)
		if argument == nil {
			into[at+".unreadable"] = rest
			return
		}
		rest = rest[len(argument[0]):]
		name, value := argument[1], strings.ReplaceAll(argument[2], "''", "'")
		if name == "KubeletExtraArgs" {
			kubeletFlags(at+"[-KubeletExtraArgs]", value, into)
			continue
		}
		into[at+"[-"+name+"]"] = value
	}
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

// values lists a value of YAML or TOML by paths. Lists are sets, except for those of Bottlerocket's commands: nothing else
// depends on their order. The labels of the kubelet's flag are listed one by one.
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
			if !strings.Contains(path, ".bootstrap-commands.") {
				slices.Sort(texts)
			}
			into[path] = strings.Join(texts, " ")
		}
	default:
		into[path] = fmt.Sprint(value)
	}
}
