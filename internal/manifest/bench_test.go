package manifest

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// BenchmarkRead reads ten thousand pods in the three ways people write them.
func BenchmarkRead(b *testing.B) {
	const pods = 10_000
	var documents, list strings.Builder
	list.WriteString(`{"apiVersion":"v1","kind":"List","items":[`)
	for n := range pods {
		fmt.Fprintf(&documents, "---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: pod-%d\n  labels: {app: web}\nspec:\n  containers:\n  - name: c\n    resources: {requests: {cpu: %dm, memory: 1Gi}}\n", n, 100+n%50)
		if n > 0 {
			list.WriteString(",")
		}
		fmt.Fprintf(&list, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-%d","labels":{"app":"web"}},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"%dm","memory":"1Gi"}}}]}}`, n, 100+n%50)
	}
	list.WriteString("]}")
	for name, text := range map[string]string{
		"Deployment": strings.Replace(deployment, "replicas: 2", fmt.Sprintf("replicas: %d", pods), 1),
		"Documents":  documents.String(), "List": list.String(),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				manifests, err := Read(b.Context(), []string{Stdin}, strings.NewReader(text), nil)
				if err != nil {
					b.Fatal(err)
				}
				cluster, err := manifests.Cluster(time.Now())
				if err != nil {
					b.Fatal(err)
				}
				if len(cluster.Snapshot.Pending) != pods {
					b.Fatalf("%d pods", len(cluster.Snapshot.Pending))
				}
			}
			b.ReportMetric(float64(b.N)*pods/b.Elapsed().Seconds(), "pods/s")
		})
	}
}
