package world

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Prometheus is a Prometheus server that scrapes the worker of a laboratory every five seconds.
type Prometheus struct {
	w   *World
	url string
}

// Prometheus starts Debian's Prometheus (tools/prometheus.sh), which evaluates some rules, and stops it when the test ends.
func (w *World) Prometheus(rules string) *Prometheus {
	w.T.Helper()
	program := filepath.Join(w.options.Bin, "prometheus")
	if _, err := os.Stat(program); err != nil {
		w.T.Fatalf("there is no Prometheus (tools/prometheus.sh): %v", err)
	}
	dir := filepath.Join(w.options.Dir, "prometheus")
	config := filepath.Join(dir, "prometheus.yaml")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.T.Fatal(err)
	}
	target := strings.TrimPrefix(w.Lab.WorkerMetricsURL(), "http://")
	text := fmt.Sprintf("global: {scrape_interval: 5s, scrape_timeout: 5s, evaluation_interval: 5s}\nrule_files: [rules.yaml]\n"+
		"scrape_configs: [{job_name: karpenter, static_configs: [{targets: [%q]}]}]\n", target)
	for file, content := range map[string]string{config: text, filepath.Join(dir, "rules.yaml"): rules} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			w.T.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.T.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		w.T.Fatal(err)
	}
	log, err := os.Create(filepath.Join(w.options.Dir, "logs", "prometheus.log"))
	if err != nil {
		w.T.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, DieTogether()
	if err := cmd.Start(); err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() {
		stop()
		_ = cmd.Wait()
		_ = log.Close()
	})
	p := &Prometheus{w, "http://" + address}
	w.Await("Prometheus scrapes the worker", time.Minute, func() (bool, string) {
		series, err := p.Query("up == 1")
		return err == nil && len(series) == 1, fmt.Sprint(series, err)
	})
	return p
}

// Series is one series of an answer: its labels and its value.
type Series struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

// Query evaluates an expression now.
func (p *Prometheus) Query(expression string) ([]Series, error) {
	request, err := http.NewRequestWithContext(p.w.Context(), http.MethodGet, p.url+"/api/v1/query?query="+url.QueryEscape(expression), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []Series }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("read Prometheus' answer to %s: %w", expression, err)
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("%s: %s", expression, answer.Error)
	}
	return answer.Data.Result, nil
}
