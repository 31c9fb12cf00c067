package amifamily

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"strings"
)

// boundary separates the parts of the user data. It is fixed, so that equal user data are equal bytes.
const boundary = "//"

// Content types of user data parts.
const (
	nodeConfigPart  = "application/node.eks.aws"
	shellScriptPart = `text/x-shellscript; charset="us-ascii"`
)

// part is one part of multipart user data.
type part struct {
	header textproto.MIMEHeader
	body   string
}

func newPart(contentType, body string) part {
	return part{textproto.MIMEHeader{"Content-Type": {contentType}}, body}
}

// splitUserData splits the user's user data into parts: those of a MIME archive, or a single one of the type that kind
// returns for it.
func splitUserData(custom string, kind func(text string) string) ([]part, error) {
	trimmed := strings.TrimSpace(custom)
	switch {
	case trimmed == "":
		return nil, nil
	case strings.HasPrefix(trimmed, "MIME-Version:"), strings.HasPrefix(trimmed, "Content-Type:"):
		return splitMIME(trimmed)
	default:
		return []part{newPart(kind(trimmed), custom)}, nil
	}
}

// alwaysScript is the type of user data that can only be a shell script.
func alwaysScript(string) string { return shellScriptPart }

func splitMIME(text string) ([]part, error) {
	message, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("user data is not a MIME archive: %w", err)
	}
	media, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("user data's content type: %w", err)
	}
	if !strings.HasPrefix(media, "multipart/") {
		return nil, fmt.Errorf("user data's content type is %s, not multipart", media)
	}
	var parts []part
	reader := multipart.NewReader(message.Body, params["boundary"])
	for {
		next, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) { // wrapped where the archive's last boundary is not a closing one
			return parts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("user data's parts: %w", err)
		}
		body, err := io.ReadAll(next)
		if err != nil {
			return nil, fmt.Errorf("user data's parts: %w", err)
		}
		parts = append(parts, part{next.Header, string(body)})
	}
}

func joinUserData(parts []part) (string, error) {
	var out bytes.Buffer
	writer := multipart.NewWriter(&out)
	if err := writer.SetBoundary(boundary); err != nil {
		return "", err
	}
	fmt.Fprintf(&out, "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=%q\r\n\r\n", boundary)
	for _, p := range parts {
		section, err := writer.CreatePart(p.header)
		if err != nil {
			return "", err
		}
		if _, err := io.WriteString(section, p.body); err != nil {
			return "", err
		}
	}
	if err := writer.Close(); err != nil {
		return "", err
	}
	return out.String(), nil
}
