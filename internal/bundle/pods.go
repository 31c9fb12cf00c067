package bundle

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
)

// Pods reads what pods say.
type Pods interface {
	// Log returns the log of a container, or of its predecessor.
	Log(ctx context.Context, namespace, pod, container string, previous bool) (io.ReadCloser, error)
	// Metrics returns what a pod serves at /metrics of a port.
	Metrics(ctx context.Context, namespace, pod string, port int32) ([]byte, error)
}

// FromAPI reads from pods through the API server.
type FromAPI struct{ api *rest.RESTClient }

// NewFromAPI makes a client of pods alone. The client of everything, which client-go has too, makes programs 8 MB larger.
func NewFromAPI(config *rest.Config) (FromAPI, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &corev1.SchemeGroupVersion, "/api", scheme.Codecs.WithoutConversion()
	api, err := rest.RESTClientFor(config)
	if err != nil {
		return FromAPI{}, fmt.Errorf("make a client of pods: %w", err)
	}
	return FromAPI{api}, nil
}

// Log implements Pods.
func (f FromAPI) Log(ctx context.Context, namespace, pod, container string, previous bool) (io.ReadCloser, error) {
	return f.api.Get().Namespace(namespace).Resource("pods").Name(pod).SubResource("log").Param("container", container).Param("previous", strconv.FormatBool(previous)).Stream(ctx)
}

// Metrics implements Pods.
func (f FromAPI) Metrics(ctx context.Context, namespace, pod string, port int32) ([]byte, error) {
	return f.api.Get().Namespace(namespace).Resource("pods").Name(fmt.Sprintf("http:%s:%d", pod, port)).SubResource("proxy").Suffix("metrics").DoRaw(ctx)
}

// podParts are the parts that the worker's pods know.
func podParts(o Options) []Part {
	return []Part{
		{Path: "logs", Has: fmt.Sprintf("the last %d KiB of the log of each worker, and of its predecessor where it was started again", o.LogBytes>>10), Without: "logs of other containers of the pods",
			Rights: "list pods and get pods/log in " + o.Namespace, collect: eachWorker((*collector).logs)},
		{Path: "metrics", Has: "metrics of each worker", Rights: "list pods and get pods/proxy in " + o.Namespace, collect: eachWorker((*collector).metrics)},
	}
}

// eachWorker collects something of each of the worker's pods. What one of them does not tell, others may.
func eachWorker(collect func(*collector, context.Context, *corev1.Pod) error) func(context.Context, *collector) error {
	return func(ctx context.Context, c *collector) error {
		var pods corev1.PodList
		if err := c.Kube.List(ctx, &pods, kube.InNamespace(c.Namespace), workerLabels); err != nil {
			return fmt.Errorf("list the worker's pods: %w", err)
		}
		if len(pods.Items) == 0 {
			return fmt.Errorf("there is no pod with the label app.kubernetes.io/name=tenon in %s (--namespace)", c.Namespace)
		}
		var failed []error
		for i := range pods.Items {
			failed = append(failed, collect(c, ctx, &pods.Items[i]))
		}
		return errors.Join(failed...)
	}
}

// logs collects the log of a worker, which is the first container of its pod.
func (c *collector) logs(ctx context.Context, pod *corev1.Pod) error {
	container := pod.Spec.Containers[0].Name
	err := c.log(ctx, pod, container, false)
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container && status.RestartCount > 0 {
			err = errors.Join(err, c.log(ctx, pod, container, true))
		}
	}
	return err
}

func (c *collector) log(ctx context.Context, pod *corev1.Pod, container string, previous bool) error {
	stream, err := c.Pods.Log(ctx, pod.Namespace, pod.Name, container, previous)
	if err != nil {
		return fmt.Errorf("read the log of %s: %w", pod.Name, err)
	}
	defer func() { _ = stream.Close() }()
	end, cut, err := tail(stream, c.LogBytes)
	if err != nil {
		return fmt.Errorf("read the log of %s: %w", pod.Name, err)
	}
	path := "logs/" + pod.Name + ".log"
	if previous {
		path = "logs/" + pod.Name + ".previous.log"
	}
	if cut {
		end = append([]byte("[what was before is left out]\n"), end...)
	}
	return c.add(path, c.lines(end))
}

func (c *collector) metrics(ctx context.Context, pod *corev1.Pod) error {
	port := int32(8080)
	for _, p := range pod.Spec.Containers[0].Ports {
		if strings.Contains(p.Name, "metrics") {
			port = p.ContainerPort
		}
	}
	scraped, err := c.Pods.Metrics(ctx, pod.Namespace, pod.Name, port)
	if err != nil {
		return fmt.Errorf("scrape the metrics of %s: %w", pod.Name, err)
	}
	return c.add("metrics/"+pod.Name+".txt", c.lines(scraped))
}

// lines redacts each line of a text, and keys that are written over several lines.
func (c *collector) lines(text []byte) []byte {
	var out bytes.Buffer
	text = pemBlock.ReplaceAllFunc(text, func([]byte) []byte { return []byte(c.hide()) })
	for line := range bytes.Lines(text) {
		out.WriteString(c.Line(strings.TrimSuffix(string(line), "\n")))
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// tail returns the whole lines at the end of a stream that fit into a number of bytes, and whether there were others before.
func tail(from io.Reader, most int) (end []byte, cut bool, err error) {
	reader := bufio.NewReaderSize(from, 1<<16)
	for {
		line, err := reader.ReadBytes('\n')
		end = append(end, line...)
		if len(end) > 2*most {
			end, cut = append([]byte(nil), lastLines(end, most)...), true
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false, err
		}
	}
	if len(end) > most {
		return lastLines(end, most), true, nil
	}
	return end, cut, nil
}

// lastLines returns the whole lines at the end of a text that fit into a number of bytes.
func lastLines(text []byte, most int) []byte {
	text = text[len(text)-most-1:]
	return text[bytes.IndexByte(text, '\n')+1:]
}
