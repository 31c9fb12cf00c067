package ec2sim

import (
	"context"
	"crypto/md5" // SQS defines its checksums as MD5
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
)

// queue is an SQS standard queue, oldest message first.
type queue struct {
	Name       string
	Attributes map[string]string
	Tags       map[string]string `json:",omitempty"`
	Messages   []message
}

type message struct {
	ID        string
	Body      string
	SentAt    time.Time
	VisibleAt time.Time
	Receipt   string `json:",omitempty"` // the handle from when it was last received
	Received  int
	// FirstReceivedAt is when the message was first received.
	FirstReceivedAt time.Time `json:",omitzero"`
}

const (
	defaultVisibility = 30 * time.Second
	maxWait           = 20 // seconds
	maxBatch          = 10
)

// sqs is the account's SQS service, with standard queues.
type sqs struct {
	*table[queue]
	account *account
	now     func() time.Time
	posted  chan struct{} // closed and replaced when a message arrives in a queue
}

func queueURL(c *call, name string) string {
	return "http://" + c.host + "/" + accountID + "/" + name
}

// find returns a queue by the last part of its URL.
func (s *sqs) find(url string) (*queue, error) {
	url = strings.TrimSuffix(url, "/")
	q := s.rows[url[strings.LastIndexByte(url, '/')+1:]]
	if q == nil {
		return nil, sqsRefuse("QueueDoesNotExist", "The specified queue does not exist.")
	}
	return q, nil
}

