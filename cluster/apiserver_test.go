package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// apiServer is the part of a Kubernetes API server that a mirror uses: lists, watches with bookmarks and streamed
// initial state, the pods' phase selector and /readyz, in JSON over HTTP. Methods switch its faults on.
type apiServer struct {
	mu      sync.Mutex
	version uint64
	objects map[string]map[string]object
	history []change
	// oldest is the version before which history was dropped.
	oldest uint64
	// news is closed and replaced whenever something happens.
	news chan struct{}
	// epoch is raised to end all watches.
	epoch int
	// down makes every request fail, listOnly refuses streamed initial state.
	down, listOnly bool
	// held names resources whose watches deliver nothing for now, refused those that cannot be watched or listed.
	held, refused map[string]bool
	// buffers says that CapacityBuffers are served.
	buffers bool
	// overlays says that NodeOverlays are served.
	overlays bool
	// devices says that resource.k8s.io/v1 is served.
	devices bool
	// asked counts requests by resource.
	asked map[string]int
	url   string
}

type object struct {
	raw     json.RawMessage
	visible bool
}

type change struct {
	version  uint64
	resource string
	event    watch.EventType
	raw      json.RawMessage
}

func newAPIServer() *apiServer {
	return &apiServer{version: 100, objects: map[string]map[string]object{}, news: make(chan struct{}), held: map[string]bool{}, refused: map[string]bool{}, asked: map[string]int{}}
}

// start serves until the test ends.
func (s *apiServer) start(t testing.TB) *apiServer {
	t.Helper()
	server := httptest.NewServer(s)
	s.url = server.URL
	t.Cleanup(func() {
		s.endWatches()
		server.CloseClientConnections()
		server.Close()
	})
	return s
}

func (s *apiServer) config() *rest.Config { return &rest.Config{Host: s.url} }

// put creates or replaces an object and returns its resourceVersion, which it also sets on the argument.
func (s *apiServer) put(resource string, obj metav1.Object) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	obj.SetResourceVersion(strconv.FormatUint(s.version, 10))
	raw, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	key := obj.GetNamespace() + "/" + obj.GetName()
	if s.objects[resource] == nil {
		s.objects[resource] = map[string]object{}
	}
	before := s.objects[resource][key]
	now := object{raw: raw, visible: !ended(obj)}
	s.objects[resource][key] = now
	switch {
	case now.visible && before.visible:
		s.record(resource, watch.Modified, raw)
	case now.visible:
		s.record(resource, watch.Added, raw)
	case before.visible:
		s.record(resource, watch.Deleted, raw)
	}
	return obj.GetResourceVersion()
}

// remove deletes an object at once.
func (s *apiServer) remove(resource string, obj metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := obj.GetNamespace() + "/" + obj.GetName()
	before, ok := s.objects[resource][key]
	if !ok {
		return
	}
	delete(s.objects[resource], key)
	s.version++
	obj.SetResourceVersion(strconv.FormatUint(s.version, 10))
	raw, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	if before.visible {
		s.record(resource, watch.Deleted, raw)
	}
}

// bookmark sends a bookmark to the watches of a resource, and returns its resourceVersion.
func (s *apiServer) bookmark(resource string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.record(resource, watch.Bookmark, bookmarkAt(s.version, false))
	return strconv.FormatUint(s.version, 10)
}

func (s *apiServer) record(resource string, event watch.EventType, raw json.RawMessage) {
	s.history = append(s.history, change{version: s.version, resource: resource, event: event, raw: raw})
	s.wake()
}

func (s *apiServer) wake() {
	close(s.news)
	s.news = make(chan struct{})
}

// endWatches ends all watches in an orderly way.
func (s *apiServer) endWatches() { s.set(func() { s.epoch++ }) }

// compact drops the history and ends the watches that might still need it, so that they have to start again.
func (s *apiServer) compact() {
	s.set(func() {
		s.oldest, s.history = s.version, nil
		s.epoch++
	})
}

// set changes a fault.
func (s *apiServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	s.wake()
}

// ended is the negation of the selector by which a mirror watches pods.
func ended(obj metav1.Object) bool {
	pod, ok := obj.(*corev1.Pod)
	return ok && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed)
}

func bookmarkAt(version uint64, initial bool) json.RawMessage {
	annotations := ""
	if initial {
		annotations = `,"annotations":{"` + metav1.InitialEventsAnnotationKey + `":"true"}`
	}
	return json.RawMessage(fmt.Sprintf(`{"metadata":{"resourceVersion":"%d"%s}}`, version, annotations))
}

