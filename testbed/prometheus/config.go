// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"
)

const defaultInterval = 15 * time.Second

// sendDeadline is short, so that servers in which time passes faster can send to each other.
const sendDeadline = "50ms"

// Job is a set of targets. Labels that a target exposes itself are kept as they are.
type Job struct {
	// Name is the value of the label job.
	Name string
	// Targets are fixed ones, as host:port. Their path is /metrics.
	Targets []string
	// Kubeconfig makes the job one of pods instead: all of a cluster with a container port that is called metrics. They
	// get the labels namespace and pod.
	Kubeconfig string
	// Labels are added to every target.
	Labels map[string]string
	// DropLabels is a regular expression of labels that are taken off what is scraped.
	DropLabels string
	// Interval is how often the job is scraped, and how long a scrape may take. Zero means Options.Interval.
	Interval time.Duration
}

// PodsOf is the job of all pods of a cluster of a fleet that have metrics: its operators and its agent.
func PodsOf(cluster, kubeconfig string) Job {
	return Job{Name: "pods-" + cluster, Kubeconfig: kubeconfig, Labels: map[string]string{"cluster": cluster}}
}

// What Prometheus reads.
type (
	configuration struct {
		Global  global         `json:"global"`
		Rules   []string       `json:"rule_files"`
		Scrapes []scrapeConfig `json:"scrape_configs,omitempty"`
		Write   []remoteWrite  `json:"remote_write,omitempty"`
		Alerts  *alerting      `json:"alerting,omitempty"`
	}
	alerting struct {
		Alertmanagers []alertmanagers `json:"alertmanagers"`
	}
	alertmanagers struct {
		Static []staticConfig `json:"static_configs"`
	}
	global struct {
		Scrape   string `json:"scrape_interval"`
		Timeout  string `json:"scrape_timeout"`
		Evaluate string `json:"evaluation_interval"`
	}
	scrapeConfig struct {
		Job         string         `json:"job_name"`
		Interval    string         `json:"scrape_interval,omitempty"`
		Timeout     string         `json:"scrape_timeout,omitempty"`
		HonorLabels bool           `json:"honor_labels"`
		Static      []staticConfig `json:"static_configs,omitempty"`
		Kubernetes  []discovery    `json:"kubernetes_sd_configs,omitempty"`
		Relabel     []relabel      `json:"relabel_configs,omitempty"`
		MetricRels  []relabel      `json:"metric_relabel_configs,omitempty"`
	}
	remoteWrite struct {
		URL     string    `json:"url"`
		Relabel []relabel `json:"write_relabel_configs,omitempty"`
		Queue   queue     `json:"queue_config"`
	}
	queue struct {
		Deadline string `json:"batch_send_deadline"`
	}
	staticConfig struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels,omitempty"`
	}
	discovery struct {
		Role       string `json:"role"`
		Kubeconfig string `json:"kubeconfig_file"`
	}
	relabel struct {
		Source      []string `json:"source_labels,omitempty"`
		Regex       string   `json:"regex,omitempty"`
		Action      string   `json:"action,omitempty"`
		Target      string   `json:"target_label,omitempty"`
		Replacement string   `json:"replacement,omitempty"`
	}
)

// config is the configuration file of a server at an address.
func (o Options) config(address string) ([]byte, error) {
	interval := duration(o.Interval, defaultInterval)
	c := configuration{
		Global: global{Scrape: interval, Timeout: interval, Evaluate: interval},
		Rules:  []string{rulesDir + "/*.yaml"},
	}
	if o.SendTo != nil {
		c.Write = []remoteWrite{{URL: o.SendTo.URL() + "/api/v1/write",
			Relabel: []relabel{{Source: []string{"__name__"}, Regex: o.Send, Action: "keep"}},
			Queue:   queue{Deadline: sendDeadline}}}
	}
	if o.Self {
		c.Scrapes = append(c.Scrapes, Job{Name: "prometheus", Targets: []string{address}}.config())
	}
	if len(o.Alertmanagers) > 0 {
		if o.Self {
			c.Scrapes = append(c.Scrapes, Job{Name: "alertmanager", Targets: o.Alertmanagers}.config())
		}
		c.Alerts = &alerting{[]alertmanagers{{[]staticConfig{{Targets: o.Alertmanagers}}}}}
	}
	for _, job := range o.Jobs {
		c.Scrapes = append(c.Scrapes, job.config())
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	return merged(text, o.Further)
}

// merged adds the sections of one configuration to those of another. Of a section that both have, what the second
// says goes before.
func merged(first, second []byte) ([]byte, error) {
	var all, more map[string]any
	if err := errors.Join(yaml.Unmarshal(first, &all), yaml.Unmarshal(second, &more)); err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	for section, content := range more {
		there, both := all[section].(map[string]any)
		if further, ok := content.(map[string]any); ok && both {
			maps.Copy(there, further)
			continue
		}
		all[section] = content
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	return text, nil
}

func (j Job) config() scrapeConfig {
	c := scrapeConfig{Job: j.Name, HonorLabels: true}
	if j.Interval != 0 {
		c.Interval = duration(j.Interval, 0)
		c.Timeout = c.Interval
	}
	if j.DropLabels != "" {
		c.MetricRels = []relabel{{Regex: j.DropLabels, Action: "labeldrop"}}
	}
	if j.Kubeconfig == "" {
		c.Static = []staticConfig{{Targets: j.Targets, Labels: j.Labels}}
		return c
	}
	c.Kubernetes = []discovery{{Role: "pod", Kubeconfig: j.Kubeconfig}}
	c.Relabel = []relabel{
		{Source: []string{"__meta_kubernetes_pod_container_port_name"}, Regex: "metrics", Action: "keep"},
		{Source: []string{"__meta_kubernetes_pod_phase"}, Regex: "Running", Action: "keep"},
		{Source: []string{"__meta_kubernetes_namespace"}, Target: "namespace"},
		{Source: []string{"__meta_kubernetes_pod_name"}, Target: "pod"},
	}
	for _, name := range slices.Sorted(maps.Keys(j.Labels)) {
		c.Relabel = append(c.Relabel, relabel{Target: name, Replacement: j.Labels[name]})
	}
	return c
}

// duration writes d, or otherwise where it is zero, as Prometheus reads it.
func duration(d, otherwise time.Duration) string {
	if d == 0 {
		d = otherwise
	}
	return model.Duration(d).String()
}
