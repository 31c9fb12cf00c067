package bundle

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// hidden stands for what may be a secret.
const hidden = "[redacted]"

// secretName matches the names of fields, variables and keys whose values are secrets.
const secretName = `(?:secret|token|passw|passphrase|pwd|credential|private[_-]?key|api[_-]?key|access[_-]?key|authorization|cookie|signature)`

var (
	secretKey = regexp.MustCompile(`(?i)` + secretName + `|[_.-]key$`)
	// harmlessKey matches names that only sound so: a Secret's name and a file's path are no secrets, and EC2's httpTokens says
	// whether the metadata service wants tokens.
	harmlessKey = regexp.MustCompile(`(?i)(?:name|path|file|url)$|^(?:httptokens|secretkeyref|nextpagetoken)$`)

	pemBlock = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*(?:PRIVATE KEY|CERTIFICATE)[A-Z0-9 ]*-----.*?-----END [A-Z0-9 ]+-----`)
	userInfo = regexp.MustCompile(`(://)[^/\s"'@]+@`)
	// bearer matches what a request is authorized by; after Basic only what no word of a sentence has.
	bearer = regexp.MustCompile(`\b((?i:bearer)\s)\s*[\w+/=.~-]{6,}|\b((?i:basic)\s)\s*[a-z+/]*[A-Z0-9=][\w+/=]{4,}`)
	// assigned matches a secret's name, a colon or an equals sign or the space after a flag, and a value up to its closing
	// quote or to the next space.
	assigned = regexp.MustCompile(`(?i)([\w.-]*` + secretName + `[\w.-]*[\\"']*\s*[:=]\s*|--[\w-]*` + secretName + `[\w-]*\s+)(\\*"[^"]*"?|'[^']*'?|[^\s"']+)`)
	webToken = regexp.MustCompile(`\beyJ[\w-]{5,}(?:\.[\w-]+)*`)
	awsKey   = regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`)
	// opaque matches words that are long enough for a key. isOpaque looks at them again.
	opaque = regexp.MustCompile(`[A-Za-z0-9+/_]{32,}={0,2}`)
)

// Redactor replaces what may be a secret, and counts what it has replaced.
type Redactor struct{ count int }

// Text returns text without what has the shape of a secret: values behind names such as password or token, keys and
// certificates in PEM, passwords in URLs, web tokens, keys of AWS, and long words of mixed letters and digits or of
// hexadecimal digits. A password that stands alone and looks like a word of a language it cannot know.
func (r *Redactor) Text(text string) string {
	for _, rule := range []struct {
		pattern *regexp.Regexp
		instead string
	}{{pemBlock, hidden}, {userInfo, "${1}" + hidden + "@"}, {bearer, "${1}${2}" + hidden}, {assigned, "${1}" + hidden}, {webToken, hidden}, {awsKey, hidden}} {
		text = rule.pattern.ReplaceAllStringFunc(text, func(found string) string {
			if strings.HasSuffix(found, hidden) {
				return found
			}
			r.count++
			return rule.pattern.ReplaceAllString(found, rule.instead)
		})
	}
	return r.words(text)
}

// words replaces long words that people do not write.
func (r *Redactor) words(text string) string {
	var out strings.Builder
	end := 0
	for _, at := range opaque.FindAllStringIndex(text, -1) {
		word := text[at[0]:at[1]]
		if strings.HasSuffix(text[:at[0]], "sha256:") || !isOpaque(word) {
			continue
		}
		out.WriteString(text[end:at[0]] + hidden)
		end = at[1]
		r.count++
	}
	if end == 0 {
		return text
	}
	out.WriteString(text[end:])
	return out.String()
}

// isOpaque reports whether a long word may be a key: hexadecimal digits only, or capitals, small letters and digits mixed.
func isOpaque(word string) bool {
	word = strings.TrimRight(word, "=")
	upper, lower := strings.ContainsAny(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"), strings.ContainsAny(word, "abcdefghijklmnopqrstuvwxyz")
	digit := strings.ContainsAny(word, "0123456789")
	hexadecimal := strings.Trim(strings.ToLower(word), "0123456789abcdef") == ""
	return digit && (upper && lower || hexadecimal)
}

// Line returns a line of a log without secrets. Lines of JSON are read as such.
func (r *Redactor) Line(line string) string {
	var fields map[string]any
	if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &fields) == nil {
		if encoded, err := json.Marshal(r.Value(fields)); err == nil {
			return string(encoded)
		}
	}
	return r.Text(line)
}

// Value returns what JSON was decoded to without secrets: every text goes through Text, and of keys that name a secret the
// value is replaced whole.
func (r *Redactor) Value(value any) any {
	switch value := value.(type) {
	case string:
		return r.Text(value)
	case []any:
		for i := range value {
			value[i] = r.Value(value[i])
		}
		return value
	case map[string]any:
		for key, inner := range value {
			switch inner.(type) {
			case string, []any:
				if isSecret(key) {
					value[key] = r.hide()
					continue
				}
			}
			value[key] = r.Value(inner)
		}
		return value
	}
	return value
}

// isSecret reports whether the value behind a name is a secret.
func isSecret(name string) bool {
	return secretKey.MatchString(name) && !harmlessKey.MatchString(name)
}

func (r *Redactor) hide() string {
	r.count++
	return hidden
}

// sized replaces a text and says how long it was.
func (r *Redactor) sized(text string) string {
	r.count++
	return fmt.Sprintf("[redacted: %d bytes]", len(text))
}