// kinds are the kinds of the resources served.
var kinds = map[string][2]string{
	"pods": {"v1", "Pod"}, "nodes": {"v1", "Node"}, "persistentvolumeclaims": {"v1", "PersistentVolumeClaim"},
	"daemonsets": {"apps/v1", "DaemonSet"}, "poddisruptionbudgets": {"policy/v1", "PodDisruptionBudget"},
	"persistentvolumes": {"v1", "PersistentVolume"}, "limitranges": {"v1", "LimitRange"}, "configmaps": {"v1", "ConfigMap"}, "namespaces": {"v1", "Namespace"},
	"storageclasses": {"storage.k8s.io/v1", "StorageClass"}, "csinodes": {"storage.k8s.io/v1", "CSINode"},
	"volumeattachments": {"storage.k8s.io/v1", "VolumeAttachment"}, "nodeclaims": {"karpenter.sh/v1", "NodeClaim"},
	"nodepools": {"karpenter.sh/v1", "NodePool"}, "ec2nodeclasses": {"karpenter.k8s.aws/v1", "EC2NodeClass"},
	"capacitybuffers": {"autoscaling.x-k8s.io/v1beta1", "CapacityBuffer"}, "podtemplates": {"v1", "PodTemplate"},
	"nodeoverlays": {"karpenter.sh/v1alpha1", "NodeOverlay"}, "deployments": {"apps/v1", "Deployment"}, "statefulsets": {"apps/v1", "StatefulSet"}, "replicasets": {"apps/v1", "ReplicaSet"},
	"resourceclaims": {"resource.k8s.io/v1", "ResourceClaim"}, "deviceclasses": {"resource.k8s.io/v1", "DeviceClass"}, "resourceslices": {"resource.k8s.io/v1", "ResourceSlice"},
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	resource := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	down, listOnly, buffers, overlays, devices := s.down || s.refused[resource], s.listOnly, s.buffers, s.overlays, s.devices
	s.asked[resource]++
	s.mu.Unlock()
	query := r.URL.Query()
	switch {
	case down:
		w.WriteHeader(http.StatusServiceUnavailable)
	case resource == "readyz":
		_, _ = w.Write([]byte("ok"))
	case resource == "v1beta1" && buffers:
		_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"autoscaling.x-k8s.io/v1beta1","resources":[{"name":"capacitybuffers"}]}`))
	case resource == "v1alpha1" && overlays:
		_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"karpenter.sh/v1alpha1","resources":[{"name":"nodeoverlays"}]}`))
	case r.URL.Path == "/apis/resource.k8s.io/v1" && devices:
		_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"resource.k8s.io/v1","resources":[{"name":"resourceclaims"},{"name":"deviceclasses"},{"name":"resourceslices"}]}`))
	case kinds[resource] == [2]string{} || resource == "capacitybuffers" && !buffers || resource == "nodeoverlays" && !overlays:
		w.WriteHeader(http.StatusNotFound)
	case query.Get("watch") == "" || query.Get("watch") == "false":
		s.list(w, resource)
	case query.Get("sendInitialEvents") == "true" && listOnly:
		s.fail(w, apierrors.NewBadRequest("sendInitialEvents is forbidden"))
	default:
		s.watch(w, r, resource)
	}
}

func (s *apiServer) fail(w http.ResponseWriter, err *apierrors.StatusError) {
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(int(err.ErrStatus.Code))
	status := err.ErrStatus
	status.Kind, status.APIVersion = "Status", "v1"
	_ = json.NewEncoder(w).Encode(status)
}

func (s *apiServer) list(w http.ResponseWriter, resource string) {
	s.mu.Lock()
	version, items := s.version, s.visible(resource)
	s.mu.Unlock()
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":"%d"},"items":[`,
		kinds[resource][0], kinds[resource][1], version)
	for i, item := range items {
		if i > 0 {
			_, _ = w.Write([]byte(","))
		}
		_, _ = w.Write(item)
	}
	_, _ = w.Write([]byte("]}"))
}

// visible returns the objects that the selector of the resource admits, ordered by key. The lock is held.
func (s *apiServer) visible(resource string) []json.RawMessage {
	var items []json.RawMessage
	for _, key := range slices.Sorted(maps.Keys(s.objects[resource])) {
		if o := s.objects[resource][key]; o.visible {
			items = append(items, o.raw)
		}
	}
	return items
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, resource string) {
	s.mu.Lock()
	from, _ := strconv.ParseUint(r.URL.Query().Get("resourceVersion"), 10, 64)
	initial := r.URL.Query().Get("sendInitialEvents") == "true"
	epoch, expired := s.epoch, from < s.oldest && !initial
	var events []change
	if initial {
		for _, raw := range s.visible(resource) {
			events = append(events, change{event: watch.Added, raw: raw})
		}
		from = s.version
		events = append(events, change{event: watch.Bookmark, raw: bookmarkAt(from, true)})
	}
	s.mu.Unlock()
	if expired {
		s.fail(w, apierrors.NewResourceExpired("too old resource version"))
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(http.StatusOK)
	for {
		for _, event := range events {
			if _, err := fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", event.event, typed(event.raw, resource)); err != nil {
				return
			}
		}
		w.(http.Flusher).Flush()
		var news chan struct{}
		var over bool
		events, from, news, over = s.since(resource, from, epoch)
		if over {
			return
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-news:
		case <-r.Context().Done():
			return
		}
	}
}

// since returns the changes of a resource after a version, and how to wait for more.
func (s *apiServer) since(resource string, from uint64, epoch int) ([]change, uint64, chan struct{}, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != epoch || s.down || s.refused[resource] {
		return nil, from, nil, true
	}
	if s.held[resource] {
		return nil, from, s.news, false
	}
	var events []change
	start := sort.Search(len(s.history), func(i int) bool { return s.history[i].version > from })
	for _, c := range s.history[start:] {
		if c.resource == resource {
			events = append(events, c)
			from = c.version
		}
	}
	return events, from, s.news, false
}

// typed adds its apiVersion and kind to an object that lacks them, as objects in watch events have them.
func typed(raw json.RawMessage, resource string) json.RawMessage {
	if strings.HasPrefix(string(raw), `{"apiVersion"`) || strings.HasPrefix(string(raw), `{"kind"`) {
		return raw
	}
	return append([]byte(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,`, kinds[resource][0], kinds[resource][1])), raw[1:]...)
}
