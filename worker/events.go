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
	recorder, stop := recorderTo(&typedcorev1.EventSinkImpl{Interface: clients.CoreV1().Events("")}, scheme)
	return recorder, stop, nil
}

func recorderTo(sink record.EventSink, scheme *runtime.Scheme) (briefRecorder, func()) {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(sink)
	return briefRecorder{broadcaster.NewRecorder(scheme, corev1.EventSource{Component: "tenon"})}, broadcaster.Shutdown
}

// briefRecorder shortens the messages of Events: errors and lists of reasons may be of any length.
type briefRecorder struct{ to record.EventRecorder }

func (r briefRecorder) Event(object runtime.Object, eventType, reason, message string) {
	r.to.Event(object, eventType, reason, brief(message))
}

func (r briefRecorder) Eventf(object runtime.Object, eventType, reason, format string, args ...any) {
	r.Event(object, eventType, reason, fmt.Sprintf(format, args...))
}

func (r briefRecorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventType, reason, format string, args ...any) {
	r.to.AnnotatedEventf(object, annotations, eventType, reason, "%s", brief(fmt.Sprintf(format, args...)))
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
