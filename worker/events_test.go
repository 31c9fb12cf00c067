package worker

import (
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
)

// keptSink keeps the messages of the Events that are created.
type keptSink struct {
	record.EventSink
	messages chan string
}

func (s keptSink) Create(event *corev1.Event) (*corev1.Event, error) {
	s.messages <- event.Message
	return event, nil
}

// This covers the whole path of an Event, from client-go's recorder to the sink.
func TestMessagesOfEventsAreBrief(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ reason, message, want string }{
		{reason: "a short message stays", message: "it has drifted", want: "it has drifted"},
		{reason: "as many bytes as there may be stay", message: strings.Repeat("a", maxEventMessage), want: strings.Repeat("a", maxEventMessage)},
		{reason: "a long one is cut, and says so", message: strings.Repeat("a", 5000), want: strings.Repeat("a", 997) + "..."},
		{reason: "it is not cut within a character of two bytes", message: strings.Repeat("é", 900), want: strings.Repeat("é", 498) + "..."},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			sink := keptSink{messages: make(chan string, 1)}
			broadcaster := record.NewBroadcaster()
			defer broadcaster.Shutdown()
			broadcaster.StartRecordingToSink(briefSink{sink})
			pod := &corev1.Pod{}
			pod.Name, pod.Namespace = "p", "default"
			broadcaster.NewRecorder(Scheme(), corev1.EventSource{}).Event(pod, corev1.EventTypeNormal, "Reason", test.message)
			if got := <-sink.messages; got != test.want || !utf8.ValidString(got) || len(got) > maxEventMessage {
				t.Errorf("%d bytes: %q", len(got), got)
			}
		})
	}
}
