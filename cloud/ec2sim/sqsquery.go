package ec2sim

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// SQS has two protocols, and answers in that of the request: AWS's JSON protocol, which SDKs have used since November
// 2023, and the Query protocol, which the API reference describes and which older SDKs and the AWS CLI use ("Making Query
// API requests" in the SQS Developer Guide). The handlers use only the names of the JSON protocol. This file translates
// requests before they are checked against the model, and answers afterwards.

const sqsNamespace = "http://queue.amazonaws.com/doc/2012-11-05/"

// sqsQueryLists maps the names of lists and maps in Query requests to those in JSON. A list is spelt AttributeName.1, and
// a map Attribute.1.Name and Attribute.1.Value (API reference; botocore's model of before November 2023).
var sqsQueryLists = map[string]struct {
	name       string
	key, value string // of a map
}{
	"AttributeName":                  {name: "AttributeNames"},
	"MessageAttributeName":           {name: "MessageAttributeNames"},
	"MessageSystemAttributeName":     {name: "MessageSystemAttributeNames"},
	"DeleteMessageBatchRequestEntry": {name: "Entries"},
	"Attribute":                      {"Attributes", "Name", "Value"},
	"MessageAttribute":               {"MessageAttributes", "Name", "Value"},
	"MessageSystemAttribute":         {"MessageSystemAttributes", "Name", "Value"},
	"Tag":                            {"tags", "Key", "Value"},
}

// sqsNumbers are the numeric parameters; all others are texts.
var sqsNumbers = []string{"DelaySeconds", "MaxNumberOfMessages", "MaxResults", "VisibilityTimeout", "WaitTimeSeconds"}

// readSQSQuery translates the parameters of a Query request to a JSON body.
func readSQSQuery(c *call, path string) error {
	body := map[string]any{}
	if path = strings.Trim(path, "/"); path != "" {
		body["QueueUrl"] = path // "https://sqs.us-east-2.amazonaws.com/123456789012/MyQueue/?Action=..." names the queue too
	}
	if strings.HasSuffix(c.action, "Batch") {
		body["Entries"] = []any{} // an empty batch has no parameter, or botocore's "Entries="
	}
	for _, key := range parameterNames(c.form) {
		p := c.form.sub(key)
		if key == "Action" || key == "Version" || key == "Entries" && p.value == "" && len(p.children) == 0 {
			continue
		}
		if list, ok := sqsQueryLists[key]; ok {
			if c.action == "TagQueue" {
				list.name = "Tags" // which is "tags" in CreateQueue alone
			}
			var items []any
			entries := map[string]any{}
			for _, item := range c.form.items(key) {
				if list.key == "" {
					items = append(items, item.tree())
				} else {
					entries[item.str(list.key)] = item.sub(list.value).tree()
				}
			}
			if body[list.name] = items; list.key != "" {
				body[list.name] = entries
			}
			continue
		}
		if !slices.Contains(sqsNumbers, key) {
			body[key] = p.tree()
			continue
		}
		n, err := strconv.Atoi(p.value)
		if err != nil {
			return refuse("InvalidParameterValue", "Value %s for parameter %s is invalid. Reason: Must be an integer.", p.value, key)
		}
		body[key] = n
	}
	var err error
	if c.body, err = json.Marshal(body); err != nil {
		return fmt.Errorf("read %s: %w", c.action, err)
	}
	return nil
}

// tree returns the parameter as JSON: a text, or an object with its children.
func (p *params) tree() any {
	switch {
	case p == nil:
		return ""
	case len(p.children) == 0:
		return p.value
	}
	object := make(map[string]any, len(p.children))
	for key, child := range p.children {
		object[key] = child.tree()
	}
	return object
}

// sqsAnswerLists are the element names of the items of lists and maps in answers. Each item is an element directly below
// the result or the message.
var sqsAnswerLists = map[string]string{
	"Messages": "Message", "Attributes": "Attribute", "Successful": "DeleteMessageBatchResultEntry", "Failed": "BatchResultErrorEntry",
	"QueueUrls": "QueueUrl", "Tags": "Tag",
}

// sqsQuerySuccess encodes the JSON answer as XML. An action without a result has no result element.
func sqsQuerySuccess(c *call, value any) (reply, error) {
	if value == (struct{}{}) {
		return querySuccess(c, value)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return reply{}, fmt.Errorf("encode answer: %w", err)
	}
	var object map[string]any
	if err := json.Unmarshal(encoded, &object); err != nil {
		return reply{}, fmt.Errorf("encode answer: %w", err)
	}
	var b bytes.Buffer
	writeSQSObject(&b, object)
	return querySuccess(c, rawXML(b.Bytes()))
}

func writeSQSObject(b *bytes.Buffer, object map[string]any) {
	for _, name := range sortedKeys(object) {
		switch value := object[name].(type) {
		case []any:
			for _, item := range value {
				writeSQSElement(b, sqsAnswerLists[name], item)
			}
		case map[string]any: // the only maps are those of attributes and of tags
			of := "Name"
			if name == "Tags" {
				of = "Key"
			}
			for _, key := range sortedKeys(value) {
				writeSQSElement(b, sqsAnswerLists[name], map[string]any{of: key, "Value": value[key]})
			}
		default:
			writeSQSElement(b, name, value)
		}
	}
}

func writeSQSElement(b *bytes.Buffer, name string, value any) {
	fmt.Fprintf(b, "<%s>", name)
	if object, ok := value.(map[string]any); ok {
		writeSQSObject(b, object)
	} else {
		_ = xml.EscapeText(b, []byte(fmt.Sprint(value))) // a bytes.Buffer does not fail
	}
	fmt.Fprintf(b, "</%s>", name)
}

// sqsQueryFailure encodes an error with the Query protocol's error code.
func sqsQueryFailure(c *call, e *apiError) reply {
	code := sqsLegacyCode(e.code)
	if code == "SerializationException" { // the JSON protocol's code for a request that cannot be parsed
		code = "InvalidQueryParameter"
	}
	return queryFailure(c, &apiError{e.status, code, e.message})
}

// sqsLegacyCode returns the Query protocol's code for an error. The JSON protocol's answers contain it too, in the header
// x-amzn-query-error, and SDKs report it to their callers (the models' trait awsQueryError).
func sqsLegacyCode(code string) string {
	switch name := strings.TrimPrefix(code, sqsPrefix); name {
	case "QueueDoesNotExist":
		return "AWS.SimpleQueueService.NonExistentQueue"
	case "EmptyBatchRequest", "TooManyEntriesInBatchRequest", "BatchEntryIdsNotDistinct":
		return "AWS.SimpleQueueService." + name
	default:
		return name
	}
}

// sqsPrefix is the namespace of the JSON protocol's error codes.
const sqsPrefix = "com.amazonaws.sqs#"

func sqsRefuse(name, text string) error {
	return &apiError{http.StatusBadRequest, sqsPrefix + name, text}
}
