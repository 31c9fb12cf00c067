package worker

import (
	"fmt"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
)

// maxEventMessage is the length limit of the messages of Events, in bytes: the limit of the API group events.k8s.io (1,024
// bytes) with a margin.
const maxEventMessage = 1000

// recorder returns a recorder of Events in the API server, and a function that stops it.
func recorder(config *rest.Config, scheme *runtime.Scheme) (record.EventRecorder, func(), error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("events client: %w", err)
	}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(briefSink{&typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events("")}})
	return broadcaster.NewRecorder(scheme, corev1.EventSource{Component: "tenon"}), broadcaster.Shutdown, nil
}

// briefSink shortens the messages of Events: errors and lists of reasons may be of any length.
type briefSink struct{ record.EventSink }

func (s briefSink) Create(event *corev1.Event) (*corev1.Event, error) {
	event.Message = brief(event.Message)
	return s.EventSink.Create(event)
}

// brief cuts a message that is too long for an Event, at the end of a character.
func brief(message string) string {
	if len(message) <= maxEventMessage {
		return message
	}
	const more = "..."
	cut := maxEventMessage - len(more)
	for cut > 0 && !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + more
}