func (s *sqs) createQueue(c *call) (any, error) {
	in, err := decodeJSON[struct {
		QueueName  string
		Attributes map[string]string
		Tags       map[string]string `json:"tags"`
	}](c)
	if err != nil {
		return nil, err
	}
	if in.QueueName == "" || len(in.QueueName) > 80 {
		return nil, sqsRefuse("InvalidParameterValue", "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	s.make(in.QueueName, in.Attributes, in.Tags)
	return map[string]string{"QueueUrl": queueURL(c, in.QueueName)}, nil
}

// make creates a queue unless there is one of that name.
func (s *sqs) make(name string, attributes, tags map[string]string) {
	if s.rows[name] == nil {
		s.put(name, &queue{Name: name, Attributes: attributes, Tags: tags})
	}
}

func (s *sqs) getQueueURL(c *call) (any, error) {
	in, err := decodeJSON[struct{ QueueName string }](c)
	if err != nil {
		return nil, err
	}
	q, err := s.find(in.QueueName)
	if err != nil {
		return nil, err
	}
	return map[string]string{"QueueUrl": queueURL(c, q.Name)}, nil
}

func (s *sqs) getQueueAttributes(c *call) (any, error) {
	in, err := decodeJSON[struct {
		QueueUrl       string // the wire's spelling
		AttributeNames []string
	}](c)
	if err != nil {
		return nil, err
	}
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	waiting := 0
	for _, m := range q.Messages {
		if !c.at.Before(m.VisibleAt) {
			waiting++
		}
	}
	all := map[string]string{
		"QueueArn":                              s.account.arn("sqs", q.Name),
		"ApproximateNumberOfMessages":           strconv.Itoa(waiting),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(len(q.Messages) - waiting),
		"VisibilityTimeout":                     strconv.Itoa(int(defaultVisibility / time.Second)),
	}
	for k, v := range q.Attributes {
		all[k] = v
	}
	for k := range all {
		if !slices.Contains(in.AttributeNames, "All") && !slices.Contains(in.AttributeNames, k) {
			delete(all, k)
		}
	}
	return map[string]any{"Attributes": all}, nil
}

func checksum(body string) string {
	sum := md5.Sum([]byte(body)) // SQS defines its checksums as MD5
	return hex.EncodeToString(sum[:])
}

func (s *sqs) sendMessage(c *call) (any, error) {
	in, err := decodeJSON[struct {
		QueueUrl     string // the wire's spelling
		MessageBody  string
		DelaySeconds int
	}](c)
	if err != nil {
		return nil, err
	}
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	id := s.post(q, in.MessageBody, c.at, time.Duration(in.DelaySeconds)*time.Second)
	return map[string]string{"MessageId": id, "MD5OfMessageBody": checksum(in.MessageBody)}, nil
}

// post adds a message to a queue and wakes the calls that wait for one.
func (s *sqs) post(q *queue, body string, at time.Time, delay time.Duration) string {
	m := message{ID: uuid.NewString(), Body: body, SentAt: at, VisibleAt: at.Add(delay)}
	q.Messages = append(q.Messages, m)
	s.put(q.Name, q)
	close(s.posted)
	s.posted = make(chan struct{})
	return m.ID
}

// postAll adds a message to every queue.
func (s *sqs) postAll(body string, at time.Time) {
	for _, q := range s.sorted() {
		s.post(q, body, at, 0)
	}
}

// messageWait is the result of ReceiveMessage, instead of an answer, while the call may still wait.
type messageWait struct {
	posted  <-chan struct{}
	visible time.Duration // until the next hidden message becomes visible
	left    time.Duration
}

// forMessage waits until it is worth looking again. It returns false when the waiting time is over.
func (w *messageWait) forMessage(ctx context.Context) bool {
	pause := min(w.left, w.visible)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-w.posted:
		return true
	case <-timer.C:
		return pause < w.left
	case <-ctx.Done():
		return false
	}
}

func (w *messageWait) empty() (any, error) { return map[string]any{}, nil }

func (s *sqs) receiveMessage(c *call) (any, error) {
	in, err := decodeJSON[struct {
		QueueUrl            string // the wire's spelling
		MaxNumberOfMessages int
		WaitTimeSeconds     int
		VisibilityTimeout   *int
		// Two names of the same list: the first is deprecated, but older clients know only that one.
		AttributeNames, MessageSystemAttributeNames []string
	}](c)
	if err != nil {
		return nil, err
	}
	setDefault(&in.MaxNumberOfMessages, 1)
	if in.MaxNumberOfMessages < 1 || in.MaxNumberOfMessages > maxBatch || in.WaitTimeSeconds < 0 || in.WaitTimeSeconds > maxWait {
		return nil, sqsRefuse("InvalidParameterValue", "MaxNumberOfMessages must be 1 to 10 and WaitTimeSeconds 0 to 20")
	}
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	hidden := defaultVisibility
	if in.VisibilityTimeout != nil {
		hidden = time.Duration(*in.VisibilityTimeout) * time.Second
	}
	now := s.now()
	out := []map[string]any{}
	wait := &messageWait{posted: s.posted, visible: maxWait * time.Second}
	for n := range q.Messages {
		m := &q.Messages[n]
		if now.Before(m.VisibleAt) {
			wait.visible = min(wait.visible, m.VisibleAt.Sub(now))
			continue
		}
		if len(out) == in.MaxNumberOfMessages {
			break
		}
		m.VisibleAt, m.Receipt, m.Received = now.Add(hidden), uuid.NewString(), m.Received+1
		setDefault(&m.FirstReceivedAt, now)
		given := map[string]any{"MessageId": m.ID, "ReceiptHandle": m.Receipt, "Body": m.Body, "MD5OfBody": checksum(m.Body)}
		if attributes := m.attributes(slices.Concat(in.AttributeNames, in.MessageSystemAttributeNames)); len(attributes) > 0 {
			given["Attributes"] = attributes
		}
		out = append(out, given)
	}
	if len(out) > 0 {
		s.put(q.Name, q)
		return map[string]any{"Messages": out}, nil
	}
	if wait.left = time.Duration(in.WaitTimeSeconds)*time.Second - now.Sub(c.at); wait.left <= 0 {
		return map[string]any{}, nil
	}
	return wait, nil
}

// attributes returns the requested attributes of a message, or all of them for All. The sender, a trace and the
// attributes of FIFO queues are not supported.
func (m *message) attributes(names []string) map[string]string {
	all := map[string]string{
		"SentTimestamp":                    strconv.FormatInt(m.SentAt.UnixMilli(), 10),
		"ApproximateReceiveCount":          strconv.Itoa(m.Received),
		"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.FirstReceivedAt.UnixMilli(), 10),
	}
	for name := range all {
		if !slices.Contains(names, "All") && !slices.Contains(names, name) {
			delete(all, name)
		}
	}
	return all
}

// remove deletes the messages with the receipts; deleting one that is gone succeeds, as in SQS.
func (s *sqs) remove(q *queue, receipts ...string) {
	q.Messages = slices.DeleteFunc(q.Messages, func(m message) bool { return m.Receipt != "" && slices.Contains(receipts, m.Receipt) })
	s.put(q.Name, q)
}

func (s *sqs) deleteMessage(c *call) (any, error) {
	in, err := decodeJSON[struct {
		QueueUrl      string // the wire's spelling
		ReceiptHandle string
	}](c)
	if err != nil {
		return nil, err
	}
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	s.remove(q, in.ReceiptHandle)
	return struct{}{}, nil
}

func (s *sqs) deleteMessageBatch(c *call) (any, error) {
	in, err := decodeJSON[struct {
		QueueUrl string                               // the wire's spelling
		Entries  []struct{ Id, ReceiptHandle string } // the wire's spelling
	}](c)
	if err != nil {
		return nil, err
	}
	switch ids := map[string]bool{}; {
	case len(in.Entries) == 0:
		return nil, sqsRefuse("EmptyBatchRequest", "There should be at least one DeleteMessageBatchRequestEntry in the request.")
	case len(in.Entries) > maxBatch:
		return nil, sqsRefuse("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10.")
	default:
		for _, e := range in.Entries {
			if ids[e.Id] {
				return nil, sqsRefuse("BatchEntryIdsNotDistinct", "Id "+e.Id+" repeated.")
			}
			ids[e.Id] = true
		}
	}
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	done, receipts := []map[string]string{}, []string{}
	for _, e := range in.Entries {
		receipts = append(receipts, e.ReceiptHandle)
		done = append(done, map[string]string{"Id": e.Id})
	}
	s.remove(q, receipts...)
	return map[string]any{"Successful": done, "Failed": []any{}}, nil
}

// listQueues handles ListQueues: "you do not receive a NextToken in the response" without MaxResults, of which 1,000 is the
// largest and the default (SQS API reference).
func (s *sqs) listQueues(c *call) (any, error) {
	in, err := decodeJSON[struct {
		QueueNamePrefix, NextToken string
		MaxResults                 *int
	}](c)
	if err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(s.ids(), func(name string) bool { return !strings.HasPrefix(name, in.QueueNamePrefix) })
	size := 1000
	if in.MaxResults != nil {
		if size = *in.MaxResults; size < 1 || size > 1000 {
			return nil, sqsRefuse("InvalidParameterValue", "MaxResults must be 1 to 1000")
		}
	}
	page, next, err := paginate(found, func(name string) string { return name }, in.NextToken, size)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if in.MaxResults != nil && next != "" {
		out["NextToken"] = next
	}
	if len(page) > 0 { // an answer without queues has no list
		urls := make([]string, len(page))
		for i, name := range page {
			urls[i] = queueURL(c, name)
		}
		out["QueueUrls"] = urls
	}
	return out, nil
}

func (s *sqs) listTags(c *call) (any, error) {
	in, err := decodeJSON[struct{ QueueUrl string }](c) // the wire's spelling
	if err != nil {
		return nil, err
	}
	q, err := s.find(in.QueueUrl)
	if err != nil || len(q.Tags) == 0 {
		return map[string]any{}, err
	}
	return map[string]any{"Tags": q.Tags}, nil
}

func (s *sqs) tag(c *call) (any, error) {
	in, err := decodeJSON[struct {
		QueueUrl string // the wire's spelling
		Tags     map[string]string
	}](c)
	if err != nil {
		return nil, err
	}
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	tags := maps.Clone(q.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	maps.Copy(tags, in.Tags)
	q.Tags = tags
	s.put(q.Name, q)
	return struct{}{}, nil
}

func (s *sqs) deleteQueue(c *call) (any, error) {
	in, err := decodeJSON[struct{ QueueUrl string }](c) // the wire's spelling
	if err != nil {
		return nil, err
	}
	q, err := s.find(in.QueueUrl)
	if err != nil {
		return nil, err
	}
	s.del(q.Name)
	return struct{}{}, nil
}

// needs returns the permissions an SQS call needs ("Actions, resources, and condition keys for Amazon SQS"). A batch action
// needs the permission of the single action. ListQueues has no resource.
func (s *sqs) needs(c *call) []policy.Request {
	in, err := peekJSON[struct {
		QueueUrl  string // the wire's spelling
		QueueName string
	}](c)
	if err != nil {
		return nil // the handler reports what is wrong with the request
	}
	if c.action == "ListQueues" {
		return []policy.Request{{Action: "sqs:ListQueues", Resource: "*"}}
	}
	name := in.QueueUrl[strings.LastIndexByte(in.QueueUrl, '/')+1:] + in.QueueName
	need := policy.Request{Action: "sqs:" + strings.TrimSuffix(c.action, "Batch"), Resource: s.account.arn("sqs", name)}
	if q := s.rows[name]; q != nil {
		need.Keys = onResourceTags("sqs", q.Tags)
	}
	return []policy.Request{need}
}
