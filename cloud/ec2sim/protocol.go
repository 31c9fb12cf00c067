package ec2sim

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
)

// reply is an encoded answer.
type reply struct {
	status      int
	contentType string
	header      map[string]string
	body        []byte
}

// protocol encodes answers as one of AWS's protocols does.
type protocol struct {
	success func(c *call, value any) (reply, error)
	failure func(c *call, e *apiError) reply
}

// rawXML is an answer that is encoded already: everything inside the root element except the request id.
type rawXML []byte

const ec2Namespace = "http://ec2.amazonaws.com/doc/2016-11-15/"

func ec2Success(c *call, value any) (reply, error) {
	inner, err := innerXML(value)
	if err != nil {
		return reply{}, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s<%sResponse xmlns=\"%s\"><requestId>%s</requestId>", xml.Header, c.action, ec2Namespace, c.id)
	b.Write(inner)
	fmt.Fprintf(&b, "</%sResponse>", c.action)
	return reply{status: http.StatusOK, contentType: "text/xml;charset=UTF-8", body: b.Bytes()}, nil
}

// innerXML encodes a struct without its enclosing element.
func innerXML(value any) (rawXML, error) {
	if raw, ok := value.(rawXML); ok {
		return raw, nil
	}
	var b bytes.Buffer
	if err := xml.NewEncoder(&b).EncodeElement(value, xml.StartElement{Name: xml.Name{Local: "x"}}); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return bytes.TrimSuffix(bytes.TrimPrefix(b.Bytes(), []byte("<x>")), []byte("</x>")), nil
}

func ec2Failure(c *call, e *apiError) reply {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s<Response><Errors><Error><Code>%s</Code><Message>", xml.Header, e.code)
	_ = xml.EscapeText(&b, []byte(e.message)) // a bytes.Buffer does not fail
	fmt.Fprintf(&b, "</Message></Error></Errors><RequestID>%s</RequestID></Response>", c.id)
	return reply{status: e.status, contentType: "text/xml;charset=UTF-8", body: b.Bytes()}
}

func queryNamespace(service string) string {
	switch service {
	case "sts":
		return "https://sts.amazonaws.com/doc/2011-06-15/"
	case "sqs":
		return sqsNamespace
	case "autoscaling":
		return "http://autoscaling.amazonaws.com/doc/2011-01-01/"
	}
	return "https://iam.amazonaws.com/doc/2010-05-08/"
}

func querySuccess(c *call, value any) (reply, error) {
	inner, err := innerXML(value)
	if err != nil {
		return reply{}, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<%sResponse xmlns=\"%s\">", c.action, queryNamespace(c.service))
	if value != (struct{}{}) { // an action without a result has no result element
		fmt.Fprintf(&b, "<%[1]sResult>%[2]s</%[1]sResult>", c.action, inner)
	}
	fmt.Fprintf(&b, "<ResponseMetadata><RequestId>%s</RequestId></ResponseMetadata></%sResponse>", c.id, c.action)
	return reply{status: http.StatusOK, contentType: "text/xml", body: b.Bytes()}, nil
}

func queryFailure(c *call, e *apiError) reply {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<ErrorResponse xmlns=\"%s\"><Error><Type>Sender</Type><Code>%s</Code><Message>", queryNamespace(c.service), e.code)
	_ = xml.EscapeText(&b, []byte(e.message)) // a bytes.Buffer does not fail
	fmt.Fprintf(&b, "</Message></Error><RequestId>%s</RequestId></ErrorResponse>", c.id)
	return reply{status: e.status, contentType: "text/xml", body: b.Bytes()}
}

func jsonContentType(c *call) string {
	switch c.service {
	case "sqs":
		return "application/x-amz-json-1.0"
	case "eks", "fis", "arc-zonal-shift":
		return "application/json"
	}
	return "application/x-amz-json-1.1"
}

func jsonSuccess(c *call, value any) (reply, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return reply{}, fmt.Errorf("encode answer: %w", err)
	}
	return reply{status: http.StatusOK, contentType: jsonContentType(c), body: body}, nil
}

func jsonFailure(c *call, e *apiError) reply {
	body, err := json.Marshal(map[string]string{"__type": e.code, "message": e.message})
	if err != nil {
		return reply{status: http.StatusInternalServerError, contentType: jsonContentType(c)}
	}
	header := map[string]string{"X-Amzn-Errortype": e.code}
	if c.service == "sqs" {
		header = map[string]string{"X-Amzn-Query-Error": sqsLegacyCode(e.code) + ";Sender"}
	}
	return reply{status: e.status, contentType: jsonContentType(c), header: header, body: body}
}
