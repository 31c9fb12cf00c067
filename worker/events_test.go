package worker

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// keptSink keeps the messages of the Events that are created, and those that patches set.
type keptSink struct {
	record.EventSink
	messages chan string
}

func (s keptSink) Create(event *corev1.Event) (*corev1.Event, error) {
	s.messages <- event.Message
	return event, nil
}

func (s keptSink) Patch(event *corev1.Event, data []byte) (*corev1.Event, error) {
	var patch corev1.Event
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
	s.messages <- patch.Message
	return event, nil
}

// The whole way of an Event, from client-go's recorder to the sink. client-go patches a repeated Event, message included.
func TestMessagesOfEventsAreBrief(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ reason, message, want string }{
		{reason: "a short message stays", message: "it has drifted", want: "it has drifted"},
		{reason: "as many bytes as there may be stay", message: strings.Repeat("a", maxEventMessage), want: strings.Repeat("a", maxEventMessage)},
		{reason: "a long one is cut, and says so", message: strings.Repeat("a", 5000), want: strings.Repeat("a", 997) + "..."},
		{reason: "it is not cut within a character of two bytes", message: strings.Repeat("é", 900), want: strings.Repeat("é", 498) + "..."},
	} {
		for way, record := range map[string]func(briefRecorder, *corev1.Pod){
			"Event":  func(r briefRecorder, pod *corev1.Pod) { r.Event(pod, "Normal", "Reason", test.message) },
			"Eventf": func(r briefRecorder, pod *corev1.Pod) { r.Eventf(pod, "Normal", "Reason", "%s", test.message) },
			"AnnotatedEventf": func(r briefRecorder, pod *corev1.Pod) {
				r.AnnotatedEventf(pod, nil, "Normal", "Reason", "%s", test.message)
			},
		} {
			t.Run(test.reason+", by "+way, func(t *testing.T) {
				t.Parallel()
				sink, pod := keptSink{messages: make(chan string, 2)}, &corev1.Pod{}
				pod.Name, pod.Namespace = "p", "default"
				recorder, stop := recorderTo(sink, Scheme())
				defer stop()
				for _, which := range []string{"the first", "the second"} {
					record(recorder, pod)
					if got := <-sink.messages; got != test.want || !utf8.ValidString(got) {
						t.Errorf("%s has %d bytes: %.20q", which, len(got), got)
					}
				}
			})
		}
	}
}
