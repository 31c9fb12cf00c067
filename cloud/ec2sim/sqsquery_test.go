package ec2sim_test

import (
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// queryAnswer is an answer in SQS's Query protocol, as in the API reference and the models of before November 2023:
// everything is in the namespace, and lists and maps are flattened.
type queryAnswer struct {
	XMLName xml.Name
	Result  []struct {
		QueueURL   string           `xml:"http://queue.amazonaws.com/doc/2012-11-05/ QueueUrl"`
		MD5        string           `xml:"MD5OfMessageBody"`
		MessageID  string           `xml:"MessageId"`
		Messages   []queryMessage   `xml:"Message"`
		Attributes []queryAttribute `xml:"Attribute"`
		Deleted    []string         `xml:"DeleteMessageBatchResultEntry>Id"`
	} `xml:",any"`
	Error struct{ Type, Code, Message string }
}

type queryMessage struct {
	ID         string `xml:"MessageId"`
	Receipt    string `xml:"ReceiptHandle"`
	MD5        string `xml:"MD5OfBody"`
	Body       string
	Attributes []queryAttribute `xml:"Attribute"`
}

type queryAttribute struct{ Name, Value string }

// query sends a request in SQS's Query protocol to a path, and returns the status and the answer.
func (a *account) query(t *testing.T, path string, form url.Values) (int, queryAnswer) {
	t.Helper()
	form.Set("Version", "2012-11-05")
	r, err := http.NewRequestWithContext(ctx(t), http.MethodPost, a.sim.URL()+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261121/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var out queryAnswer
	if err := xml.Unmarshal(body, &out); err != nil {
		t.Fatalf("%s answered %s: %v", form.Get("Action"), body, err)
	}
	if resp.StatusCode == http.StatusOK {
		if want := form.Get("Action") + "Response"; out.XMLName != (xml.Name{Space: "http://queue.amazonaws.com/doc/2012-11-05/", Local: want}) {
			t.Errorf("the answer's element is %v, want %s", out.XMLName, want)
		}
	}
	return resp.StatusCode, out
}

func TestQueuesInTheQueryProtocol(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	call := func(form url.Values) queryAnswer {
		t.Helper()
		status, out := a.query(t, "/", form)
		if status != http.StatusOK {
			t.Fatalf("%s was refused: %+v", form.Get("Action"), out.Error)
		}
		return out
	}
	if status, out := a.query(t, "/", url.Values{"Action": {"GetQueueUrl"}, "QueueName": {"tenon"}}); status != http.StatusBadRequest ||
		out.Error.Code != "AWS.SimpleQueueService.NonExistentQueue" || out.Error.Type != "Sender" {
		t.Errorf("a queue that does not exist: %d %+v", status, out.Error)
	}
	created := call(url.Values{"Action": {"CreateQueue"}, "QueueName": {"tenon"}, "Attribute.1.Name": {"MessageRetentionPeriod"}, "Attribute.1.Value": {"300"}})
	queueURL := call(url.Values{"Action": {"GetQueueUrl"}, "QueueName": {"tenon"}}).Result[0].QueueURL
	if queueURL == "" || created.Result[0].QueueURL != queueURL {
		t.Fatalf("the queue's URL is %q, created as %q", queueURL, created.Result[0].QueueURL)
	}
	const text = `{"a":"<b> & c"}`
	sent := call(url.Values{
		"Action": {"SendMessage"}, "QueueUrl": {queueURL}, "MessageBody": {text}, "DelaySeconds": {"5"},
		"MessageAttribute.1.Name": {"kind"}, "MessageAttribute.1.Value.DataType": {"String"}, "MessageAttribute.1.Value.StringValue": {"x"},
	})
	receive := url.Values{
		"Action": {"ReceiveMessage"}, "QueueUrl": {queueURL}, "MaxNumberOfMessages": {"10"}, "VisibilityTimeout": {"20"},
		"AttributeName.1": {"ApproximateReceiveCount"},
	}
	if got := call(receive).Result[0].Messages; len(got) != 0 {
		t.Errorf("a delayed message was there at once: %+v", got)
	}
	a.clock.Advance(5 * time.Second)
	received := call(receive).Result[0].Messages
	if len(received) != 1 {
		t.Fatalf("received %+v", received)
	}
	want := queryMessage{
		ID: sent.Result[0].MessageID, Receipt: received[0].Receipt, MD5: sent.Result[0].MD5, Body: text,
		Attributes: []queryAttribute{{"ApproximateReceiveCount", "1"}},
	}
	if diff := cmp.Diff(want, received[0]); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	// The API reference's examples address the queue by the path.
	_, attributes := a.query(t, strings.TrimPrefix(queueURL, a.sim.URL()), url.Values{
		"Action": {"GetQueueAttributes"}, "AttributeName.1": {"ApproximateNumberOfMessagesNotVisible"}, "AttributeName.2": {"MessageRetentionPeriod"},
	})
	if diff := cmp.Diff([]queryAttribute{{"ApproximateNumberOfMessagesNotVisible", "1"}, {"MessageRetentionPeriod", "300"}}, attributes.Result[0].Attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	deleted := call(url.Values{
		"Action": {"DeleteMessageBatch"}, "QueueUrl": {queueURL},
		"DeleteMessageBatchRequestEntry.1.Id": {"one"}, "DeleteMessageBatchRequestEntry.1.ReceiptHandle": {received[0].Receipt},
	})
	if diff := cmp.Diff([]string{"one"}, deleted.Result[0].Deleted); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	call(url.Values{"Action": {"DeleteMessage"}, "QueueUrl": {queueURL}, "ReceiptHandle": {received[0].Receipt}})
	a.clock.Advance(time.Hour)
	if got := call(receive).Result[0].Messages; len(got) != 0 {
		t.Errorf("a deleted message came back: %+v", got)
	}
}

func TestQueuesRefuseInTheQueryProtocol(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{Queues: []string{"tenon"}})
	for reason, c := range map[string]struct {
		form url.Values
		code string
	}{
		"an unknown action": {url.Values{"Action": {"FetchMessage"}}, "InvalidAction"},
		"a parameter that the action does not have": {
			url.Values{"Action": {"ReceiveMessage"}, "QueueUrl": {"/0/tenon"}, "MaxMessages": {"3"}}, "InvalidQueryParameter",
		},
		"a list in JSON's spelling": {
			url.Values{"Action": {"ReceiveMessage"}, "QueueUrl": {"/0/tenon"}, "AttributeNames.1": {"All"}}, "InvalidQueryParameter",
		},
		"a number that is none":    {url.Values{"Action": {"ReceiveMessage"}, "QueueUrl": {"/0/tenon"}, "WaitTimeSeconds": {"long"}}, "InvalidParameterValue"},
		"a limit":                  {url.Values{"Action": {"ReceiveMessage"}, "QueueUrl": {"/0/tenon"}, "WaitTimeSeconds": {"21"}}, "InvalidParameterValue"},
		"an attribute of no queue": {url.Values{"Action": {"GetQueueAttributes"}, "QueueUrl": {"/0/tenon"}, "AttributeName.1": {"Size"}}, "InvalidParameterValue"},
		"a missing parameter":      {url.Values{"Action": {"SendMessage"}, "QueueUrl": {"/0/tenon"}}, "MissingParameter"},
		"two entries of one name": {url.Values{
			"Action": {"DeleteMessageBatch"}, "QueueUrl": {"/0/tenon"},
			"DeleteMessageBatchRequestEntry.1.Id": {"a"}, "DeleteMessageBatchRequestEntry.1.ReceiptHandle": {"x"},
			"DeleteMessageBatchRequestEntry.2.Id": {"a"}, "DeleteMessageBatchRequestEntry.2.ReceiptHandle": {"y"},
		}, "AWS.SimpleQueueService.BatchEntryIdsNotDistinct"},
		"no entries": {url.Values{"Action": {"DeleteMessageBatch"}, "QueueUrl": {"/0/tenon"}}, "AWS.SimpleQueueService.EmptyBatchRequest"},
	} {
		status, out := a.query(t, "/", c.form)
		if status != http.StatusBadRequest || out.Error.Code != c.code {
			t.Errorf("%s: %d %+v, want %s", reason, status, out.Error, c.code)
		}
	}
}

// TestReceiveGivesTheAttributesAskedFor checks that a message has the attributes that the request names: "A list of
// attributes that need to be returned along with each message" (SQS API reference, ReceiveMessage).
func TestReceiveGivesTheAttributesAskedFor(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{Queues: []string{"tenon"}})
	queue := aws.String(a.sim.URL() + "/0/tenon")
	if _, err := a.sqs().SendMessage(ctx(t), &sqs.SendMessageInput{QueueUrl: queue, MessageBody: aws.String("hello")}); err != nil {
		t.Fatal(err)
	}
	for reason, c := range map[string]struct {
		names []sqstypes.MessageSystemAttributeName
		want  map[string]string
	}{
		"none": {nil, nil},
		"one": {
			[]sqstypes.MessageSystemAttributeName{"SentTimestamp"},
			map[string]string{"SentTimestamp": "1795262400000"},
		},
		"all": {
			[]sqstypes.MessageSystemAttributeName{"All"},
			map[string]string{
				"SentTimestamp": "1795262400000", "ApproximateReceiveCount": "",
				"ApproximateFirstReceiveTimestamp": "1795262400000",
			},
		},
	} {
		out, err := a.sqs().ReceiveMessage(ctx(t), &sqs.ReceiveMessageInput{QueueUrl: queue, MessageSystemAttributeNames: c.names, VisibilityTimeout: 20})
		a.clock.Advance(20 * time.Second)
		if err != nil || len(out.Messages) != 1 {
			t.Fatalf("%s: %+v, %v", reason, out, err)
		}
		got := out.Messages[0].Attributes
		if _, ok := got["ApproximateReceiveCount"]; ok {
			got["ApproximateReceiveCount"] = "" // the cases run in any order
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}
